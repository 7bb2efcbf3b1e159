// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"errors"
	"net"
)

// An Endpoint says how the connections of one listener are treated. The zero value takes them as
// they come: no TLS, no handshake. Its fields, and what they point to, are not changed after
// ServeEndpoint was called; what has to change while connections come is asked for by function.
type Endpoint struct {
	// TLS turns the connections of a listener into TLS 1.2 or newer; nil: they are plain. The TLS
	// handshake runs in the connection's own goroutine, under HandshakeTimeout. Certificates are
	// exchanged by GetConfigForClient or GetCertificate, clients are asked for theirs by
	// ClientAuth.
	TLS *tls.Config
	// Security is the Forward handshake that every connection has to go through (docs/forward.md
	// rules 31 to 40); nil: there is none.
	Security *Security
	// GetSecurity, if it is set, is asked once for each connection, and by Recheck, so that secrets
	// can change; it gets the address of the peer. If it returns nil, Security counts; if that is
	// nil too, the connection is refused: what could not be loaded opens no door.
	GetSecurity func(net.Addr) *Security

	// Tag, if it is not empty, replaces the tags that clients send.
	Tag string
	// TagPrefix and a dot are put before every tag, Tag included. A tag that becomes longer than
	// MaxTag is refused.
	TagPrefix string

	// RefuseLarge refuses a chunk with an event that is larger than Server.MaxEvent. Otherwise the
	// event is set aside, and the rest is stored.
	RefuseLarge bool

	// The source of an event is added to the end of its record under these keys, where they are not
	// empty and something is known. What stands under such a key is always the server's word: a key
	// of that name that the peer has put into the record, at its top level, is dropped, even if the
	// server has nothing to put there. Chunk.Sent has the records as they came. A chunk that would
	// become larger than MaxDecompressed is refused.
	AddressKey string // the peer's address without its port, "unix" for a unix socket
	// The host name that the client gave in the handshake; without one, that of its address by
	// reverse lookup, or the address. It is proved by neither.
	HostKey string
	// The subject of the client's certificate, as RFC 2253 writes it; TLS.ClientAuth says whether
	// it was verified.
	SubjectKey string
	UserKey    string // the user that the client has authenticated as
}

// guarded tells whether there is a Forward handshake.
func (ep *Endpoint) guarded() bool { return ep.Security != nil || ep.GetSecurity != nil }

// stamps tells whether an endpoint adds something.
func (ep *Endpoint) stamps() bool {
	return ep.AddressKey != "" || ep.HostKey != "" || ep.SubjectKey != "" || ep.UserKey != ""
}

// check returns what is wrong with ep, and the configuration of TLS with what is asked for here.
func (ep *Endpoint) check() (*tls.Config, error) {
	if ep.Security != nil {
		if err := ep.Security.Check(); err != nil {
			return nil, err
		}
	}
	if ep.TLS == nil {
		return nil, nil
	}
	if t := ep.TLS; len(t.Certificates) == 0 && t.GetCertificate == nil && t.GetConfigForClient == nil {
		return nil, errors.New("forward: TLS without a certificate")
	}
	return atLeast12(ep.TLS), nil
}

// atLeast12 returns a copy of a configuration that allows no version before 1.2 (docs/forward.md
// rule 42).
func atLeast12(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	return config
}
