// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/msgpack"
)

// Rules 31 to 40 of docs/forward.md, at both ends. What a peer sends is put together here by hand,
// not by the code that is tested.

const (
	hexNonce = "000102030405060708090a0b0c0d0e0f"
	hexAuth  = "101112131415161718191a1b1c1d1e1f"
	hexHelo  = "92 a4 48454c4f 83 a5 6e6f6e6365 c4 10 " + hexNonce + " a4 61757468 c4 10 " + hexAuth +
		" a9 6b656570616c697665 c3"
	vectPing  = "c6a0ef3d907f13d0b1205b157ab0f84ba459f7e27b5c6a97e65320db57211a1e3ca86484e305eb301adddbe6bbfa7331fdc9280e70d7c9e0956848f9e14e4fa2"
	vectUser  = "7577e2a37adadb46203f0a11b49e2d6a05d7daed04a8f0e6723484cfb1c28f61236bfc9836a0cac7fac743cc518dc7021df1c885d81ed213894e43326e34fbfb"
	vectPong  = "bbf9e85a5be1bf77fc7c4b879e901d387137d2f2c94a0755740ee4741d3f0402f8559e7face2c886a695971ba357b2676cf0af4897f1efeae521360479e35aab"
	oneEvent  = "93 a1 74 05 81 a1 6d a1 62"
	hexEvents = "94 a1 74 05 81 a1 6d a1 62 81 a5 6368756e6b a1 61" // with the id a
)

func sha(parts ...string) string {
	sum := sha512.Sum512([]byte(strings.Join(parts, "")))
	return hex.EncodeToString(sum[:])
}

// letter is an array of str.
func letterOf(parts ...any) []byte {
	b := msgpack.AppendArrayHeader(nil, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = msgpack.AppendString(b, p)
		case []byte:
			b = msgpack.AppendBin(b, p)
		case bool:
			b = msgpack.AppendBool(b, p)
		case int:
			b = msgpack.AppendInt(b, int64(p))
		case nil:
			b = msgpack.AppendNil(b)
		}
	}
	return b
}

// who is a client as a test plays it.
type who struct {
	host, key, user, password string
	nonce, auth               string // of the HELO
}

func (w who) ping() []byte {
	const salt = "0123456789abcdef"
	user, digest := "", ""
	if w.auth != "" {
		user, digest = w.user, sha(w.auth, w.user, w.password)
	}
	return letterOf("PING", w.host, salt, sha(salt, w.host, w.nonce, w.key), user, digest)
}

// helo reads the HELO that a server writes to a peer in a bubble.
func (q *peer) helo(t *testing.T) (nonce, auth string, keepalive bool) {
	t.Helper()
	synctest.Wait()
	got, writes := q.received()
	t0, n, err := msgpack.ReadToken(got)
	if err != nil || t0.Kind != msgpack.KindArray || t0.Len != 2 || writes != 1 {
		t.Fatalf("HELO %x in %d writes", got, writes)
	}
	if !bytes.Equal(got[n:n+5], []byte("\xa4HELO")) {
		t.Fatalf("HELO %x", got)
	}
	text := string(got)
	_, after, _ := strings.Cut(text, "\xa5nonce\xc4\x10")
	nonce = after[:16]
	_, after, _ = strings.Cut(text, "\xa4auth\xc4")
	auth = after[1 : 1+after[0]]
	keepalive = strings.HasSuffix(text, "\xa9keepalive\xc3")
	q.mu.Lock()
	q.got, q.writes = nil, 0
	q.mu.Unlock()
	return nonce, auth, keepalive
}

// logIn plays the client until after the PING, and returns what the server wrote then.
func (q *peer) logIn(t *testing.T, w who, behind ...byte) string {
	t.Helper()
	w.nonce, w.auth, _ = q.helo(t)
	write(t, q, append(w.ping(), behind...))
	synctest.Wait()
	got, _ := q.received()
	return string(got)
}

const (
	noKey  = "\x95\xa4PONG\xc2\xb3shared_key mismatch\xa0\xa0"
	noUser = "\x95\xa4PONG\xc2\xbausername/password mismatch\xa0\xa0"
	noName = "\x95\xa4PONG\xc2\xb7anonymous source denied\xa0\xa0"
	noPing = "\x95\xa4PONG\xc2\xb4invalid ping message\xa0\xa0"
	yes    = "\x95\xa4PONG\xc3\xa0"
)

