// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"net"
	"net/netip"
)

// addrOf returns the address of a peer; the zero one if it has none.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	if a == nil {
		return netip.Addr{}
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// peerOf returns an address without its port. All unix sockets are one peer, "unix": their
// connections share what one peer may have.
func peerOf(a net.Addr) string {
	if a == nil {
		return "unknown"
	}
	switch a.Network() {
	case "unix", "unixpacket":
		return "unix"
	}
	text := a.String()
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap().String()
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return text
}
