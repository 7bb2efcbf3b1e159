// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// Rules 31 to 40 at a server.

const theSalt = "000102030405060708090a0b0c0d0e0f"

// A meeting is a connection whose greeting was read.
type meeting struct {
	*conn
	r *valueReader
	helo
}

func meet(p *probe, s *server) *meeting {
	p.Helper()
	m := &meeting{conn: s.dialBare(p)}
	m.r = newValueReader(m.conn)
	h, err := readHELO(m.r)
	p.must(err)
	m.helo = h
	return m
}

// wantPONG reads an answer. One that refuses has a reason and nothing else, and the connection is
// closed.
func (m *meeting) wantPONG(good bool) pong {
	m.p.Helper()
	g, err := readPONG(m.r)
	m.p.must(err)
	if g.ok != good {
		m.p.Fatalf("PONG %v, want %v; %q", g.ok, good, g.reason)
	}
	if good {
		return g
	}
	if g.reason == "" || g.host != "" || g.checksum != "" {
		m.p.Errorf("PONG of a refusal: % x", g.raw.raw)
	}
	m.wantEnd()
	return g
}

// wantEnd wants the connection closed with nothing more in it.
func (m *meeting) wantEnd() {
	m.p.Helper()
	v, err := m.r.next()
	if err == nil {
		m.p.Fatalf("% x behind", clip(v.raw))
	}
	m.untilClosed()
}

// wantNone wants that no event came with a tag.
func (s *server) wantNone(p *probe, tag string) {
	p.Helper()
	wantLines(p, s.settle(p, nil, "", tag), nil, false)
}

func TestDigest(t *testing.T) {
	var nonce, auth string
	for i := range 16 {
		nonce += string(rune(i))
		auth += string(rune(16 + i))
	}
	const client = "c6a0ef3d907f13d0b1205b157ab0f84ba459f7e27b5c6a97e65320db57211a1e3ca86484e305eb301adddbe6bbfa7331fdc9280e70d7c9e0956848f9e14e4fa2"
	const pass = "7577e2a37adadb46203f0a11b49e2d6a05d7daed04a8f0e6723484cfb1c28f61236bfc9836a0cac7fac743cc518dc7021df1c885d81ed213894e43326e34fbfb"
	const server = "bbf9e85a5be1bf77fc7c4b879e901d387137d2f2c94a0755740ee4741d3f0402f8559e7face2c886a695971ba357b2676cf0af4897f1efeae521360479e35aab"
	if digest("salt", "client.example", nonce, theKey) != client || digest(auth, theUser, thePassword) != pass ||
		digest("salt", theHost, nonce, theKey) != server {
		t.Error("the suite's own digests are not those of docs/forward.md")
	}
	h, err := readHELO(newValueReader(bytes.NewReader(unhex("92 a4 48454c4f 83 a5 6e6f6e6365 c4 10 000102030405060708090a0b0c0d0e0f a4 61757468 c4 10 101112131415161718191a1b1c1d1e1f a9 6b656570616c697665 c3"))))
	if err != nil || h.nonce != nonce || h.auth != auth || !h.keepalive {
		t.Errorf("%+v, %v", h, err)
	}
}

func rule31(tr *trial) {
	tr.run("the greeting", func(p *probe) {
		m := meet(p, tr.server(p, "key"))
		if len(m.nonce) != 16 || m.auth != "" && len(m.auth) != 16 {
			p.Errorf("a nonce of %d bytes, auth of %d", len(m.nonce), len(m.auth))
		}
		if k, ok := m.raw.list[1].get("keepalive"); ok && k.kind != "bool" {
			p.Errorf("keepalive is %s", k.kind)
		}
		for i := 0; i < len(m.raw.list[1].list); i += 2 {
			if k := m.raw.list[1].list[i]; k.kind != "str" && k.kind != "bin" {
				p.Errorf("a key that is %s", k.kind)
			}
		}
	})
	tr.run("auth where users log in", func(p *probe) {
		if m := meet(p, tr.server(p, "login")); len(m.auth) != 16 {
			p.Errorf("auth of %d bytes", len(m.auth))
		}
	})
	tr.run("other bytes each time", func(p *probe) {
		seen := map[string]bool{}
		for range 10 {
			m := meet(p, tr.server(p, "key"))
			if seen[m.nonce] {
				p.Errorf("a nonce came twice")
			}
			seen[m.nonce] = true
		}
	})
}