func TestRule31Helo(t *testing.T) {
	nonce, auth := unhex(hexNonce), unhex(hexAuth)
	vector := wire.Helo{Nonce: nonce, Auth: auth, Keepalive: true}
	if got := vector.Append(nil); !bytes.Equal(got, unhex(hexHelo)) {
		t.Errorf("%x", got)
	}
	for name, tc := range map[string]struct {
		in   string
		want wire.Helo
		fail string
	}{
		"vector": {hexHelo, vector, ""},
		"str": {
			"92 a4 48454c4f 82 a4 61757468 a0 a5 6e6f6e6365 b0" + hexNonce,
			wire.Helo{Nonce: nonce, Keepalive: true},
			"",
		},
		"Fluent Bit's": {
			"92 a4 48454c4f 82 a5 6e6f6e6365 c4 10" + hexNonce + "a4 61757468 c4 00",
			wire.Helo{Nonce: nonce, Keepalive: true},
			"",
		},
		"keys as bin": {
			"92 c4 04 48454c4f 81 c4 05 6e6f6e6365 c4 10" + hexNonce,
			wire.Helo{Nonce: nonce, Keepalive: true},
			"",
		},
		"unknown keys": {"92 a4 48454c4f 84 05 90 a1 78 81 a1 79 c0 a9 6b656570616c697665 c2 a5 6e6f6e6365 c4 10" +
			hexNonce, wire.Helo{Nonce: nonce}, ""},
		"odd keepalive": {
			"92 a4 48454c4f 82 a9 6b656570616c697665 c0 a5 6e6f6e6365 c4 10" + hexNonce,
			wire.Helo{Nonce: nonce, Keepalive: true},
			"",
		},
		"longer": {
			"dd 00000003 a4 48454c4f df 00000001 a5 6e6f6e6365 c6 00000010" + hexNonce + "c0",
			wire.Helo{Nonce: nonce, Keepalive: true},
			"",
		},
		"no nonce":  {"92 a4 48454c4f 81 a4 61757468 a0", wire.Helo{}, "without a nonce"},
		"nonce int": {"92 a4 48454c4f 81 a5 6e6f6e6365 05", wire.Helo{}, "nonce is wrong"},
		"auth int":  {"92 a4 48454c4f 82 a5 6e6f6e6365 a1 61 a4 61757468 05", wire.Helo{}, "auth is wrong"},
		"no map":    {"92 a4 48454c4f 90", wire.Helo{}, "without its map"},
		"alone":     {"91 a4 48454c4f", wire.Helo{}, "without its map"},
		"other":     {"92 a4 50494e47 80", wire.Helo{}, "no HELO"},
		"empty":     {"90", wire.Helo{}, "no HELO"},
	} {
		var h wire.Helo
		err := h.Parse(unhex(tc.in))
		if tc.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !bytes.Equal(h.Nonce, tc.want.Nonce) || !bytes.Equal(h.Auth, tc.want.Auth) ||
			h.Keepalive != tc.want.Keepalive {
			t.Errorf("%s: %+v %v", name, h, err)
		}
	}
	s := &Server{Handler: new(outcome), Endpoint: Endpoint{Security: &Security{SharedKey: "secret"}}}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		one, two := p.peer(), p.peer()
		n1, a1, k1 := one.helo(t)
		n2, _, _ := two.helo(t)
		if n1 == n2 || a1 != "" || !k1 {
			t.Errorf("%x %x %x %t", n1, n2, a1, k1)
		}
		_, _ = one.Close(), two.Close()
		synctest.Wait()
		if peerErrors() != "" { // as those do that look whether somebody listens
			t.Error(peerErrors())
		}
	})
}

func TestRule32Ping(t *testing.T) {
	want := wire.Ping{
		Host: []byte("client.example"), Salt: []byte("salt"), Digest: []byte(vectPing), User: []byte("sender"),
		Password: []byte(vectUser),
	}
	b := letterOf("PING", "client.example", "salt", vectPing, "sender", vectUser)
	if got := want.Append(nil); !bytes.Equal(got, b) {
		t.Errorf("%x", got)
	}
	sec := &Security{SharedKey: "secret", Users: map[string]string{"sender": "pw"}, Hostname: "server.example"}
	h := wire.Helo{Nonce: unhex(hexNonce), Auth: unhex(hexAuth)}
	for name, tc := range map[string]struct {
		in   []byte
		want string // of the reason, or of the mistake
	}{
		"vector": {b, ""},
		"bin": {letterOf("PING", []byte("client.example"), []byte("salt"), []byte(vectPing), []byte("sender"),
			[]byte(vectUser)), ""},
		"wrong digest": {letterOf("PING", "client.example", "salt", strings.Replace(vectPing, "c", "d", 1), "sender",
			vectUser), reasonKey},
		"cut digest":  {letterOf("PING", "client.example", "salt", vectPing[:127], "sender", vectUser), reasonKey},
		"no digest":   {letterOf("PING", "client.example", "salt", "", "sender", vectUser), reasonKey},
		"other host":  {letterOf("PING", "other.example", "salt", vectPing, "sender", vectUser), reasonKey},
		"password":    {letterOf("PING", "client.example", "salt", vectPing, "sender", vectPing), reasonUser},
		"no password": {letterOf("PING", "client.example", "salt", vectPing, "sender", nil), reasonUser},
		"user":        {letterOf("PING", "client.example", "salt", vectPing, "Sender", vectUser), reasonUser},
		"no user":     {letterOf("PING", "client.example", "salt", vectPing, "", ""), reasonUser},
		"both":        {letterOf("PING", "client.example", "salt", "x", "y", "z"), reasonKey},
		"five":        {letterOf("PING", "client.example", "salt", vectPing, "sender"), "a PING of 5 elements"},
		"seven": {
			letterOf("PING", "client.example", "salt", vectPing, "sender", vectUser, ""),
			"a PING of 7 elements",
		},
		"int":        {letterOf("PING", 5, "salt", vectPing, "sender", vectUser), "element 1"},
		"nil digest": {letterOf("PING", "client.example", "salt", nil, "sender", vectUser), "element 3"},
		"PONG":       {letterOf("PONG", "client.example", "salt", vectPing, "sender", vectUser), "no PING"},
	} {
		var p wire.Ping
		if err := p.Parse(tc.in); err != nil {
			if tc.want == "" || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if a := sec.answer(&h, &p, netip.Addr{}); a.OK != (tc.want == "") || string(a.Reason) != tc.want {
			t.Errorf("%s: %t %s", name, a.OK, a.Reason)
		} else if a.OK && string(a.Digest) != vectPong {
			t.Errorf("%s: digest %s", name, a.Digest)
		}
	}
}

func TestRule33Pong(t *testing.T) {
	good := wire.Pong{OK: true, Host: []byte("server.example"), Digest: []byte(vectPong)}
	if got := good.Append(nil); !bytes.Equal(got, letterOf("PONG", true, "", "server.example", vectPong)) {
		t.Errorf("%x", got)
	}
	o := new(outcome)
	s := &Server{Handler: o, Endpoint: Endpoint{Security: &Security{SharedKey: "secret", Hostname: "server.example"}}}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		q := p.peer()
		nonce, auth, _ := q.helo(t)
		write(t, q, who{host: "a", key: "secret", nonce: nonce, auth: auth}.ping())
		synctest.Wait()
		got, writes := q.received()
		if want := letterOf("PONG", true, "", "server.example",
			sha("0123456789abcdef", "server.example", nonce, "secret")); !bytes.Equal(got, want) || writes != 1 {
			t.Errorf("%q in %d writes, want %q", got, writes, want)
		}
		if _ = q.Close(); peerErrors() != "" {
			t.Error(peerErrors())
		}
		q = p.peer()
		if got := q.logIn(t, who{host: "a\nb", key: "Secret"}, unhex(oneEvent)...); got != noKey || !q.closed() {
			t.Errorf("%q, closed %t", got, q.closed())
		}
		if peerErrors() != "denied: connection closed" || len(o.events) > 0 {
			t.Error(peerErrors(), o.events)
		}
	})
}

