// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/internal/testcert"
)

// secured serves an endpoint on a loopback address, or a unix socket, until the test ends, and
// tells peerErrors.
func secured(t *testing.T, s *Server, ep *Endpoint, network string) (address string, peerErrors chan PeerError) {
	t.Helper()
	peerErrors = make(chan PeerError, 100)
	s.PeerError = func(tr PeerError) { peerErrors <- tr }
	address = "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.ServeEndpoint(l, ep) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrServerClosed) {
			t.Error(err)
		}
		if st := s.Stats(); st.Memory != 0 || st.Connections != 0 {
			t.Errorf("left behind: %+v", st)
		}
	})
	return l.Addr().String(), peerErrors
}

func withTimeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestRule42TLS(t *testing.T) {
	ca := testcert.New(t)
	for _, network := range []string{"tcp", "unix"} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(network+" "+tls.VersionName(version), func(t *testing.T) {
				var seen atomic.Pointer[Sender]
				var events atomic.Int64
				s := &Server{Handler: HandlerFunc(func(ctx context.Context, c *Chunk) error {
					seen.Store(SenderOf(ctx))
					events.Add(int64(c.Events))
					return nil
				})}
				ep := &Endpoint{
					TLS: &tls.Config{
						Certificates: []tls.Certificate{ca.Server.TLS}, ClientCAs: ca.Pool,
						ClientAuth: tls.RequireAndVerifyClientCert,
					},
					Security: &Security{SharedKey: "secret"},
				}
				address, peerErrors := secured(t, s, ep, network)
				c := &Client{
					Network: network, Address: address, Login: &Login{SharedKey: "secret", Hostname: "here"},
					Report: func(err error) { t.Error(err) },
					TLS: &tls.Config{
						RootCAs: ca.Pool, Certificates: []tls.Certificate{ca.Client.TLS},
						MaxVersion: version,
					},
				}
				if network == "unix" {
					c.TLS.ServerName = "localhost"
				}
				large := &Chunk{Tag: "t", Entries: entries(20000), Events: 20000} // of many records
				for _, ch := range []*Chunk{oneChunk("a"), large, oneChunk("b")} {
					if err := c.Send(withTimeout(t), ch); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				from := seen.Load()
				if from.TLS == nil || from.TLS.Version != version ||
					from.TLS.PeerCertificates[0].Subject.CommonName != "client" || from.Host != "here" {
					t.Errorf("%+v", from)
				}
				if events.Load() != 20002 || len(peerErrors) > 0 || c.Stats().Connects != 1 {
					t.Errorf("%d events, %d peerErrors, %+v", events.Load(), len(peerErrors), c.Stats())
				}
			})
		}
	}
}