func rule32(tr *trial) {
	greet := func(name, setting string, good bool, ping func(s *server, m *meeting) string) {
		tr.run(name, func(p *probe) {
			s := tr.server(p, setting)
			m := meet(p, s)
			m.send(unhex(ping(s, m)))
			m.wantPONG(good)
		})
	}
	as := func(change func(*login)) func(*server, *meeting) string {
		return func(s *server, m *meeting) string {
			l := *s.login
			change(&l)
			return l.ping(&m.helo, theSalt)
		}
	}
	greet("the shared key", "key", true, as(func(*login) {}))
	greet("a user", "login", true, as(func(*login) {}))
	greet("another key", "key", false, as(func(l *login) { l.key += "x" }))
	greet("another user's password", "login", false, as(func(l *login) { l.password += "2" }))
	greet("an unknown user", "login", false, as(func(l *login) { l.user = "stranger" }))
	greet("no user", "login", false, as(func(l *login) { l.user, l.password = "", "" }))
	// The salt is whatever bytes the client likes, as str or bin; all else may be either too.
	forms := func(text func(string) string, salt string, head string) func(*server, *meeting) string {
		return func(s *server, m *meeting) string {
			l := s.login
			user, secret := "", ""
			if m.auth != "" {
				user, secret = l.user, digest(m.auth, l.user, l.password)
			}
			return head + text("PING") + text(l.host) + text(salt) + text(digest(salt, l.host, m.nonce,
				l.key)) + text(user) + text(secret)
		}
	}
	raw := string(unhex("00 ff 80 7f 0a 0d 22 27 5c c3 28 f0 9f 98 80 fe"))
	greet("a salt of any bytes", "key", true, forms(str, raw, "96"))
	greet("all as bin", "key", true, forms(bin, raw, "96"))
	greet("all as str32", "key", true, forms(func(s string) string { return fmt.Sprintf("db %08x %x", len(s), s) },
		theSalt, "dd 00000006"))
	wrong := func(name string, ping func(s *server, m *meeting) string) {
		tr.run(name, func(p *probe) {
			s := tr.server(p, "key")
			m := meet(p, s)
			names := newNaming()
			m.send(append(unhex(ping(s, m)), names.bytes("94 $t 05 $rec 81 $chunk")...))
			if g, err := readPONG(m.r); err == nil && g.ok {
				p.Errorf("PONG true")
			}
			m.untilClosed()
			s.wantNone(p, names.tag)
		})
	}
	wrong("a PING of five elements", func(s *server, m *meeting) string { return forms(str, theSalt, "95")(s, m) })
	wrong("another word than PING", func(s *server, m *meeting) string {
		return strings.Replace(s.login.ping(&m.helo, theSalt), str("PING"), str("PONG"), 1)
	})
	wrong("a digest that is a number", func(s *server, m *meeting) string {
		l := s.login
		return "96" + str("PING") + str(l.host) + str(theSalt) + "05" + str("") + str("")
	})
	wrong("an empty digest", func(s *server, m *meeting) string {
		return "96" + str("PING") + str(s.login.host) + str(theSalt) + str("") + str("") + str("")
	})
	wrong("half a digest", func(s *server, m *meeting) string {
		l := s.login
		return "96" + str("PING") + str(l.host) + str(theSalt) + str(digest(theSalt, l.host, m.nonce,
			l.key)[:64]) + str("") + str("")
	})
	wrong("the greeting's words sent back", func(_ *server, m *meeting) string { return fmt.Sprintf("%x", m.raw.raw) })
	wrong("a host name of ffffffff", func(*server, *meeting) string { return "96" + str("PING") + "db ffffffff" })
	tr.run("another connection's PING", func(p *probe) {
		s := tr.server(p, "key")
		one, two := meet(p, s), meet(p, s)
		two.send(unhex(s.login.ping(&one.helo, theSalt)))
		two.wantPONG(false)
	})
	for _, w := range []wire{
		{
			name: "Message mode behind it", in: "94 $t $time $rec 81 $chunk", events: []string{mb}, acks: "$ack",
			setting: "login",
		},
		{
			name: "Forward mode behind it", in: "93 $t 92 $e1 $e2 81 $chunk", events: both, acks: "$ack",
			setting: "login",
		},
		{
			name: "PackedForward mode behind it", in: "93 $t c4 20 $e1 $e2 81 $chunk", events: both, acks: "$ack",
			setting: "login",
		},
		{
			name: "gzip behind it", in: compressed("gzip", gzipped(unhex(vector1+vector2))), events: both, acks: "$ack",
			setting: "login",
		},
		{name: "no id behind it", in: "92 $t 92 $e1 $e2", events: both, setting: "login"},
	} {
		tr.wires(w)
	}
}

