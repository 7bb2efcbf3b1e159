// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"net"
)

// A Sender is who is at the other end of a connection. All chunks of a connection share one; it is
// not changed after the first of them, and may be kept.
type Sender struct {
	// Endpoint is what the connection came in by: as it was given to ServeEndpoint, or
	// &Server.Endpoint.
	Endpoint *Endpoint
	// Addr is the remote address.
	Addr net.Addr
	// Host is the host name that the sender gave in the handshake, "" without one. It is proved by
	// no more than the shared key.
	Host string
	// User is the user that the sender has authenticated as, "" without user authentication.
	User string
	// TLS is the state of the connection after the TLS handshake, client certificates among it; nil
	// without TLS.
	TLS *tls.ConnectionState
}

// Address is the remote address as text, "unix" for a unix socket.
func (s *Sender) Address() string {
	if host := peerOf(s.Addr); host == "unix" || s.Addr == nil {
		return host
	}
	return s.Addr.String()
}
