// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// caller is a connection whose peer sends a PING that answers the HELO it got, if it is to log in,
// and then pieces.
type caller struct {
	script
	login  bool
	answer []byte
	asked  bool
}

func (c *caller) Read(p []byte) (int, error) {
	if c.login && !c.asked {
		c.asked = true
		nonce := c.out.Bytes()[bytes.Index(c.out.Bytes(), []byte("\xc4\x10"))+2:][:16]
		c.answer = who{host: "h", key: "secret", nonce: string(nonce)}.ping()
		if len(c.pieces) > 0 {
			c.pieces[0] = append(c.answer, c.pieces[0]...) // in one segment
		} else {
			c.pieces = [][]byte{c.answer}
		}
	}
	return c.script.Read(p)
}

func (c *caller) SetDeadline(time.Time) error { return nil }

// playSecure is play for a server with a handshake.
func playSecure(login bool, sec *Security, pieces ...[]byte) (o *outcome, sender *Sender) {
	o = new(outcome)
	s := &Server{
		Handler: grouped{o}, PeerError: func(t PeerError) { o.peerErrors = append(o.peerErrors, t) },
		MaxChunk: 1 << 16, MaxDecompressed: 1 << 18, Memory: 1 << 18,
	}
	s.Endpoint.Security = sec
	s.now = func() time.Time { return time.Unix(946684800, 0) }
	peer := &caller{login: login}
	for _, p := range pieces {
		peer.pieces = append(peer.pieces, slices.Clone(p))
	}
	s.init()
	c := s.admit(peer, &s.Endpoint, nil)
	s.serve(c)
	_ = s.Close() // ends the watch too
	o.acks, o.stats = peer.out.Bytes(), s.Stats()
	return o, c.sender
}

// FuzzHandshakeServer: whatever comes before a login, nothing is accepted; whatever comes behind
// one is as it would be without; and it is the same however it is cut.
func FuzzHandshakeServer(f *testing.F) {
	for _, s := range []string{
		"", hexEvents, hexForward + hexPacked, "c0", "c1", "96 a4 50494e47 a0 a0 a0 a0 a0",
		"96 a4 50494e47 db ffffffff", "dd ffffffff", "7b 7d", "95 a4 50494e47 a0",
	} {
		for _, login := range []bool{false, true} {
			f.Add(unhex(s), []byte{0}, login, false)
			f.Add(unhex(s), []byte{7, 1}, login, true)
		}
	}
	f.Add(letterOf("PING", "h", "s", vectPing, "", ""), []byte{3}, false, false)
	f.Fuzz(func(t *testing.T, b, how []byte, login, once bool) {
		sec := &Security{SharedKey: "secret", Hostname: "s", DenyKeepalive: once}
		hello := len((&wire.Helo{Nonce: make([]byte, wire.NonceSize)}).Append(nil))
		if login {
			hello += len(letterOf("PONG", true, "", "s", vectPong))
		}
		whole, from := playSecure(login, sec, b)
		pieces, _ := playSecure(login, sec, vectors.Cut(b, how)...)
		for _, o := range []*outcome{whole, pieces} {
			if len(o.acks) < hello {
				t.Fatalf("wrote %q", o.acks)
			}
			if o.acks = o.acks[hello:]; o.stats.Memory != 0 {
				t.Errorf("memory left: %d", o.stats.Memory)
			}
			// Of what came too much: seen if it came early.
			o.peerErrors = slices.DeleteFunc(o.peerErrors,
				func(tr PeerError) bool { return once && login && tr.Kind == PeerDenied })
			for _, tr := range o.peerErrors {
				if s := tr.Error(); strings.ContainsAny(s, "\n\r") || strings.Contains(s, "secret") || len(s) > 1000 {
					t.Errorf("%q", s)
				}
			}
		}
		same(t, pieces, whole)
		other, _ := wire.Alien(b) // of a plain connection; behind a login nothing but Forward is expected
		switch {
		case !login && (len(whole.events) > 0 || whole.stats.Messages > 0 || len(whole.acks) > 0 &&
			!bytes.HasPrefix(whole.acks, []byte("\x95\xa4PONG\xc2")) || from.Host != ""):
			t.Errorf("accepted: %q, %q", whole.events, whole.acks)
		case login && from.Host != "h":
			t.Errorf("not accepted: %+v", from)
		case login && !once && other == "" && (len(b) == 0 || b[0] != '{' && b[0] != '['):
			plain := play(func(s *Server) { s.MaxChunk, s.MaxDecompressed, s.Memory = 1<<16, 1<<18, 1<<18 }, b)
			same(t, whole, plain)
		case login && once && whole.stats.Messages > 1:
			t.Errorf("%d messages", whole.stats.Messages)
		}
	})
}

// FuzzHandshakeClient: no server that does not know the key logs a client in, and what is wrong
// with it is the same however it is cut, fits into a line, and has no secret.
func FuzzHandshakeClient(f *testing.F) {
	for _, s := range []string{
		"", hexHelo, hexHelo + "c0", hexHelo + "95 a4 504f4e47 c3 a0 a1 73 a0",
		hexHelo + "95 a4 504f4e47 c2 a3 0a0a0a a0 a0", hexHelo + "92 a4 504f4e47 c2",
		"92 a4 48454c4f df ffffffff", "15 0303", "92 a4 48454c4f 81 a5 6e6f6e6365 a0", hexHelo + hexAck,
	} {
		f.Add(unhex(s), []byte{0})
		f.Add(unhex(s), []byte{9, 0, 60})
	}
	f.Add(append(unhex(hexHelo), letterOf("PONG", true, "", "server.example", vectPong)...), []byte{5})
	f.Fuzz(func(t *testing.T, b, how []byte) {
		shake := func(pieces ...[]byte) string {
			sc := &script{}
			for _, p := range pieces {
				sc.pieces = append(sc.pieces, slices.Clone(p))
			}
			l := &Login{Hostname: "client.example", SharedKey: "hush hush", Username: "sender", Password: "hunter2"}
			_, err := l.Handshake(sc)
			if err == nil {
				t.Error("logged in")
			}
			err = cleanError{err}
			if s := err.Error(); len(s) > 1000 || strings.ContainsAny(s, "\n\r") || strings.Contains(s, l.SharedKey) ||
				strings.Contains(s, l.Password) {
				t.Errorf("%q", s)
			}
			return fmt.Sprint(err, errors.Is(err, ErrDenied), sc.out.Len())
		}
		if whole, pieces := shake(b), shake(vectors.Cut(b, how)...); whole != pieces {
			t.Errorf("%s, in pieces %s", whole, pieces)
		}
	})
}
