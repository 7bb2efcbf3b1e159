// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/internal/testcert"
)

// TestRecheck: a connection whose key, user or rule is good no more ends, when what came of it is
// acked. Others go on.
func TestRecheck(t *testing.T) {
	before := &Security{SharedKey: "key", Users: map[string]string{"u": "password", "other": "password"}}
	for name, now := range map[string]*Security{
		"key":      {SharedKey: "new", Users: before.Users, Clients: []ClientRule{{Host: "stays", SharedKey: "key"}}},
		"password": {SharedKey: "key", Users: map[string]string{"u": "new", "other": "password"}},
		"user":     {SharedKey: "key", Users: map[string]string{"other": "password"}},
		"rule": {
			SharedKey: "key", Users: before.Users, Clients: []ClientRule{{Host: "stays"}},
			DenyAnonymous: true,
		},
		"rule's": {
			SharedKey: "key", Users: before.Users,
			Clients: []ClientRule{{Host: "goes", Users: []string{"other"}}},
		},
		"no key": {Users: before.Users, Clients: []ClientRule{{Host: "stays", SharedKey: "key"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var current atomic.Pointer[Security]
			current.Store(before)
			g := &gate{}
			s := &Server{
				Handler:  g,
				Endpoint: Endpoint{GetSecurity: func(net.Addr) *Security { return current.Load() }},
			}
			if name == "no key" { // one that cannot be used lets nobody in
				now.Clients = nil
			}
			bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
				g.change = make(chan struct{})
				goes, stays, early := p.peer(), p.peer(), p.peer()
				goes.logIn(t, who{host: "goes", key: "key", user: "u", password: "password"}, withID('a')...)
				stays.logIn(t, who{host: "stays", key: "key", user: "other", password: "password"})
				late := who{host: "goes", key: "key", user: "u", password: "password"}
				late.nonce, late.auth, _ = early.helo(t)
				s.Recheck(&s.Endpoint)
				s.Recheck(new(Endpoint))
				synctest.Wait()
				if goes.closed() || stays.closed() || early.closed() || peerErrors() != "" {
					t.Fatalf("with nothing withdrawn: %s", peerErrors())
				}
				current.Store(now)
				s.Recheck(&s.Endpoint)
				s.Recheck(&s.Endpoint)
				synctest.Wait()
				want := "login withdrawn: connection closed"
				if name == "no key" {
					want += "; " + want
				}
				if peerErrors() != want || goes.closed() || g.groups() != 1 {
					t.Fatalf("before the ack: closed %t, %d groups: %s", goes.closed(), g.groups(), peerErrors())
				}
				if st := s.Stats(); st.PeerErrors[PeerWithdrawn] != uint64(strings.Count(want, "login")) {
					t.Errorf("%+v", st)
				}
				if err := goes.SetWriteDeadline(time.Now().Add(time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				if _, err := goes.Write(withID('b')); err == nil {
					t.Error("it is still read")
				}
				g.store(1)
				synctest.Wait()
				<-time.After(2 * linger)
				if got, _ := goes.received(); !strings.HasSuffix(string(got), string(ackOf("a"))) || !goes.closed() {
					t.Errorf("closed %t, received %q", goes.closed(), got)
				}
				if name != "no key" {
					write(t, stays, withID('c'))
					g.store(1)
					synctest.Wait()
					if got, _ := stays.received(); !strings.HasSuffix(string(got), string(ackOf("c"))) ||
						stays.closed() {
						t.Errorf("closed %t, received %q", stays.closed(), got)
					}
				}
				// This one was asked for what was good then, and answers now.
				write(t, early, late.ping())
				synctest.Wait()
				<-time.After(2 * linger)
				if !early.closed() || peerErrors() != want+"; login withdrawn: connection closed" {
					t.Errorf("closed %t: %s", early.closed(), peerErrors())
				}
			})
		})
	}
}

// TestRecheckCertificates: so does one whose certificate is one that nobody vouches for any more.
func TestRecheckCertificates(t *testing.T) {
	ca, next := testcert.New(t), testcert.New(t)
	errStrange := errors.New("not this one")
	for name, exchange := range map[string]func(*tls.Config) error{
		"authority": func(c *tls.Config) error { c.ClientCAs = next.Pool; return nil },
		"time": func(c *tls.Config) error {
			c.Time = func() time.Time { return time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }
			return nil
		},
		"connection": func(c *tls.Config) error {
			c.VerifyConnection = func(tls.ConnectionState) error { return errStrange }
			return nil
		},
		"error": func(*tls.Config) error { return errStrange },
	} {
		t.Run(name, func(t *testing.T) {
			var exchanged atomic.Bool
			ep := &Endpoint{TLS: &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				c := &tls.Config{
					Certificates: []tls.Certificate{ca.Server.TLS}, ClientCAs: ca.Pool,
					ClientAuth: tls.VerifyClientCertIfGiven,
				}
				if hello.Conn == nil || hello.ServerName != "localhost" {
					t.Errorf("hello %+v", hello)
				}
				if exchanged.Load() {
					return c, exchange(c)
				}
				return c, nil
			}}}
			s := &Server{Handler: new(outcome)}
			address, peerErrors := secured(t, s, ep, "tcp")
			client := func(certs ...tls.Certificate) *Client {
				c := &Client{
					Address: address,
					TLS:     &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", Certificates: certs},
				}
				t.Cleanup(func() { _ = c.Close() }) // it may have been cut
				if err := c.Send(withTimeout(t), oneChunk("a")); err != nil {
					t.Fatal(err)
				}
				return c
			}
			client(ca.Client.TLS)
			stays := client()
			s.Recheck(ep)
			exchanged.Store(true)
			s.Recheck(ep)
			tr := <-peerErrors
			if tr.Kind != PeerWithdrawn || tr.Action != ActionClose ||
				!strings.Contains(tr.Error(), "login withdrawn from 127.0.0.1:") {
				t.Errorf("%v", tr)
			}
			if name == "authority" || name == "time" { // the others ask for more than certificates
				if err := stays.Send(withTimeout(t), oneChunk("b")); err != nil || stays.Stats().Connects != 1 {
					t.Errorf("%v, %+v", err, stays.Stats())
				}
			}
		})
	}
}