// TestRule42Refused: what does not get through the handshake makes one PeerError, which names the
// peer, and the client learns what it was.
func TestRule42Refused(t *testing.T) {
	ca, other := testcert.New(t), testcert.New(t)
	server := &tls.Config{
		Certificates: []tls.Certificate{ca.Server.TLS}, ClientCAs: ca.Pool,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}
	// To be refused.
	old := &tls.Config{
		Certificates: []tls.Certificate{ca.Server.TLS}, MinVersion: tls.VersionTLS10,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA},
	}
	sly := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return old, nil }}
	fake := other.Issue(t, &testcert.Options{Name: "a\nforged line"})
	late := ca.Issue(t, &testcert.Options{Name: "late", NotAfter: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)})
	for name, tc := range map[string]struct {
		server *tls.Config
		client *tls.Config
		plain  string // what is sent in place of a TLS handshake
		told   string // by the server
		want   string // of the client's error
	}{
		"plain text": {server: server, plain: hexEvents, told: "does not look like a TLS handshake"},
		"HTTP": {
			server: server, plain: fmt.Sprintf("%x", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
			told: "does not look like a TLS handshake",
		},
		"SSL 2": {server: server, plain: "80 2e 01 00 02 0015 0000 0010", told: "SSLv2"},
		"no certificate": {
			server, &tls.Config{RootCAs: ca.Pool}, "", "didn't provide a certificate",
			"certificate required",
		},
		"unknown": {
			server, &tls.Config{RootCAs: ca.Pool, Certificates: []tls.Certificate{fake.TLS}}, "", "",
			"certificate",
		},
		"late": {
			server, &tls.Config{RootCAs: ca.Pool, Certificates: []tls.Certificate{late.TLS}}, "",
			"expired", "certificate",
		},
		"other server": {server, &tls.Config{RootCAs: other.Pool}, "", "bad certificate", "unknown authority"},
		"other name": {
			server, &tls.Config{RootCAs: ca.Pool, ServerName: "example.org"}, "", "bad certificate",
			"not example.org",
		},
		// To be refused.
		"TLS 1.1": {
			old, &tls.Config{RootCAs: ca.Pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "",
			"unsupported versions", "protocol version",
		},
		// To be refused.
		"TLS 1.1, sly": {
			sly, &tls.Config{
				RootCAs: ca.Pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
				CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA},
			}, "", "TLS 1.1 is too old",
			"the connection ended",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := new(outcome)
			s := &Server{Handler: o}
			address, peerErrors := secured(t, s, &Endpoint{TLS: tc.server}, "tcp")
			nc, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			_ = nc.SetDeadline(time.Now().Add(4 * time.Minute))
			if tc.client == nil {
				write(t, nc, unhex(tc.plain))
				if _, err := io.Copy(io.Discard, nc); err != nil {
					t.Errorf("not closed in order: %v", err)
				}
			} else {
				if tc.client.ServerName == "" {
					tc.client.ServerName = "127.0.0.1"
				}
				c := tls.Client(nc, tc.client) // not ours, which would not speak TLS 1.1
				_, err := c.Write(unhex(hexEvents))
				if err == nil { // of TLS 1.3 the client has finished before the server looks
					_, err = c.Read(make([]byte, 1))
				}
				if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || tc.want != "the connection ended" &&
					!strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
				_ = nc.Close()
			}
			tr := <-peerErrors
			if tr.Kind != PeerHandshakeFailed || tr.Action != ActionClose || tr.Sender.Peer != "127.0.0.1" ||
				!strings.Contains(tr.Error(), tc.told) || strings.Contains(tr.Error(), "\n") {
				t.Error(tr)
			}
			if err := s.Close(); err != nil || len(peerErrors) > 0 || len(o.events) > 0 ||
				s.Stats().PeerErrors[PeerHandshakeFailed] != 1 {
				t.Errorf("%v, %d more peerErrors, events %q", err, len(peerErrors), o.events)
			}
		})
	}
	c := &Client{Address: "x:1", TLS: &tls.Config{MinVersion: tls.VersionTLS10}} // to be refused
	if config, _, err := c.secrets(); err != nil || config.MinVersion != tls.VersionTLS12 ||
		c.TLS.MinVersion != tls.VersionTLS10 || config.ServerName != "x" {
		t.Errorf("%v %v", config, err)
	}
}

