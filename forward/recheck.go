// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// Recheck ends the connections of an endpoint that would not be let in now, by what its functions
// say: those whose shared key, user, password, rule or certificate is good no more. What has come
// of them as a whole is stored and acked, and each is reported as PeerWithdrawn. Call it when
// secrets or authorities have been exchanged. GetSecurity is asked again for each connection, and
// so is GetConfigForClient, with what is left of its ClientHello: connection, server name, version
// and cipher.
func (s *Server) Recheck(ep *Endpoint) {
	s.init()
	s.rechecks.Add(1) // before the connections are looked at: see admission.run
	conns := s.all(func(c *remote) bool { return c.ep == ep && !c.early.Load() && !c.cut.Load() })
	for _, c := range conns {
		if err := c.recheck(); err != nil {
			c.withdraw(err)
		}
	}
}

// recheck tells why a connection that has logged in would not be let in now. It may be called by
// any goroutine.
func (c *remote) recheck() error {
	if c.sender.TLS != nil {
		if err := c.recertify(c.sender.TLS); err != nil {
			return fmt.Errorf("its certificate is good no more: %w", cleanError{err})
		}
	}
	if c.proof == nil {
		return nil
	}
	sec, err := c.security()
	if err != nil {
		return err
	}
	p := c.proof
	r, found, _ := sec.rule(addrOf(c.sock.RemoteAddr()), p.host)
	switch {
	case !found:
		return fmt.Errorf("no rule lets it in any more: host %s", quote([]byte(p.host)))
	case !wire.Equal([]byte(r.SharedKey), []byte(p.key)):
		return fmt.Errorf("its shared key is good no more: host %s", quote([]byte(p.host)))
	case sec.Users == nil:
		return nil
	}
	password, known := sec.Users[p.user]
	if !known || r.Users != nil && !slices.Contains(r.Users, p.user) ||
		!wire.Equal([]byte(password), []byte(p.password)) {
		return fmt.Errorf("its user or password is good no more: host %s user %s", quote([]byte(p.host)),
			quote([]byte(p.user)))
	}
	return nil
}

// recertify does with the certificates of a connection what its handshake would do now.
func (c *remote) recertify(state *tls.ConnectionState) error {
	config := c.ep.TLS
	if get := config.GetConfigForClient; get != nil {
		now, err := get(&tls.ClientHelloInfo{
			Conn: c.sock, ServerName: state.ServerName,
			SupportedVersions: []uint16{state.Version}, CipherSuites: []uint16{state.CipherSuite},
		})
		if err != nil {
			return err
		}
		if now != nil {
			config = now
		}
	}
	certs := state.PeerCertificates
	needed := config.ClientAuth == tls.RequireAnyClientCert || config.ClientAuth == tls.RequireAndVerifyClientCert
	if len(certs) == 0 && needed {
		return errors.New("it has shown none")
	}
	again := *state
	if len(certs) > 0 && config.ClientAuth >= tls.VerifyClientCertIfGiven {
		how := x509.VerifyOptions{
			Roots: config.ClientCAs, Intermediates: x509.NewCertPool(),
			CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if config.Time != nil {
			how.CurrentTime = config.Time()
		}
		for _, cert := range certs[1:] {
			how.Intermediates.AddCert(cert)
		}
		var err error
		if again.VerifiedChains, err = certs[0].Verify(how); err != nil {
			return err
		}
	}
	if verify := config.VerifyPeerCertificate; verify != nil && len(certs) > 0 {
		raw := make([][]byte, len(certs))
		for i, cert := range certs {
			raw[i] = cert.Raw
		}
		if err := verify(raw, again.VerifiedChains); err != nil {
			return err
		}
	}
	if config.VerifyConnection != nil {
		return config.VerifyConnection(again)
	}
	return nil
}

// withdraw ends a connection that would not be let in now, once it has handed on what is in hand.
func (c *remote) withdraw(why error) {
	if !c.cut.Swap(true) {
		c.report(PeerWithdrawn, ActionClose, "", 0, why)
		c.interrupt()
	}
}

// security returns what a connection has to go through now.
func (c *remote) security() (*Security, error) {
	sec := c.ep.Security
	if c.ep.GetSecurity != nil {
		if s := c.ep.GetSecurity(c.sock.RemoteAddr()); s != nil {
			sec = s
		}
	}
	if sec == nil {
		return nil, errors.New("there is no Security for this connection")
	}
	return sec, sec.Check()
}
