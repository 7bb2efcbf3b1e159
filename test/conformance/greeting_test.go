// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Rules 31 to 40 at a client: the suite's server greets it.

func decodeID(text string) ([]byte, error) { return base64.StdEncoding.DecodeString(text) }

var (
	theNonce = string(unhex("000102030405060708090a0b0c0d0e0f"))
	theAuth  = string(unhex("101112131415161718191a1b1c1d1e1f"))
)

const vectorHELO = "92 a4 48454c4f 83 a5 6e6f6e6365 c4 10 000102030405060708090a0b0c0d0e0f a4 61757468 c4 10 101112131415161718191a1b1c1d1e1f a9 6b656570616c697665 c3"

// greet sends HELO and reads PING.
func (v *visit) greet(helo string) (*value, bool) {
	v.write(helo)
	x, err := v.r.next()
	if err != nil {
		v.mu.Lock()
		v.left = err
		v.mu.Unlock()
		return nil, false
	}
	v.mu.Lock()
	v.ping = &x
	v.mu.Unlock()
	return &x, x.kind == "array" && len(x.list) == 6
}

// goodPONG answers a PING as a server that knows the key.
func goodPONG(ping *value) string {
	return "95 " + str("PONG") + "c3 a0 " + str(theHost) + str(digest(ping.list[2].text, theHost, theNonce, theKey))
}

// admit greets, and takes the client in.
func (v *visit) admit(helo string) bool {
	ping, ok := v.greet(helo)
	if ok {
		v.write(goodPONG(ping))
	}
	return ok
}

// checkPING wants a PING as a client must send it for the vectors' HELO.
func checkPING(p *probe, x *value, auth bool) {
	p.Helper()
	if x == nil || x.kind != "array" || len(x.list) != 6 || x.list[0].text != "PING" {
		p.Fatalf("no PING: %+v", x)
	}
	host, salt := x.list[1].text, x.list[2].text
	if host == "" {
		p.Errorf("no client host")
	}
	if want := digest(salt, host, theNonce, theKey); x.list[3].text != want {
		p.Errorf("digest %q, want %q", x.list[3].text, want)
	}
	user, secret := "", ""
	if auth {
		user, secret = theUser, digest(theAuth, theUser, thePassword)
	}
	if x.list[4].text != user || x.list[5].text != secret {
		p.Errorf("user %q with %q, want %q with %q", x.list[4].text, x.list[5].text, user, secret)
	}
}

func rule31client(tr *trial) {
	greeting := func(name, helo string, auth bool) {
		tr.run(name, func(p *probe) {
			kind := "key"
			if auth {
				kind = "login"
			}
			f := tr.oneLine(p, kind, func(v *visit) {
				if v.admit(helo) {
					v.ackAll()
				}
			})
			checkPING(p, f.all()[0].ping, auth)
			if n := len(f.all()); n != 1 {
				p.Errorf("%d connections", n)
			}
		})
	}
	nonce, auth, keep :=
		func(s string) string { return str("nonce") + s }, func(s string) string {
			return str("auth") +
				s
		}, str("keepalive")
	greeting("the vector", vectorHELO, true)
	greeting("values as str", "92"+str("HELO")+"83"+nonce(str(theNonce))+auth(str(theAuth))+keep+"c3", true)
	greeting("values as bin, keys too", "92"+bin("HELO")+"83"+
		bin("nonce")+bin(theNonce)+bin("auth")+bin(theAuth)+bin("keepalive")+"c3", true)
	greeting("keys in another order", "92"+str("HELO")+"83"+keep+"c3"+auth(bin(theAuth))+nonce(bin(theNonce)), true)
	greeting("unknown keys", "92"+str("HELO")+"85"+str("x")+"92 01 02"+nonce(bin(theNonce))+auth(bin(theAuth))+keep+
		"c3"+str("y")+"81 a1 7a c0", true)
	greeting("nonce and auth alone, as Fluent Bit", "92"+str("HELO")+"82"+nonce(bin(theNonce))+auth(bin(theAuth)), true)
	greeting("no users, auth as str", "92"+str("HELO")+"83"+nonce(bin(theNonce))+auth("a0")+keep+"c3", false)
	greeting("no users, auth as bin", "92"+str("HELO")+"83"+nonce(bin(theNonce))+auth("c400")+keep+"c3", false)
	greeting("long forms", "dc 0002"+str("HELO")+"df 00000003"+
		nonce("db 00000010"+fmt.Sprintf("%x", theNonce))+auth("c6 00000010"+fmt.Sprintf("%x", theAuth))+keep+"c3", true)
	for _, bad := range []struct{ name, helo string }{
		{"no array", "81 a1 61 01"},
		{"another word", "92" + str("HALO") + "82" + nonce(bin(theNonce)) + auth(bin(theAuth))},
		{"no nonce", "92" + str("HELO") + "81" + auth(bin(theAuth))},
		{"an event", "93 a1 74 05 80"},
		{"a nonce of ffffffff", "92" + str("HELO") + "81" + str("nonce") + "c6 ffffffff"},
	} {
		tr.refusesServer(bad.name+" in place of HELO", func(v *visit) { v.write(bad.helo) })
	}
}

