// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"net"
)

// A Sender is what is at the other end of a connection. All chunks of a connection share one, which
// their handler reaches by [SenderOf]; it is not changed after the first of them, and may be kept.
type Sender struct {
	// Endpoint is what the connection came in by: as it was given to ServeEndpoint, or
	// &Server.Endpoint.
	Endpoint *Endpoint
	// Addr is the remote address.
	Addr net.Addr
	// Peer is the remote address without its port, "unix" for a unix socket.
	Peer string
	// Conn is the serial number of the connection, unique in this process and never 0.
	Conn uint64
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
	if s == nil {
		return peerOf(nil)
	}
	if host := peerOf(s.Addr); host == "unix" || s.Addr == nil {
		return host
	}
	return s.Addr.String()
}

type senderKey struct{}

// SenderOf is what sent the chunks that a handler was called for with ctx; nil where no Server did
// call. Every function of a Handler gets such a ctx, and so does Server.SetAside.
func SenderOf(ctx context.Context) *Sender {
	s, _ := ctx.Value(senderKey{}).(*Sender)
	return s
}

// WithSender returns a ctx whose SenderOf is s, for whatever hands on chunks in place of a Server.
func WithSender(ctx context.Context, s *Sender) context.Context {
	return context.WithValue(ctx, senderKey{}, s)
}