// TestRule42Timeout: a connection that does not finish its handshakes in time is closed, however
// far it is.
func TestRule42Timeout(t *testing.T) {
	ca := testcert.New(t)
	s := &Server{
		Handler: new(outcome),
		Endpoint: Endpoint{
			TLS:      &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}},
			Security: &Security{SharedKey: "secret"},
		},
	}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		mute := p.peer()
		half := p.peer()
		write(t, half, unhex("16 0301"))
		shaken := tls.Client(p.dial(), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"})
		if err := shaken.Handshake(); err != nil {
			t.Fatal(err)
		}
		hello := make([]byte, 100)
		if n, err := shaken.Read(hello); err != nil || !bytes.Contains(hello[:n], []byte("HELO")) {
			t.Errorf("%q %v", hello[:n], err)
		}
		gone := p.peer() // one that looks whether somebody listens
		_ = gone.Close()
		synctest.Wait()
		if mute.closed() || half.closed() || peerErrors() != "" {
			t.Errorf("%t %t %s", mute.closed(), half.closed(), peerErrors())
		}
		began := time.Now()
		if _, err := shaken.Read(hello); !errors.Is(err, io.EOF) || time.Since(began) > DefaultHandshake+linger {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		<-mute.done
		<-half.done
		synctest.Wait()
		const one = "handshake failed: connection closed"
		if peerErrors() != one+"; "+one+"; "+one {
			t.Error(peerErrors())
		}
		p.peer() // and Shutdown waits for none
		synctest.Wait()
		began = time.Now()
		if err := s.Shutdown(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestTLSWithoutCertificate is told at the start, and not by every connection.
func TestTLSWithoutCertificate(t *testing.T) {
	if err := (&Server{Handler: new(outcome)}).ServeEndpoint(newPipes(), &Endpoint{TLS: &tls.Config{}}); err == nil ||
		!strings.Contains(err.Error(), "without a certificate") {
		t.Error(err)
	}
}

// TestRule42LongHandshake: an unknown client makes the server keep no more than a handshake needs.
func TestRule42LongHandshake(t *testing.T) {
	ca := testcert.New(t)
	chain := ca.Client.TLS
	for range 300 {
		chain.Certificate = append(chain.Certificate, chain.Certificate[0])
	}
	address, peerErrors := secured(t, &Server{Handler: new(outcome)}, &Endpoint{TLS: &tls.Config{
		Certificates: []tls.Certificate{ca.Server.TLS}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool,
	}}, "tcp")
	if nc, err := tls.Dial("tcp", address, &tls.Config{
		RootCAs:      ca.Pool,
		Certificates: []tls.Certificate{chain},
	}); err == nil {
		_, err = nc.Read(make([]byte, 1))
		if _ = nc.Close(); err == nil {
			t.Error("taken")
		}
	}
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	hello := append(unhex("01 00ffff 0303"), make([]byte, 60000)...)
	for piece := range slices.Chunk(hello, 16000) {
		// It may be closed before the end.
		_, _ = nc.Write(append([]byte{22, 3, 1, byte(len(piece) >> 8), byte(len(piece))}, piece...))
	}
	for range 2 {
		if tr := <-peerErrors; tr.Kind != PeerHandshakeFailed || !strings.Contains(tr.Error(), errQuota.Error()) {
			t.Error(tr)
		}
	}
}

// TestRule42Reload: a new certificate is for new connections; those that there are go on.
func TestRule42Reload(t *testing.T) {
	ca, next := testcert.New(t), testcert.New(t)
	var current atomic.Pointer[testcert.CA]
	current.Store(ca)
	ep := &Endpoint{TLS: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := current.Load()
		return &tls.Config{
			Certificates: []tls.Certificate{now.Server.TLS}, ClientCAs: now.Pool,
			ClientAuth: tls.RequireAndVerifyClientCert,
		}, nil
	}}}
	address, _ := secured(t, &Server{Handler: new(outcome)}, ep, "tcp")
	// given returns a ctx that ends when a client has told of what is wanted.
	given := func(want string) (context.Context, func(error)) {
		ctx, cancel := context.WithCancel(withTimeout(t))
		t.Cleanup(cancel)
		return ctx, func(err error) {
			if strings.Contains(err.Error(), want) {
				cancel()
			}
		}
	}
	strange := address + ": the handshake of TLS: "
	refused, report := given(strange)
	before := &Client{Address: address, TLS: &tls.Config{
		RootCAs:      ca.Pool,
		Certificates: []tls.Certificate{ca.Client.TLS},
	}, Report: report}
	after := &Client{Address: address, MinBackoff: time.Millisecond, GetTLS: func() (*tls.Config, error) {
		now := current.Load()
		return &tls.Config{RootCAs: now.Pool, Certificates: []tls.Certificate{now.Client.TLS}}, nil
	}}
	send := func(c *Client) {
		t.Helper()
		if err := c.Send(withTimeout(t), oneChunk("a")); err != nil {
			t.Error(err)
		}
	}
	send(before)
	send(after)
	current.Store(next)
	send(before)
	after.Disconnect(errors.New("for a fresh one"))
	send(after)
	if st := before.Stats(); st.Connects != 1 {
		t.Errorf("%+v", st)
	}
	if st := after.Stats(); st.Connects != 2 {
		t.Errorf("%+v", st)
	}
	before.Disconnect(errors.New("for a fresh one"))
	if err := before.Send(refused, oneChunk("b")); err == nil || !strings.Contains(err.Error(), strange) {
		t.Error(err)
	}
	if err := errors.Join(before.Close(), after.Close()); err != nil {
		t.Error(err)
	}
	gone := address + ": TLS: the file is gone"
	refused, report = given(gone)
	broken := &Client{Address: address, GetTLS: func() (*tls.Config, error) {
		return nil,
			errors.New("the file is gone")
	}, Report: report}
	if err := broken.Send(refused, oneChunk("c")); err == nil || !strings.Contains(err.Error(), gone) {
		t.Error(err)
	}
	if err := broken.Close(); err != nil {
		t.Error(err)
	}
}

// TestTLSInPieces: records cut anywhere, and messages that end within one, are as they would be
// without TLS.
func TestTLSInPieces(t *testing.T) {
	ca := testcert.New(t)
	var stream []byte
	stream = append(stream, packedMessage("t", 400, "")...)
	stream = append(stream, unhex(hexEvents)...)
	stream = append(stream, unhex("c0"+oneEvent)...)
	stream = append(stream, packedMessage("t", 100, "gzip")...)
	stream = append(stream, unhex(hexForward)...)
	want := play(nil, stream)
	for _, step := range []int{1, 100, 5000, 1 << 20} {
		o := new(outcome)
		s := &Server{Handler: grouped{o}}
		config := &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}
		address, peerErrors := secured(t, s, &Endpoint{TLS: config}, "tcp")
		raw, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		nc := tls.Client(slowly{raw, step}, &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"})
		write(t, nc, stream)
		if err := nc.CloseWrite(); err != nil {
			t.Error(err)
		}
		acks, err := io.ReadAll(nc)
		if err != nil {
			t.Error(err)
		}
		_ = nc.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		o.acks, o.stats = acks, s.Stats()
		for len(peerErrors) > 0 {
			o.peerErrors = append(o.peerErrors, <-peerErrors)
		}
		same(t, o, want)
	}
}

// TestTLSUnderAnything: the connection under TLS need be no socket, and what is read comes as it
// would without TLS.
func TestTLSUnderAnything(t *testing.T) {
	ca := testcert.New(t)
	stream := append(packedMessage("t", 3000, ""), unhex(hexEvents+"c0"+oneEvent)...)
	want := play(nil, stream)
	o := new(outcome)
	s := &Server{
		Handler:  grouped{o},
		Endpoint: Endpoint{TLS: &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}},
	}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		q := reading(tls.Client(p.dial(), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}))
		for piece := range slices.Chunk(stream, 50000) {
			write(t, q, piece)
		}
		synctest.Wait()
		o.acks, _ = q.received()
		o.stats = s.Stats()
		if same(t, o, want); peerErrors() != "" || s.Stats().Memory != 0 {
			t.Errorf("%s, %d bytes held", peerErrors(), s.Stats().Memory)
		}
		_ = q.Close()
	})
}