// refusesServer wants that a client leaves the first connection without an event, and comes again.
func (tr *trial) refusesServer(name string, first func(v *visit)) {
	tr.run(name, func(p *probe) {
		f := tr.oneLine(p, "login", func(v *visit) {
			if v.n > 1 {
				if v.admit(vectorHELO) {
					v.ackAll()
				}
				return
			}
			first(v)
			for _, ok := v.next(); ok; _, ok = v.next() {
				continue
			}
		})
		for _, m := range f.all()[0].got() {
			if m.wrong == "" {
				p.Errorf("an event went out: % x", clip(m.raw.raw))
			}
		}
		if n := len(f.all()); n < 2 {
			p.Errorf("%d connections", n)
		}
	})
}

func rule32client(tr *trial) {
	tr.run("PING with a user", func(p *probe) {
		f := tr.oneLine(p, "login", func(v *visit) {
			if v.admit(vectorHELO) {
				v.ackAll()
			}
		})
		checkPING(p, f.all()[0].ping, true)
		for i, x := range f.all()[0].ping.list {
			if x.kind != "str" && x.kind != "bin" {
				p.Errorf("element %d is %s", i, x.kind)
			}
		}
	})
	tr.run("nothing but PING before PONG", func(p *probe) {
		early := false
		f := tr.oneLine(p, "login", func(v *visit) {
			ping, ok := v.greet(vectorHELO)
			if !ok {
				return
			}
			early = v.r.r.Buffered() > 0
			v.write(goodPONG(ping))
			v.ackAll()
		})
		if early && len(f.all()) > 0 {
			p.Errorf("more than PING came before PONG")
		}
	})
}

func rule33client(tr *trial) {
	taken := func(name string, answer func(ping *value) []string) {
		tr.run(name, func(p *probe) {
			f := tr.oneLine(p, "login", func(v *visit) {
				ping, ok := v.greet(vectorHELO)
				if !ok {
					return
				}
				for _, piece := range answer(ping) {
					v.write(piece)
				}
				v.ackAll()
			})
			if n := len(f.all()); n != 1 {
				p.Errorf("%d connections", n)
			}
		})
	}
	taken("PONG", func(ping *value) []string { return []string{goodPONG(ping)} })
	taken("PONG byte by byte", func(ping *value) (pieces []string) {
		for _, b := range unhex(goodPONG(ping)) {
			pieces = append(pieces, fmt.Sprintf("%02x", b))
		}
		return pieces
	})
	taken("PONG with all as bin", func(ping *value) []string {
		return []string{"95" + bin("PONG") + "c3" +
			bin("") + bin(theHost) + bin(digest(ping.list[2].text, theHost, theNonce, theKey))}
	})
	taken("PONG with a reason", func(ping *value) []string {
		return []string{"95" + str("PONG") + "c3" +
			str("welcome") + str(theHost) + str(digest(ping.list[2].text, theHost, theNonce, theKey))}
	})
	refused := func(name, pong string) {
		tr.refusesServer(name, func(v *visit) {
			if _, ok := v.greet(vectorHELO); ok {
				v.write(pong)
			}
		})
	}
	refused("refused", "95"+str("PONG")+"c2"+str("shared_key mismatch")+"a0 a0")
	refused("refused with an over-long reason", "95"+str("PONG")+"c2"+str(strings.Repeat("no ", 100_000))+"a0 a0")
	refused("refused with control characters", "95"+str("PONG")+"c2"+str("no\n\x1b[31mlevel=ERROR\r\x00")+"a0 a0")
}