func rule33(tr *trial) {
	tr.run("what it proves", func(p *probe) {
		s := tr.server(p, "key")
		m := meet(p, s)
		m.send(unhex(s.login.ping(&m.helo, theSalt)))
		g := m.wantPONG(true)
		if want := digest(theSalt, g.host, m.nonce, s.login.key); g.checksum != want {
			p.Errorf("digest %q, want %q", g.checksum, want)
		}
		if g.host == "" || g.reason != "" || s.own != nil && g.host != theHost {
			p.Errorf("host %q, reason %q", g.host, g.reason)
		}
	})
	tr.run("what it says of a wrong key", func(p *probe) {
		s := tr.server(p, "key")
		m := meet(p, s)
		l := *s.login
		l.key = "guessed"
		m.send(unhex(l.ping(&m.helo, theSalt)))
		if g := m.wantPONG(false); strings.Contains(g.reason, s.login.key) {
			p.Errorf("the reason tells the key")
		}
	})
	tr.run("nothing is taken after it", func(p *probe) {
		s := tr.server(p, "key")
		m := meet(p, s)
		l := *s.login
		l.key = "guessed"
		names := newNaming()
		m.send(append(unhex(l.ping(&m.helo, theSalt)), names.bytes("94 $t 05 $rec 81 $chunk")...))
		m.wantPONG(false)
		s.wantNone(p, names.tag)
	})
}

func rule36(tr *trial) {
	after := func(name string, send func(m *meeting, ping, event []byte)) {
		tr.run(name, func(p *probe) {
			s := tr.server(p, "key")
			m, names := meet(p, s), newNaming()
			send(m, unhex(s.login.ping(&m.helo, theSalt)), names.bytes("93 $t 92 $e1 $e2 81 $chunk"))
			m.wantPONG(true)
			v, err := m.r.next()
			p.must(err)
			if want := names.bytes("$ack"); !bytes.Equal(v.raw, want) {
				p.Errorf("the server wrote % x, want % x", clip(v.raw), want)
			}
			wantLines(p, s.settle(p, m.conn, "", names.tag), both, false)
		})
	}
	after("PING byte by byte", func(m *meeting, ping, event []byte) { m.send(bytewise(ping)...); m.send(event) })
	after("PING and event in one segment", func(m *meeting, ping, event []byte) { m.send(append(ping, event...)) })
	after("PING and half an event in one segment",
		func(m *meeting, ping, event []byte) { m.send(append(ping, event[:9]...), event[9:]) })
	before := func(name, in string) {
		tr.run(name, func(p *probe) {
			s := tr.server(p, "key")
			m, names := meet(p, s), newNaming()
			m.send(names.bytes(in))
			m.wantPONG(false)
			s.wantNone(p, names.tag)
		})
	}
	before("an event in place of PING", "93 $t 92 $e1 $e2 81 $chunk")
	before("Message mode in place of PING", "94 $t 05 $rec 81 $chunk")
	tr.run("an event before PING", func(p *probe) {
		s := tr.server(p, "key")
		m, names := meet(p, s), newNaming()
		m.send(append(names.bytes("93 $t 92 $e1 $e2 81 $chunk"), unhex(s.login.ping(&m.helo, theSalt))...))
		m.wantPONG(false)
		s.wantNone(p, names.tag)
	})
}

func rule37(tr *trial) {
	json := func(name, in string) {
		tr.run(name, func(p *probe) {
			s := tr.server(p, "key")
			m, names := meet(p, s), newNaming()
			m.send([]byte(strings.ReplaceAll(in, "$t", names.tag)))
			if rest := m.untilClosed(); bytes.Contains(rest, []byte("ack")) {
				p.Errorf("the server wrote % x", clip(rest))
			}
			s.wantNone(p, names.tag)
		})
	}
	json("an array of JSON", `["$t",5,{"m":"b"},{"chunk":"x"}]`)
	json("an object of JSON", `{"x":1}["$t",5,{"m":"b"},{"chunk":"x"}]`)
}

func rule38(tr *trial) {
	tr.run("a server with an empty key", func(p *probe) {
		if foreign() {
			p.unseen("needs a server that the suite starts")
		}
		file := filepath.Join(p.TempDir(), "empty.key")
		p.must(os.WriteFile(file, []byte("\n"), 0o600))
		path, err := program()
		p.must(err)
		cmd := exec.Command(path, "serve", "--data", filepath.Join(p.TempDir(), "data"), "--to", "discard:", "--listen",
			"forward://127.0.0.1:0?shared_key_file="+filepath.ToSlash(file))
		text, err := runFor(cmd)
		if err == nil || !strings.Contains(text, "empty") {
			p.Errorf("it starts: %v\n%s", err, text)
		}
	})
	tr.run("one that asks for it by name", func(p *probe) {
		s := tr.server(p, "empty key")
		m := meet(p, s)
		m.send(unhex(s.login.ping(&m.helo, theSalt)))
		m.wantPONG(true)
	})
	tr.run("a client with an empty key", func(p *probe) {
		s := tr.server(p, "key")
		m := meet(p, s)
		l := *s.login
		l.key = ""
		m.send(unhex(l.ping(&m.helo, theSalt)))
		m.wantPONG(false)
	})
}