// fakeServer is what a server writes: the HELO of the vectors, and what pong makes of the PING.
func fakeServer(hello []byte, pong func(salt string) []byte) func(int, *fakeConn) {
	return func(_ int, c *fakeConn) {
		_, _ = c.Write(hello)
		var in wire.LetterReader
		b, err := in.Read(c, 4096)
		var p wire.Ping
		if err != nil || p.Parse(b) != nil {
			return
		}
		if _, err := c.Write(pong(string(p.Salt))); err == nil {
			c.ackAll()
		}
	}
}

func TestRule34ClientVerifies(t *testing.T) {
	nonce := string(unhex(hexNonce))
	proof := func(salt string) string { return sha(salt, "server", nonce, "secret") }
	for name, tc := range map[string]struct {
		pong func(salt string) []byte
		want string
	}{
		"good": {func(s string) []byte { return letterOf("PONG", true, "", "server", proof(s)) }, ""},
		"good, bin": {func(s string) []byte {
			return letterOf("PONG", true, nil, []byte("server"),
				[]byte(proof(s)))
		}, ""},
		"own digest": {func(s string) []byte {
			return letterOf("PONG", true, "", "server",
				sha(s, "server", nonce, "other"))
		}, "does not know the shared key"},
		"no digest": {
			func(string) []byte { return letterOf("PONG", true, "", "server", "") },
			"does not know the shared key",
		},
		"nil digest": {
			func(string) []byte { return letterOf("PONG", true, "", "server", nil) },
			"does not know the shared key",
		},
		"int digest":     {func(string) []byte { return letterOf("PONG", true, "", "server", 5) }, "element 4"},
		"missing digest": {func(string) []byte { return letterOf("PONG", true, "", "server") }, "a PONG of 4 elements"},
		"cut digest": {
			func(s string) []byte { return letterOf("PONG", true, "", "server", proof(s)[:64]) },
			"does not know the shared key",
		},
		"other host": {
			func(s string) []byte { return letterOf("PONG", true, "", "Server", proof(s)) },
			"does not know the shared key",
		},
		"neither": {
			func(s string) []byte { return letterOf("PONG", nil, "", "server", proof(s)) },
			"neither yes nor no",
		},
		"a word": {
			func(s string) []byte { return letterOf("PONG", "true", "", "server", proof(s)) },
			"neither yes nor no",
		},
		"key": {
			func(string) []byte { return letterOf("PONG", false, "shared_key mismatch", "", "") },
			`wrong shared key: "shared_key mismatch"`,
		},
		"user": {
			func(string) []byte { return letterOf("PONG", false, "username/password mismatch", "", "") },
			"wrong user name or password: ",
		},
		"anonymous": {func(string) []byte {
			return letterOf("PONG", false, "anonymous source host '192.0.2.1' denied", "", "")
		}, "not a client that the server knows: "},
		"short no": {func(string) []byte { return letterOf("PONG", false) }, "login denied: "},
		"odd no":   {func(string) []byte { return letterOf("PONG", false, 5, 6, 7) }, "login denied: "},
		"lines":    {func(string) []byte { return letterOf("PONG", false, "a\nb\x1b[2J") }, `"a\nb\x1b[2J"`},
		"over-long": {
			func(string) []byte { return letterOf("PONG", false, strings.Repeat("x", 60000)) },
			strings.Repeat("x", 200) + `"…`,
		},
		"longer than any": {
			func(string) []byte { return letterOf("PONG", false, strings.Repeat("x", 70000)) },
			"no PONG",
		},
		"an ack": {func(string) []byte { return unhex("81 a3 61636b a1 61") }, "no PONG"},
		"HELO":   {func(string) []byte { return unhex(hexHelo) }, "no PONG"},
		"two": {func(s string) []byte {
			return append(letterOf("PONG", true, "", "server", proof(s)),
				0xc0)
		}, "went on behind its PONG"},
	} {
		t.Run(name, func(t *testing.T) {
			var reports []error
			c := &Client{Login: &Login{
				SharedKey: "secret", Hostname: "client.example", Username: "sender",
				Password: "hunter2",
			}, Report: func(err error) { reports = append(reports, err) }}
			withClient(t, c, fakeServer(unhex(hexHelo), tc.pong), func(t *testing.T, f *fake) {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				err := c.Send(ctx, oneChunk("a"))
				synctest.Wait()
				if tc.want == "" {
					if err != nil || f.logged() != "1: a" {
						t.Errorf("%v, %s", err, f.logged())
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 700 ||
					strings.ContainsAny(err.Error(), "\n\x1b") {
					t.Errorf("%q, want %q", err, tc.want)
				}
				if len(reports) == 0 || !strings.Contains(reports[0].Error(), "192.0.2.1:24224: the login: ") {
					t.Errorf("%v", reports)
				}
				for _, secret := range []string{`"secret"`, "hunter2", vectPing} {
					if strings.Contains(fmt.Sprint(err, reports), secret) {
						t.Errorf("%q is in %v", secret, err)
					}
				}
				if f.logged() != "" {
					t.Errorf("sent all the same: %s", f.logged())
				}
				if strings.Contains(tc.want, "mismatch") != errors.Is(err, ErrDenied) &&
					strings.Contains(tc.want, "mismatch") {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// TestRule34Echo: a server that sends the client's own name and digest back knows nothing.
func TestRule34Echo(t *testing.T) {
	c := &Client{Login: &Login{SharedKey: "secret", Hostname: "client.example", Username: "sender", Password: "pw"}}
	withClient(t, c, func(_ int, s *fakeConn) {
		_, _ = s.Write(unhex(hexHelo))
		var in wire.LetterReader
		var p wire.Ping
		if b, err := in.Read(s, 4096); err != nil || p.Parse(b) != nil {
			return
		}
		if _, err := s.Write(letterOf("PONG", true, "", string(p.Host), string(p.Digest))); err == nil {
			s.ackAll()
		}
	}, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := c.Send(ctx, oneChunk("a")); !errors.Is(err, ErrDenied) ||
			!strings.Contains(err.Error(), "the server has the name of this client") || f.logged() != "" {
			t.Errorf("%v, sent %q", err, f.logged())
		}
	})
}

// TestRule34SameName: both ends on one machine, with the names that they have of it.
func TestRule34SameName(t *testing.T) {
	s := &Server{Handler: new(outcome), Endpoint: Endpoint{Security: &Security{SharedKey: "secret"}}}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		c := &Client{
			Dial:  func(context.Context) (net.Conn, error) { return p.dial(), nil },
			Login: &Login{SharedKey: "secret"},
		}
		if err := c.Send(t.Context(), oneChunk("a")); err != nil || peerErrors() != "" {
			t.Error(err, peerErrors())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	sec := &Security{SharedKey: "secret", Hostname: "client.example"}
	h := wire.Helo{Nonce: unhex(hexNonce)}
	p := wire.Ping{Host: []byte("client.example"), Salt: []byte("salt"), Digest: []byte(vectPing)}
	if a := sec.answer(&h, &p, netip.Addr{}); !a.OK || string(a.Host) != "client.example-server" ||
		string(a.Digest) == vectPing || sec.Hostname != "client.example" {
		t.Errorf("%+v", a)
	}
}

func TestRule35Salt(t *testing.T) {
	var salts []string
	c := &Client{
		Login:       &Login{SharedKey: "secret", Hostname: "client.example", Username: "sender", Password: "pw"},
		NoKeepalive: true,
	}
	withClient(t, c, func(_ int, s *fakeConn) {
		_, _ = s.Write(unhex(hexHelo))
		var in wire.LetterReader
		b, err := in.Read(s, 4096)
		if err != nil {
			return
		}
		rest, ok := strings.CutPrefix(string(b), "\x96\xa4PING\xaeclient.example\xd9\x20")
		if !ok {
			t.Errorf("PING %q", b)
			return
		}
		salt := rest[:32]
		if bits, err := hex.DecodeString(salt); err != nil || len(bits) != 16 {
			t.Errorf("salt %q", salt)
		}
		salts = append(salts, salt)
		nonce := string(unhex(hexNonce))
		want := "\xd9\x80" + sha(salt, "client.example", nonce, "secret") + "\xa6sender\xd9\x80" + vectUser
		if rest[32:] != want {
			t.Errorf("PING ends with %q, want %q", rest[32:], want)
		}
		_, _ = s.Write(letterOf("PONG", true, "", "s", sha(salt, "s", nonce, "secret")))
		s.ackAll()
	}, func(t *testing.T, _ *fake) {
		for i := range 2 {
			if err := c.Send(t.Context(), oneChunk(string(rune('a'+i)))); err != nil {
				t.Error(err)
			}
		}
		if len(salts) != 2 || salts[0] == salts[1] {
			t.Error(salts)
		}
	})
}

func TestRule36PingInPieces(t *testing.T) {
	o := new(outcome)
	s := &Server{Handler: grouped{o}, Endpoint: Endpoint{Security: &Security{SharedKey: "secret", Hostname: "s"}}}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		for name, cut := range map[string]int{"byte by byte": 1, "two": 2, "seven": 7, "one segment": 1 << 20} {
			o.events = nil
			q := p.peer()
			nonce, auth, _ := q.helo(t)
			stream := append(who{host: "a", key: "secret", nonce: nonce, auth: auth}.ping(), unhex(hexEvents)...)
			for piece := range slices.Chunk(stream, cut) {
				write(t, q, piece)
				synctest.Wait()
			}
			got, _ := q.received()
			if !strings.HasPrefix(string(got), yes) || !bytes.HasSuffix(got, unhex("81 a3 61636b a1 61")) ||
				len(o.events) != 1 {
				t.Errorf("%s: %q, events %q", name, got, o.events)
			}
			_ = q.Close()
			synctest.Wait()
		}
		if peerErrors() != "" {
			t.Error(peerErrors())
		}
	})
}

func TestRule36EventBeforePing(t *testing.T) {
	for name, in := range map[string][]byte{
		"event":     unhex(hexEvents),
		"packed":    unhex(hexPacked),
		"large":     packedMessage("t", 1000, ""),
		"nil":       {0xc0},
		"int":       {5},
		"garbage":   {0xc1},
		"deep":      bytes.Repeat([]byte{0x91}, 20),
		"claims":    unhex("96 a4 50494e47 db ffffffff"),
		"count":     unhex("dd ffffffff"),
		"long ping": letterOf("PING", strings.Repeat("x", wire.MaxPing)),
		"malformed": letterOf("PING", "a", "b"),
		"JSON":      []byte(`["t", 5, {"m":"b"}]`), // docs/forward.md rule 37
		"object":    []byte(`{"a":1}`),
		"HTTP":      []byte("GET / HTTP/1.1\r\n\r\n"),
		"TLS":       unhex("16 0301 0005 01"),
	} {
		t.Run(name, func(t *testing.T) {
			o := new(outcome)
			s := &Server{Handler: grouped{o}, Endpoint: Endpoint{Security: &Security{SharedKey: "secret"}}}
			bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
				q := p.peer()
				w := who{host: "a", key: "secret"}
				w.nonce, w.auth, _ = q.helo(t)
				_, _ = q.Write(append(in, append(w.ping(), unhex(oneEvent)...)...)) // it may close before the end
				synctest.Wait()
				if got, _ := q.received(); string(got) != noPing || !q.closed() || len(o.events) > 0 {
					t.Errorf("%q, closed %t, events %q", got, q.closed(), o.events)
				}
				if peerErrors() != "handshake failed: connection closed" {
					t.Error(peerErrors())
				}
				if st := s.Stats(); st.Messages != 0 || st.Chunks != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

func TestHandshakeEnds(t *testing.T) {
	var told []PeerError
	s := &Server{
		Handler: new(outcome), HandshakeTimeout: 3 * time.Second,
		Endpoint: Endpoint{Security: &Security{SharedKey: "secret"}},
	}
	s.PeerError = func(tr PeerError) { told = append(told, tr) }
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		q := p.peer()
		q.helo(t)
		<-time.After(2 * time.Second)
		write(t, q, []byte{0x96}) // that does not buy time
		<-time.After(time.Second)
		synctest.Wait()
		if !q.closed() || len(told) != 1 || told[0].Kind != PeerHandshakeFailed ||
			!strings.Contains(told[0].Error(), "not done in 3s: no PING") {
			t.Errorf("%t %v", q.closed(), told)
		}
		q = p.peer()
		q.helo(t)
		write(t, q, []byte{0x96})
		_ = q.Close()
		synctest.Wait()
		if len(told) != 2 || !strings.Contains(told[1].Error(), "the stream ended within the PING") {
			t.Errorf("%v", told)
		}
		idle := p.peer() // through the handshake, and then as quiet as it likes: a heartbeat
		if got := idle.logIn(t, who{host: "a", key: "secret"}); !strings.HasPrefix(got, yes) {
			t.Errorf("%q", got)
		}
		<-time.After(time.Hour)
		if idle.closed() {
			t.Error("an idle connection was closed")
		}
		_ = idle.Close()
		synctest.Wait()
		if len(told) != 2 {
			t.Errorf("%v", told)
		}
		for range 5 { // Shutdown waits for nobody's handshake
			p.peer().helo(t)
		}
		began := time.Now()
		if err := s.Shutdown(t.Context()); err != nil || time.Since(began) > 0 || len(told) != 2 {
			t.Errorf("%v after %v, %v", err, time.Since(began), told)
		}
	})
}

func TestShutdownBeforeHelo(t *testing.T) {
	s := &Server{Handler: new(outcome), Endpoint: Endpoint{Security: &Security{SharedKey: "secret"}}}
	bubble(t, s, func(t *testing.T, p *pipes, _ func() string) {
		p.dial()
		synctest.Wait() // nobody reads: it hangs in writing HELO
		began := time.Now()
		if err := s.Shutdown(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestRule37NoOracle(t *testing.T) {
	sec := &Security{SharedKey: "secret", Hostname: "s", Users: map[string]string{"here": "pw", "": ""}}
	s := &Server{Handler: new(outcome), Endpoint: Endpoint{Security: sec}}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		for _, tc := range []struct {
			w    who
			want string
		}{
			{who{key: "secret", user: "here", password: "pw"}, yes},
			{who{key: "secret", user: "here", password: "px"}, noUser},
			{who{key: "secret", user: "gone", password: "pw"}, noUser},
			{who{key: "Secret", user: "here", password: "pw"}, noKey},
			{who{key: "Secret", user: "gone", password: "px"}, noKey},
		} {
			q := p.peer()
			if got := q.logIn(t, tc.w); !strings.HasPrefix(got, tc.want) {
				t.Errorf("%+v: %q", tc.w, got)
			}
			_ = q.Close()
		}
		// After a login the first byte says nothing about JSON: it is an integer, and ignored.
		q := p.peer()
		if got := q.logIn(t, who{key: "secret", user: "here", password: "pw"}, []byte("{}")...); !strings.HasPrefix(got,
			yes) {
			t.Errorf("%q", got)
		}
		_ = q.Close()
		synctest.Wait()
		if st := s.Stats(); st.Events != 0 || st.Ignored != 2 {
			t.Errorf("%+v", st)
		}
	})
	for a, b := range map[string]string{"": "x", "x": "", "abc": "abd", "ab": "abc"} {
		if wire.Equal([]byte(a), []byte(b)) || !wire.Equal([]byte(a), []byte(a)) {
			t.Errorf("%q and %q", a, b)
		}
	}
}

func TestRule38EmptyKey(t *testing.T) {
	if err := (&Server{Handler: new(outcome)}).ServeEndpoint(newPipes(),
		&Endpoint{Security: &Security{}}); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
	if err := (&Server{Handler: new(outcome)}).ServeEndpoint(newPipes(),
		&Endpoint{Security: &Security{
			DenyAnonymous: true,
			Clients:       []ClientRule{{Host: "a"}},
		}}); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
	if err := (&Security{DenyAnonymous: true, Clients: []ClientRule{{SharedKey: "x"}}}).Check(); err != nil {
		t.Error(err)
	}
	for _, sec := range []*Security{{AllowEmptyKey: true}, {Hostname: "no key"}, nil} {
		s := &Server{Handler: new(outcome), Endpoint: Endpoint{GetSecurity: func(net.Addr) *Security { return sec }}}
		bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
			q := p.peer()
			if sec == nil || !sec.AllowEmptyKey {
				synctest.Wait()
				if got, _ := q.received(); len(got) > 0 || !q.closed() ||
					peerErrors() != "handshake failed: connection closed" {
					t.Errorf("%x %t %s", got, q.closed(), peerErrors())
				}
				return
			}
			if got := q.logIn(t, who{host: "a"}); !strings.HasPrefix(got, yes) {
				t.Errorf("%q", got)
			}
			_ = q.Close()
		})
	}
	if _, err := new(Login).Handshake(nil); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
	c := &Client{Login: &Login{AllowEmptyKey: true}}
	withClient(t, c, fakeServer(unhex(hexHelo), nil), func(t *testing.T, _ *fake) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := c.Send(ctx, oneChunk("a")); !errors.Is(err, ErrDenied) ||
			!strings.Contains(err.Error(), "wants a user name") {
			t.Error(err)
		}
	})
	c = &Client{Login: &Login{AllowEmptyKey: true}}
	withClient(t, c, fakeServer((&wire.Helo{Nonce: []byte("n")}).Append(nil), func(salt string) []byte {
		return letterOf("PONG", true, "", "s", sha(salt, "s", "n"))
	}), func(t *testing.T, _ *fake) {
		if err := c.Send(t.Context(), oneChunk("a")); err != nil {
			t.Error(err)
		}
	})
}

// fromAddr is a connection from an address.
type fromAddr struct {
	net.Conn
	addr net.Addr
}

func (f fromAddr) RemoteAddr() net.Addr { return f.addr }

func TestRule39FirstMatch(t *testing.T) {
	net4, net6 := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")
	sec := &Security{
		Hostname: "s", SharedKey: "common", Users: map[string]string{"u": "1", "v": "2"},
		Clients: []ClientRule{
			{Host: "web", Network: net4, SharedKey: "web key", Users: []string{"u"}},
			{Host: "web", SharedKey: "other key"},
			{Network: net4, Users: []string{"v"}},
			{Network: netip.MustParsePrefix("::ffff:198.51.100.0/120"), SharedKey: "mapped", Users: []string{}},
			{Network: net6, SharedKey: "six"},
		},
	}
	strict := *sec
	strict.DenyAnonymous = true
	const inside, outside, six, mapped = "192.0.2.9", "203.0.113.1", "2001:db8::5", "198.51.100.3"
	for _, tc := range []struct {
		from, host, key, user string
		want, strict          string // what the PONG says
	}{
		{inside, "web", "web key", "u", "", ""},
		{inside, "web", "web key", "v", reasonUser, reasonUser}, // a user, but not from there
		{inside, "web", "other key", "u", reasonKey, reasonKey}, // the second rule would do; the first decides
		{inside, "web", "common", "u", reasonKey, reasonKey},
		{outside, "web", "other key", "u", "", ""},
		{outside, "web", "web key", "u", reasonKey, reasonKey},
		{"", "web", "other key", "v", "", ""}, // a unix socket
		{inside, "db", "common", "v", "", ""},
		{"::ffff:" + inside, "db", "common", "v", "", ""},
		{inside, "db", "common", "u", reasonUser, reasonUser},
		{mapped, "db", "mapped", "u", reasonUser, reasonUser}, // an empty list: nobody
		{mapped, "db", "common", "u", reasonKey, reasonKey},
		{six, "db", "six", "u", "", ""},
		{six, "db", "common", "u", reasonKey, reasonKey},
		// Anonymous; there is a rule for any network: nothing tells which names it has.
		{outside, "db", "common", "u", "", reasonKey},
		{"", "db", "common", "u", "", reasonKey},
	} {
		for i, s := range []*Security{sec, &strict} {
			addr, _ := netip.ParseAddr(tc.from)
			h := wire.Helo{Nonce: []byte("n"), Auth: []byte("a")}
			p := wire.Ping{
				Host: []byte(tc.host), Salt: []byte("x"), Digest: []byte(sha("x", tc.host, "n", tc.key)),
				User: []byte(tc.user),
			}
			p.Password = []byte(sha("a", tc.user, s.Users[tc.user]))
			want := []string{tc.want, tc.strict}[i]
			if a := s.answer(&h, &p, addr); string(a.Reason) != want || a.OK != (want == "") {
				t.Errorf("%+v, strict %d: %s, want %s", tc, i, a.Reason, want)
			} else if a.OK && string(a.Digest) != sha("x", "s", "n", tc.key) {
				t.Errorf("%+v: the PONG is made with another key", tc)
			}
		}
	}
	nets := &Security{DenyAnonymous: true, Clients: []ClientRule{{Network: net4, SharedKey: "k"}}}
	s := &Server{Handler: new(outcome), Endpoint: Endpoint{Security: nets}}
	var told []string
	s.PeerError = func(tr PeerError) { told = append(told, tr.Error()) }
	bubble(t, s, func(t *testing.T, p *pipes, _ func() string) {
		for from, want := range map[string]string{inside: yes, outside: noName} {
			near, far := net.Pipe()
			p.in <- fromAddr{far, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 5))}
			q := reading(near)
			if got := q.logIn(t, who{host: "h", key: "k"}); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q", from, got)
			}
			_ = q.Close()
		}
		synctest.Wait()
		if len(told) != 1 || told[0] != `denied from 203.0.113.1:5: anonymous source denied: host "h" (connection closed)` {
			t.Errorf("%q", told)
		}
	})
	if err := (&Security{SharedKey: "k", Clients: []ClientRule{
		{Network: netip.PrefixFrom(netip.Addr{}, 99)},
		{Network: netip.PrefixFrom(net4.Addr(), 99)},
	}}).Check(); err == nil {
		t.Error("a network that is none")
	}
	if err := (&Security{SharedKey: "k", Clients: []ClientRule{{Users: []string{"u"}}}}).Check(); err == nil ||
		!strings.Contains(err.Error(), "client rule 1: it names users") {
		t.Errorf("users that nobody logs in as: %v", err)
	}
}

func TestSenderOfChunk(t *testing.T) {
	var got []Sender
	ep := Endpoint{Security: &Security{SharedKey: "secret", Users: map[string]string{"u": "pw"}}}
	s := &Server{Handler: HandlerFunc(func(ctx context.Context, _ *Chunk) error {
		got = append(got, *SenderOf(ctx))
		return nil
	})}
	s.Endpoint = ep
	bubble(t, s, func(t *testing.T, p *pipes, _ func() string) {
		q := p.peer()
		q.logIn(t, who{host: "web.example", key: "secret", user: "u", password: "pw"},
			append(unhex(hexEvents), unhex(oneEvent+hexForward)...)...)
		_ = q.Close()
		synctest.Wait()
		if len(got) != 3 {
			t.Fatalf("%+v", got)
		}
		for _, g := range got {
			if g.Host != "web.example" || g.User != "u" || g.TLS != nil || g.Addr == nil || g.Peer != peerOf(g.Addr) ||
				g.Conn == 0 || g.Endpoint != &s.Endpoint {
				t.Errorf("%+v", g)
			}
		}
	})
}

func TestRule40ServerDeniesKeepalive(t *testing.T) {
	o := new(outcome)
	s := &Server{Handler: grouped{o}, Endpoint: Endpoint{Security: &Security{SharedKey: "secret", DenyKeepalive: true}}}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		for name, tc := range map[string]struct {
			in     string
			events int
			acks   string
			told   string
		}{
			"acked":      {hexEvents, 1, "81 a3 61636b a1 61", ""},
			"heartbeats": {"c0 c0 05" + hexEvents, 1, "81 a3 61636b a1 61", ""},
			"no ack":     {oneEvent, 1, "", ""},
			"refused":    {"91 05", 0, "", "invalid message: message refused"},
			"two":        {hexEvents + hexEvents, 1, "81 a3 61636b a1 61", "denied: connection closed"},
			"nothing":    {"c0", 0, "", ""},
		} {
			o.events = nil
			before := peerErrors()
			q := p.peer()
			w := who{host: "a", key: "secret"}
			var keep bool
			if w.nonce, w.auth, keep = q.helo(t); keep {
				t.Error("HELO allows keepalive")
			}
			write(t, q, append(w.ping(), unhex(tc.in)...))
			synctest.Wait()
			got, _ := q.received()
			if !bytes.HasSuffix(got, unhex(tc.acks)) || len(got) > 200 || len(o.events) != tc.events ||
				q.closed() != (name != "nothing") {
				t.Errorf("%s: %q, events %q, closed %t", name, got, o.events, q.closed())
			}
			_ = q.Close()
			synctest.Wait()
			if after := peerErrors(); len(after) != len(before)+len(tc.told)+2*min(1, len(before)*len(tc.told)) ||
				!strings.Contains(after, tc.told) {
				t.Errorf("%s: %s", name, after)
			}
		}
	})
}

// lateHandler stores a chunk when time has passed.
type lateHandler struct{}

func (lateHandler) ServeForward(context.Context, *Chunk) error { return errors.New("not asked") }

func (lateHandler) StartForward(_ context.Context, _ *Chunk, done func(error)) {
	time.AfterFunc(time.Minute, func() { done(nil) })
}

// TestRule40AfterTheAck: however late it is.
func TestRule40AfterTheAck(t *testing.T) {
	s := &Server{Handler: lateHandler{}, Endpoint: Endpoint{Security: &Security{
		SharedKey:     "secret",
		DenyKeepalive: true,
	}}}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		q := p.peer()
		q.logIn(t, who{host: "a", key: "secret"}, unhex(hexEvents)...)
		if q.closed() {
			t.Error("closed before the ack")
		}
		began := time.Now()
		<-q.done
		if got, _ := q.received(); !bytes.HasSuffix(got, unhex("81 a3 61636b a1 61")) ||
			time.Since(began) != time.Minute || peerErrors() != "" {
			t.Errorf("%q after %v: %s", got, time.Since(began), peerErrors())
		}
	})
}

func TestRule40ClientConnectsAnew(t *testing.T) {
	hello := wire.Helo{Nonce: []byte("n")}
	pong := func(salt string) []byte { return letterOf("PONG", true, "", "s", sha(salt, "s", "n", "k")) }
	for name, tc := range map[string]struct {
		c     *Client
		serve func(int, *fakeConn)
		log   string
	}{
		"asked for": {&Client{NoKeepalive: true}, func(_ int, c *fakeConn) { c.ackAll() }, "1: a, 2: b, 3: c"},
		"HELO says no": {
			&Client{Login: &Login{SharedKey: "k"}}, fakeServer(hello.Append(nil), pong),
			"1: a, 2: b, 3: c",
		},
		"HELO says yes": {
			&Client{Login: &Login{SharedKey: "k"}},
			fakeServer((&wire.Helo{Nonce: []byte("n"), Keepalive: true}).Append(nil), pong), "1: a, 1: b, 1: c",
		},
		"and with a login": {
			&Client{NoKeepalive: true, Login: &Login{SharedKey: "k"}},
			fakeServer((&wire.Helo{Nonce: []byte("n"), Keepalive: true}).Append(nil), pong), "1: a, 2: b, 3: c",
		},
		"server closes": {&Client{NoKeepalive: true}, func(_ int, c *fakeConn) {
			if ch, err := c.next(); err == nil {
				c.ack(ch.ID)
			}
		}, "1: a, 2: b, 3: c"},
		"no acks": {&Client{NoKeepalive: true, NoAck: true}, func(_ int, c *fakeConn) {
			for {
				if _, err := c.next(); err != nil {
					return
				}
			}
		}, "1: , 2: , 3: "},
	} {
		t.Run(name, func(t *testing.T) {
			var failed []error
			down := 0
			tc.c.Report = func(err error) { failed = append(failed, err) }
			tc.c.Changed = func(up bool, err error) {
				if !up {
					down++
				}
			}
			withClient(t, tc.c, tc.serve, func(t *testing.T, f *fake) {
				began := time.Now()
				for _, err := range sendAll(t, tc.c, 3) {
					if err != nil {
						t.Error(err)
					}
				}
				synctest.Wait()
				if f.logged() != tc.log || len(failed) > 0 || down > 0 || time.Since(began) > 0 {
					t.Errorf("%s after %v, failed %v, %d times down", f.logged(), time.Since(began), failed, down)
				}
			})
		})
	}
}

func TestClientHandshakeFails(t *testing.T) {
	silent := func(_ int, c *fakeConn) { _, _ = c.Read(make([]byte, 1)) }
	for name, tc := range map[string]struct {
		c     *Client
		serve func(int, *fakeConn)
		want  string
		after time.Duration
	}{
		"nothing comes": {
			&Client{Login: &Login{SharedKey: "k"}}, silent,
			"the login: context deadline exceeded: no HELO: the server sends nothing", 10 * time.Second,
		},
		"half a HELO": {&Client{Login: &Login{SharedKey: "k"}}, func(_ int, c *fakeConn) {
			_, _ = c.Write(unhex(hexHelo)[:9])
			silent(0, c)
		}, "the login: context deadline exceeded: no HELO", 10 * time.Second},
		"no PONG": {
			&Client{Login: &Login{SharedKey: "k", Username: "u"}},
			fakeServer(unhex(hexHelo),
				func(string) []byte { return nil }), "the login: context deadline exceeded: no PONG", 10 * time.Second,
		},
		"closed": {
			&Client{Login: &Login{SharedKey: "k"}}, func(int, *fakeConn) {},
			"no HELO: the server closed the connection", 0,
		},
		"an alert": {
			&Client{Login: &Login{SharedKey: "k"}},
			func(_ int, c *fakeConn) { _, _ = c.Write(unhex("15 0303 0002 0246")) }, "the server seems to speak TLS", 0,
		},
		"HTTP": {
			&Client{Login: &Login{SharedKey: "k"}},
			func(_ int, c *fakeConn) {
				_,
					_ = c.Write([]byte("HTTP/1.1 400 Bad Request"))
			}, "the server seems to speak HTTP", 0,
		},
		"no HELO": {
			&Client{Login: &Login{SharedKey: "k"}},
			func(_ int, c *fakeConn) { _, _ = c.Write(letterOf("PONG", true)) }, "no HELO", 0,
		},
		"and more": {
			&Client{Login: &Login{SharedKey: "k", Username: "u"}},
			func(_ int, c *fakeConn) {
				_, _ = c.Write(append(unhex(hexHelo), 0xc0))
				_,
					_ = io.Copy(io.Discard, c)
			}, "no PONG: it begins with 0xc0", 0,
		},
		"endless": {
			&Client{Login: &Login{SharedKey: "k"}},
			func(_ int, c *fakeConn) { _, _ = c.Write(letterOf("HELO", strings.Repeat("x", 100000))) }, "no HELO", 0,
		},
		"unwanted": {
			&Client{}, func(_ int, c *fakeConn) { _, _ = c.Write(unhex(hexHelo)); _, _ = c.next() },
			"the server wants a shared key, and none is given: shared_key_file=", 0,
		},
		"no secret": {
			&Client{GetLogin: func() (*Login, error) { return nil, errors.New("the file is gone") }}, silent,
			"192.0.2.1:24224: login: the file is gone", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var first error
			var at time.Time
			var failed chan struct{}
			tc.c.MinBackoff, tc.c.MaxBackoff = time.Hour, time.Hour
			tc.c.Report = func(err error) {
				if first == nil {
					first, at = err, time.Now()
					close(failed)
				}
			}
			withClient(t, tc.c, tc.serve, func(t *testing.T, f *fake) {
				began := time.Now()
				failed = make(chan struct{}) // of this bubble
				if _, err := tc.c.Start(oneChunk("a"), func(error) {}); err != nil {
					t.Error(err)
				}
				<-failed
				if !strings.Contains(first.Error(), tc.want) || at.Sub(began) != tc.after {
					t.Errorf("%v after %v", first, at.Sub(began))
				}
			})
		})
	}
}