func rule34(tr *trial) {
	wrong := func(name string, answer func(ping *value) string) {
		tr.refusesServer(name, func(v *visit) {
			if ping, ok := v.greet(vectorHELO); ok {
				v.write(answer(ping))
			}
		})
	}
	right := func(ping *value) string { return digest(ping.list[2].text, theHost, theNonce, theKey) }
	head := "95" + str("PONG") + "c3 a0" + str(theHost)
	wrong("a digest by another key", func(ping *value) string {
		return head + str(digest(ping.list[2].text, theHost,
			theNonce, "guessed"))
	})
	wrong("a digest for another host", func(ping *value) string {
		return head + str(digest(ping.list[2].text, "other.example", theNonce, theKey))
	})
	wrong("the client's own digest", func(ping *value) string { return head + str(ping.list[3].text) })
	wrong("half a digest", func(ping *value) string { return head + str(right(ping)[:64]) })
	wrong("an empty digest", func(*value) string { return head + "a0" })
	wrong("no digest", func(*value) string { return "94" + str("PONG") + "c3 a0" + str(theHost) })
	wrong("a digest that is a number", func(*value) string { return head + "05" })
	wrong("a digest that is nil", func(*value) string { return head + "c0" })
	wrong("a digest in an array", func(ping *value) string { return head + "91" + str(right(ping)) })
	wrong("another word than PONG", func(ping *value) string {
		return "95" + str("PANG") + "c3 a0" +
			str(theHost) + str(right(ping))
	})
	wrong("true that is no bool", func(ping *value) string {
		return "95" + str("PONG") + "01 a0" +
			str(theHost) + str(right(ping))
	})
	wrong("no PONG", func(*value) string { return "" })
	tr.refusesServer("the end in place of PONG", func(v *visit) {
		if _, ok := v.greet(vectorHELO); ok {
			v.hangUp()
		}
	})
	tr.refusesServer("the end within PONG", func(v *visit) {
		if ping, ok := v.greet(vectorHELO); ok {
			v.write(fmt.Sprintf("%x", unhex(goodPONG(ping))[:100]))
			v.hangUp()
		}
	})
}

func rule35(tr *trial) {
	tr.run("the salt", func(p *probe) {
		salts := map[string]bool{}
		for range 3 {
			f := tr.oneLine(p, "login", func(v *visit) {
				if v.admit(vectorHELO) {
					v.ackAll()
				}
			})
			salt := f.all()[0].ping.list[2]
			if _, err := hex.DecodeString(salt.text); err != nil || salt.kind != "str" || salt.text == "" {
				p.Errorf("the salt is the %s %q", salt.kind, salt.text)
			}
			if salts[salt.text] {
				p.Errorf("the salt %q came twice", salt.text)
			}
			salts[salt.text] = true
		}
	})
}

func rule38client(tr *trial) {
	tr.run("an empty key", func(p *probe) {
		if foreign() {
			p.unseen("needs a client that the suite starts itself")
		}
		file := filepath.Join(p.TempDir(), "empty.key")
		p.must(os.WriteFile(file, []byte("\n"), 0o600))
		to := "forward://127.0.0.1:9?shared_key_file=" + filepath.ToSlash(file)
		path, err := program()
		p.must(err)
		cmd := exec.Command(path, "send", "--to", to)
		if tr.sub == logger {
			cmd = exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), loggerEnv+"="+to)
		}
		text, err := runFor(cmd)
		if err == nil || !strings.Contains(text, "empty") {
			p.Errorf("it starts: %v\n%s", err, text)
		}
	})
}

// perChunk gives a client lines one after another, and returns the visits that it made to a fake
// that greets it so.
func (tr *trial) perChunk(p *probe, keepalive string) (visits []*visit, chunks int) {
	p.Helper()
	helo := "92" + str("HELO") + "83" + str("nonce") + bin(theNonce) + str("auth") + "a0" + str("keepalive") + keepalive
	f := newFake(p, nil, func(v *visit) {
		if v.admit(helo) {
			v.ackAll()
		}
	})
	s := tr.client(p, "key", f)
	var texts []string
	for range 3 {
		text := newLine()
		s.line(text)
		until(p, "the event arrives", func() bool { return f.has(text) > 0 })
		texts = append(texts, text)
	}
	s.finish(f, texts...)
	visits = f.all()
	for _, v := range visits {
		chunks += len(v.got())
	}
	if chunks < 3 {
		p.Errorf("%d chunks", chunks)
	}
	return visits, chunks
}

func rule40client(tr *trial) {
	tr.run("a connection per chunk where keepalive is denied", func(p *probe) {
		visits, _ := tr.perChunk(p, "c2")
		for _, v := range visits {
			if n := len(v.got()); n > 1 {
				p.Errorf("%d chunks on one connection", n)
			}
		}
	})
	tr.run("one connection where it is not", func(p *probe) {
		if visits, chunks := tr.perChunk(p, "c3"); len(visits) != 1 {
			p.Errorf("%d connections for %d chunks", len(visits), chunks)
		}
	})
}
