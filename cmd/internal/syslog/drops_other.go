// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package syslog

import "net"

// forceBuffer does nothing: what the system gives is all there is.
func forceBuffer(net.PacketConn, int) bool { return false }

// countDrops does nothing: this system does not say what it drops.
func countDrops(net.PacketConn) error { return nil }

// receive reads a datagram.
func receive(c net.PacketConn, buf, _ []byte, from bool) (n int, dropped uint32, known bool, peer string, err error) {
	n, addr, err := c.ReadFrom(buf)
	if from && addr != nil {
		peer = addr.String()
	}
	return n, 0, false, peer, err
}