func rule39(tr *trial) {
	who := func(name, setting string, good bool, l login) {
		tr.run(name, func(p *probe) {
			s := tr.server(p, setting)
			m := meet(p, s)
			m.send(unhex(l.ping(&m.helo, theSalt)))
			m.wantPONG(good)
		})
	}
	who("a key of its own", "clients", true, login{"special.example", "special", theUser, thePassword})
	who("everybody's key where there is an own one", "clients", false,
		login{"special.example", theKey, theUser, thePassword})
	who("another one's key", "clients", false, login{"client.example", "special", theUser, thePassword})
	who("whom no rule fits", "clients", true, login{"client.example", theKey, theUser, thePassword})
	who("the first rule that fits decides", "clients", true, login{"local.example", "special", theUser, thePassword})
	who("not the second one", "clients", false, login{"local.example", theKey, theUser, thePassword})
	who("a user on the list", "clients", true, login{"narrow.example", theKey, "other", "pw:2"})
	who("a user who is not", "clients", false, login{"narrow.example", theKey, theUser, thePassword})
	who("a known client", "known clients", true, login{host: "client.example", key: theKey})
	who("an unknown one", "known clients", false, login{host: "stranger.example", key: theKey})
}

func rule40(tr *trial) {
	tr.run("a server that denies keepalive", func(p *probe) {
		s := tr.server(p, "no keepalive")
		m, names := meet(p, s), newNaming()
		if m.keepalive {
			p.Errorf("HELO does not say so")
		}
		m.send(unhex(s.login.ping(&m.helo, theSalt)))
		m.wantPONG(true)
		m.send(names.bytes("93 $t 92 $e1 $e2 81 $chunk"))
		v, err := m.r.next()
		p.must(err)
		if want := names.bytes("$ack"); !bytes.Equal(v.raw, want) {
			p.Errorf("the server wrote % x, want % x", clip(v.raw), want)
		}
		m.wantEnd()
		// Its fences need a connection each.
		until(p, "the events are there", func() bool {
			p.must(s.lines.read())
			return len(s.lines.byTag[names.tag]) >= 2
		})
		wantLines(p, s.lines.byTag[names.tag], both, false)
	})
}

// runFor runs a command that should end by itself, and soon.
func runFor(cmd *exec.Cmd) (string, error) {
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.WaitDelay = *wait
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return text.String(), err
	case <-time.After(*wait):
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		return text.String(), nil
	}
}

// TestRequests are settings of this repository's server that the reference implementations have
// too, and no rule speaks of.
func TestRequests(t *testing.T) {
	if foreign() {
		needs.Skip(t, "of this repository's server only")
	}
	sub := &servers{t: t, all: map[string]*server{}}
	tr := &trial{t: t, sub: sub}
	tagged := func(setting, tag string) {
		tr.run(setting, func(p *probe) {
			s := tr.server(p, setting)
			names, c := newNaming(), s.dial(p)
			c.send(names.bytes("94 $t $time $rec 81 $chunk"))
			_, err := readAcks(p, newValueReader(c), 1)
			p.must(err)
			tag = strings.ReplaceAll(tag, "$tag", names.tag)
			until(p, "the event has the tag "+tag, func() bool {
				p.must(s.lines.read())
				return len(s.lines.byTag[tag]) > 0
			})
			wantLines(p, s.lines.byTag[tag], []string{mb}, false)
		})
	}
	tagged("forced tag", "forced")
	tagged("tag prefix", "before.$tag")
	tr.run("source", func(p *probe) {
		s := tr.server(p, "source")
		names, c := newNaming(), s.dial(p)
		c.send(names.bytes("94 $t $time $rec 81 $chunk"))
		lines := s.settle(p, c, "", names.tag)
		want := at + `{"addr":"127.0.0.1","host":"client.example","m":"b","user":"sender"}`
		if !slices.ContainsFunc(lines, func(l line) bool { return l.like("", false) == want }) {
			p.Errorf("%s, want %s", show(lines), want)
		}
	})
}
