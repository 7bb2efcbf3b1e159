// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
)

// Package tls answers in the middle of a read when a peer updates its keys (RFC 8446, 4.6.3) and
// asks for the same. It never asks itself; so the tests make such records by hand.

const (
	typeHandshake = 22
	typeData      = 23
)

// sealer makes the records of one end of a connection of TLS 1.3, in its place.
type sealer struct {
	t      *testing.T
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

// keyLog finds a secret among what package tls logs of them.
type keyLog struct{ bytes.Buffer }

func (k *keyLog) sealer(t *testing.T, label string, state tls.ConnectionState) *sealer {
	t.Helper()
	if state.CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
		// Package tls has AES in assembly for these, and chooses it there.
		slow := runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64"
		needs.Have(t, slow, "needs a processor with instructions for AES: %s was chosen",
			tls.CipherSuiteName(state.CipherSuite))
		needs.Skip(t, "%s was chosen, as it is where AES is slow", tls.CipherSuiteName(state.CipherSuite))
	}
	for line := range strings.Lines(k.String()) {
		if f := strings.Fields(line); f[0] == label {
			secret, err := hex.DecodeString(f[2])
			if err != nil {
				t.Fatal(err)
			}
			s := &sealer{t: t}
			s.use(secret)
			return s
		}
	}
	t.Fatalf("no %s in %s", label, k)
	return nil
}

func (s *sealer) use(secret []byte) {
	block, err := aes.NewCipher(s.expand(secret, "key", 16))
	if err == nil {
		s.aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.secret, s.iv, s.seq = secret, s.expand(secret, "iv", 12), 0
}

func (s *sealer) expand(secret []byte, label string, n int) []byte {
	label = "tls13 " + label
	info := append(append([]byte{0, byte(n), byte(len(label))}, label...), 0)
	key, err := hkdf.Expand(sha256.New, secret, string(info), n)
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// record makes a record of a type.
func (s *sealer) record(kind byte, data []byte) []byte {
	nonce := bytes.Clone(s.iv)
	for i, c := range binary.BigEndian.AppendUint64(nil, s.seq) {
		nonce[4+i] ^= c
	}
	s.seq++
	size := len(data) + 1 + s.aead.Overhead()
	head := []byte{typeData, 3, 3, byte(size >> 8), byte(size)}
	return s.aead.Seal(head, nonce, append(bytes.Clone(data), kind), head)
}

// update makes the record that says that the next ones have new keys, and asks the peer for the
// same.
func (s *sealer) update() []byte {
	r := s.record(typeHandshake, []byte{24, 0, 0, 1, 1})
	s.use(s.expand(s.secret, "traffic upd", sha256.Size))
	return r
}

// TestKeyUpdate: a deadline that was for acks does not end, later, what TLS answers by itself.
func TestKeyUpdate(t *testing.T) {
	ca := testcert.New(t)
	s := &Server{
		Handler:  new(outcome),
		Endpoint: Endpoint{TLS: &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}},
	}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		var log keyLog
		nc := p.dial()
		c := tls.Client(nc, &tls.Config{
			RootCAs: ca.Pool, ServerName: "localhost", KeyLogWriter: &log,
			MinVersion: tls.VersionTLS13,
		})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		out := log.sealer(t, "CLIENT_TRAFFIC_SECRET_0", c.ConnectionState())
		q := reading(c)
		for _, id := range "ab" {
			write(t, nc, out.record(typeData, withID(byte(id))))
			synctest.Wait()
			if got, _ := q.received(); !bytes.HasSuffix(got, ackOf(string(id))) {
				t.Errorf("%c: %q, %s", id, got, peerErrors())
			}
			<-time.After(time.Hour)
			_, _ = nc.Write(out.update()) // if it was closed, there will be no ack
		}
		_ = q.Close()
	})
}