// TestClientCloseInHandshake: the whole attempt is one that Close ends at once.
func TestClientCloseInHandshake(t *testing.T) {
	c := &Client{Login: &Login{SharedKey: "k"}}
	withClient(t, c, func(_ int, f *fakeConn) { _, _ = f.Read(make([]byte, 1)) }, func(t *testing.T, _ *fake) {
		if _, err := c.Start(oneChunk("a"), func(error) {}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		began := time.Now()
		if err := c.Close(); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestSecretsDoNotPrint: by no verb, and not in a log line.
func TestSecretsDoNotPrint(t *testing.T) {
	const secret = "hunter2"
	l := Login{Hostname: "h", SharedKey: secret, Username: "u", Password: secret}
	r := ClientRule{Host: "h", SharedKey: secret}
	s := Security{Hostname: "h", SharedKey: secret, Users: map[string]string{"u": secret}, Clients: []ClientRule{r}}
	var log bytes.Buffer
	text := slog.New(slog.NewTextHandler(&log, nil))
	js := slog.New(slog.NewJSONHandler(&log, nil))
	for _, v := range []any{
		l, &l, r, &r, s, &s,
		[]Login{l},
		struct{ A any }{s},
		Endpoint{Security: &s},
		&Client{Login: &l},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, secret) ||
				strings.Contains(got, hex.EncodeToString([]byte(secret))) {
				t.Errorf("%T %s: %s", v, verb, got)
			}
		}
		if _, ok := v.(*Client); !ok {
			text.Info("m", "v", v)
			js.Info("m", "v", v)
			if b, _ := json.Marshal(v); bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s", b)
			}
		}
	}
	if strings.Contains(log.String(), secret) {
		t.Error(log.String())
	}
	if got := fmt.Sprint(l, r, s); !strings.Contains(got, `Username: "u"`) ||
		!strings.Contains(got, "1 users, 1 rules") {
		t.Error(got)
	}
}
