// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"math"
	"net"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/credentials"
)

// openFiles reads the files of TLS. From then on they are watched, when connections come.
//
// No session tickets are sent: one is what a sender that never reads would leave in its socket.
// Closing that resets the connection, and with it goes what was not read here yet.
func (in *input) openFiles() error {
	if in.security == nil {
		return nil
	}
	return in.security.Open(&credentials.Reports{
		Warn: func(err error) { codes.Credentials.Warn(in.env.Log, "credentials", "error", err) },
		Renewed: func(files []string) {
			codes.Renewed.Info(in.env.Log, "credentials renewed", "files", strings.Join(files, ", "))
			in.mu.Lock()
			shown := maps.Clone(in.shown)
			in.mu.Unlock()
			for c, certs := range shown {
				in.recheck(c, certs)
			}
		},
	})
}

// Reload reads the files of TLS again, see collector.Input.
func (in *input) Reload() error {
	if in.security == nil {
		return nil
	}
	return in.security.Reload()
}

// greet does the handshake of TLS, and notes what the client has shown: package tls does not tell
// it during a handshake of that connection, and in one the files may be found to have changed.
func (in *input) greet(c net.Conn) error {
	secure, ok := c.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := secure.Handshake(); err != nil {
		return err
	}
	if certs := secure.ConnectionState().PeerCertificates; len(certs) > 0 {
		in.mu.Lock()
		in.shown[c] = certs
		in.mu.Unlock()
		in.recheck(c, certs) // the files may have changed since they let it in
	}
	return nil
}

// recheck ends a connection that would not be let in now, once what was read of it is stored.
func (in *input) recheck(c net.Conn, certs []*x509.Certificate) {
	err := in.security.Recheck(certs)
	if err == nil {
		return
	}
	in.mu.Lock()
	_, ok := in.shown[c]
	if ok { // it goes on
		delete(in.shown, c)
		in.cutLocked(c)
	}
	in.mu.Unlock()
	if ok {
		in.bad(codes.PeerWithdrawn, "connection closed", err, origin{name: c.RemoteAddr().String()})
	}
}

// cutLocked has a connection end: it reads no more, and what was read of it is stored. It is none
// that gives way to a new one any more.
func (in *input) cutLocked(c net.Conn) {
	// For writing too: package tls answers in the middle of a read, and a peer may not read.
	_ = c.SetDeadline(time.Unix(1, 0)) // it is open
	in.conns[c].Store(math.MaxInt64)
}