// TestKeyUpdateNotRead: who asks for answers and does not read them is cut.
func TestKeyUpdateNotRead(t *testing.T) {
	ca := testcert.New(t)
	s := &Server{
		Handler: new(outcome),
		Endpoint: Endpoint{TLS: &tls.Config{
			Certificates:           []tls.Certificate{ca.Server.TLS},
			SessionTicketsDisabled: true,
		}},
	}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		var log keyLog
		nc := p.dial()
		c := tls.Client(nc, &tls.Config{
			RootCAs: ca.Pool, ServerName: "localhost", KeyLogWriter: &log,
			MinVersion: tls.VersionTLS13,
		})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		out := log.sealer(t, "CLIENT_TRAFFIC_SECRET_0", c.ConnectionState())
		write(t, nc, out.record(typeData, unhex(oneEvent)))
		write(t, nc, out.update())
		<-time.After(DefaultWriteTimeout + time.Second)
		synctest.Wait()
		if st := s.Stats(); st.Connections != 0 || peerErrors() != "slow reader: connection closed" {
			t.Errorf("%d connections, %q", st.Connections, peerErrors())
		}
		_ = nc.Close()
	})
}

// TestClientKeyUpdate: the same at the other end.
func TestClientKeyUpdate(t *testing.T) {
	ca := testcert.New(t)
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		var log keyLog
		srv := tls.Server(far, &tls.Config{
			Certificates: []tls.Certificate{ca.Server.TLS}, KeyLogWriter: &log, MinVersion: tls.VersionTLS13,
			SessionTicketsDisabled: true,
		})
		shaken := make(chan error)
		go func() { shaken <- srv.Handshake() }()
		c := &Client{
			Dial:   func(context.Context) (net.Conn, error) { return near, nil },
			TLS:    &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"},
			Report: func(err error) { t.Error(err) },
		}
		c.Connect(true)
		if err := <-shaken; err != nil {
			t.Fatal(err)
		}
		out := log.sealer(t, "SERVER_TRAFFIC_SECRET_0", srv.ConnectionState())
		q := reading(srv)
		for _, id := range "ab" {
			sent := make(chan error, 1)
			go func() { sent <- c.Send(t.Context(), oneChunk(string(id))) }()
			synctest.Wait()
			if got, _ := q.received(); !bytes.Contains(got, []byte{0xa1, byte(id)}) {
				t.Fatalf("%c: %q", id, got)
			}
			write(t, far, out.record(typeData, wire.AppendAck(nil, []byte(string(id)), false, false)))
			if err := <-sent; err != nil {
				t.Error(err)
			}
			<-time.After(time.Hour)
			write(t, far, out.update())
			synctest.Wait()
		}
		_ = far.Close()
		c.Report = nil
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// narrow is a listener whose connections have room for little that is not read.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		err = nc.(*net.UnixConn).SetWriteBuffer(1)
	}
	return nc, err
}

// TestKeyUpdateNotReadFromSocket is TestKeyUpdateNotRead where the answers are written within the
// poller's callback.
func TestKeyUpdateNotReadFromSocket(t *testing.T) {
	ca := testcert.New(t)
	peerErrors := make(chan PeerError, 9)
	s := &Server{
		Handler: new(outcome), WriteTimeout: 50 * time.Millisecond, PeerError: func(tr PeerError) { peerErrors <- tr },
		Endpoint: Endpoint{TLS: &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}},
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(narrow{l}) }()
	nc, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var log keyLog
	c := tls.Client(nc, &tls.Config{
		RootCAs: ca.Pool, ServerName: "localhost", KeyLogWriter: &log,
		MinVersion: tls.VersionTLS13,
	})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	out := log.sealer(t, "CLIENT_TRAFFIC_SECRET_0", c.ConnectionState())
	for range 1 << 20 {
		if _, err = nc.Write(append(out.update(), out.record(typeData, []byte{0xc0})...)); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("all was taken, and nothing was read")
	}
	if tr := <-peerErrors; tr.Kind != PeerSlowReader {
		t.Error(tr)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, ErrServerClosed) {
		t.Error(err)
	}
	_ = nc.Close()
}