// slowly is a connection whose writes are cut.
type slowly struct {
	net.Conn
	step int
}

func (s slowly) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = s.Conn.Write(p[n:min(len(p), n+s.step)])
		n += k
		runtime.Gosched()
	}
	return n, err
}

// TestTLSIdle: an idle connection of TLS holds no buffer of the server's.
func TestTLSIdle(t *testing.T) {
	ca := testcert.New(t)
	s := &Server{Handler: new(outcome)}
	address, _ := secured(t, s, &Endpoint{TLS: &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}}, "tcp")
	nc, err := tls.Dial("tcp", address, &tls.Config{RootCAs: ca.Pool})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	for range 3 {
		write(t, nc, unhex(hexPacked))
		if _, err := io.ReadFull(nc, make([]byte, 30)); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return s.Stats().Memory == 0 })
		whole := packedMessage("t", 3000, "")
		write(t, nc, whole[:len(whole)-5]) // and then nothing
		until(t, func() bool { return s.Stats().Memory > 0 })
		write(t, nc, whole[len(whole)-5:])
		if _, err := io.ReadFull(nc, make([]byte, 11)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTLSLittleMemory: connections of TLS wait for memory as others do, with records half read.
// None is cut, though the machine be slow.
func TestTLSLittleMemory(t *testing.T) {
	t.Run("plenty of cores", func(t *testing.T) { littleMemory(t, 12, 4) })
	t.Run("a share of one core", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		var burning sync.WaitGroup
		var over atomic.Bool
		defer burning.Wait()
		defer over.Store(true)
		for range 3 {
			burning.Go(func() {
				for n := 0; !over.Load(); n++ {
					_ = n
				}
			})
		}
		littleMemory(t, 8, 1)
	})
}

// littleMemory has so many clients send so many large chunks each.
func littleMemory(t *testing.T, clients, chunks int) {
	ca := testcert.New(t)
	var events atomic.Int64
	s := &Server{Memory: 1 << 20, MaxChunk: 1 << 20, Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
		events.Add(int64(c.Events))
		return nil
	})}
	address, peerErrors := secured(t, s, &Endpoint{TLS: &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}},
		"tcp")
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			c := &Client{Address: address, TLS: &tls.Config{RootCAs: ca.Pool}, Compress: "gzip"}
			for range chunks {
				if err := c.Send(withTimeout(t), &Chunk{Tag: "t", Entries: entries(5000), Events: 5000}); err != nil {
					t.Error(err)
				}
				if err := c.Send(withTimeout(t), oneChunk("")); err != nil {
					t.Error(err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if events.Load() != int64(clients*chunks*5001) || len(peerErrors) > 0 {
		t.Errorf("%d events, %d peerErrors", events.Load(), len(peerErrors))
	}
}

// TestTLSGoodbye: a server that reads nothing does not hold up the end of a client, nor a client
// that reads nothing that of a server.
func TestTLSGoodbye(t *testing.T) {
	ca := testcert.New(t)
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		shaken := make(chan struct{})
		go func() {
			_ = tls.Server(far, &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}).Handshake()
			close(shaken)
		}()
		c := &Client{
			Dial: func(context.Context) (net.Conn, error) { return near, nil },
			TLS:  &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"},
		}
		c.Connect(true)
		<-shaken
		synctest.Wait()
		began := time.Now()
		if err := c.Close(); err != nil || time.Since(began) > linger {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		_ = far.Close()
	})
	s := &Server{
		Handler:  new(outcome),
		Endpoint: Endpoint{TLS: &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}},
	}
	bubble(t, s, func(t *testing.T, p *pipes, _ func() string) {
		nc := p.dial()
		c := tls.Client(nc, &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", MaxVersion: tls.VersionTLS12})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		write(t, c, unhex(hexEvents)) // whose ack nobody reads
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := s.Close(); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		_ = nc.Close()
	})
}

// TestTLSWaitingHoldsLittle: connections that wait for memory hold no bytes that nobody counts, but
// for what package tls has of one record.
func TestTLSWaitingHoldsLittle(t *testing.T) {
	ca := testcert.New(t)
	const most = 24
	release := make(chan struct{})
	s := &Server{
		Memory: 1 << 20, MaxChunk: 1 << 20, StallTimeout: time.Hour,
		Handler: HandlerFunc(func(context.Context, *Chunk) error {
			<-release
			return nil
		}),
	}
	address, _ := secured(t, s, &Endpoint{TLS: &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}}, "tcp")
	defer close(release)
	whole := packedMessage("t", 6000, "")
	for range most {
		nc, err := tls.Dial("tcp", address, &tls.Config{RootCAs: ca.Pool, DynamicRecordSizingDisabled: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }()
		go func() { _, _ = nc.Write(bytes.Repeat(whole, 4)) }()
	}
	until(t, func() bool { return s.mem.Waiting() >= most/2 })
	held := 0
	for _, c := range s.all(func(c *remote) bool { return c.hold.Waits() }) {
		held += c.under.w - c.under.r
	}
	if held > 0 {
		t.Errorf("%d bytes were read ahead", held)
	}
}
