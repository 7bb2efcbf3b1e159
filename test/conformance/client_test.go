// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spillwaylog/spillway/internal/testcert"
)

// Rules 3, 9, 24, 28, 29, 42, 44 and 45 at a client.

// oneLine gives a client one line, and a fake that acks all.
func (tr *trial) oneLine(p *probe, kind string, mood func(*visit)) *fake {
	p.Helper()
	f := newFake(p, nil, mood)
	s := tr.client(p, kind, f)
	text := newLine()
	s.line(text)
	s.finish(f, text)
	return f
}

func rule03client(tr *trial) {
	tr.run("each message is in one of the modes", func(p *probe) {
		f := tr.oneLine(p, "plain", (*visit).ackAll)
		for _, m := range f.all()[0].got() {
			if m.wrong != "" {
				p.Errorf("%s: % x", m.wrong, clip(m.raw.raw))
			}
		}
	})
}

func rule09client(tr *trial) {
	tr.run("times are EventTime", func(p *probe) {
		f := tr.oneLine(p, "plain", (*visit).ackAll)
		for _, m := range f.all()[0].got() {
			for _, e := range m.entries {
				when := e.list[0]
				if when.kind == "array" && len(when.list) > 0 {
					when = when.list[0]
				}
				if when.kind != "ext" || when.typ != 0 || len(when.text) != 8 {
					p.Errorf("a time that is % x", clip(when.raw))
				}
			}
		}
	})
}

func rule24client(tr *trial) {
	tr.run("it asks for acks", func(p *probe) {
		f := tr.oneLine(p, "plain", (*visit).ackAll)
		for _, m := range f.all()[0].got() {
			if m.id.kind == "" {
				p.unseen("the client asks for no acks")
			}
			if m.id.kind != "str" || m.id.text == "" {
				p.Errorf("an id that is %s: % x", m.id.kind, clip(m.id.raw))
			}
		}
	})
}

// resent wants that what was sent first on the first connection comes again, as it was, on the
// second, and that the first one was closed.
func (f *fake) resent(p *probe) {
	p.Helper()
	visits := f.all()
	if len(visits) < 2 {
		p.Fatalf("%d connections", len(visits))
	}
	first, again := visits[0].got(), visits[1].got()
	if len(first) == 0 || len(again) == 0 {
		p.Fatalf("%d messages on the first connection, %d on the second", len(first), len(again))
	}
	a, b := first[0], again[0]
	if a.id.kind == "" {
		p.unseen("the client asks for no acks")
	}
	if !bytes.Equal(a.id.raw, b.id.raw) {
		p.Errorf("sent again with the id %q, first with %q", b.id.text, a.id.text)
	}
	if a.plain() != b.plain() || a.tag != b.tag {
		p.Errorf("sent again it is another one: % x, first % x", clip(b.raw.raw), clip(a.raw.raw))
	}
	until(p, "the first connection is closed by the client", func() bool {
		visits[0].mu.Lock()
		defer visits[0].mu.Unlock()
		return visits[0].left != nil
	})
	if err := visits[0].left; errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
		p.Errorf("the first connection is not closed by the client: %v", err)
	}
	if n := len(visits[0].got()); n > 1 && !p.pipelines {
		p.Errorf("%d messages on the first connection", n)
	}
}

// moody is a mood that differs on the first connection: do is given its first message.
func moody(do func(v *visit, m *message)) func(*visit) {
	return func(v *visit) {
		if v.n > 1 {
			v.ackAll()
			return
		}
		m, ok := v.next()
		if !ok {
			return
		}
		do(v, m)
		for ok {
			_, ok = v.next()
		}
	}
}

func rule28(tr *trial) {
	again := func(name string, do func(v *visit, m *message)) {
		tr.run(name, func(p *probe) {
			p.pipelines = tr.sub.(*sender).pipelines
			tr.oneLine(p, "plain", moody(do)).resent(p)
		})
	}
	again("another id is acked", func(v *visit, _ *message) { v.write(ackOf + str(newID())) })
	again("another id is acked, then the right one", func(v *visit, m *message) {
		v.write(ackOf + str(newID()))
		v.write(fmt.Sprintf("%s%x", ackOf, m.id.raw))
	})
	again("half an ack, then the end", func(v *visit, m *message) {
		v.write("81 a3 6163")
		v.hangUp()
	})
	again("the end in place of an ack", func(v *visit, _ *message) { v.hangUp() })
	again("an ack that is no map", func(v *visit, _ *message) { v.write("93 01 02 03") })
	again("an ack that is no MessagePack", func(v *visit, _ *message) { v.write("c1 c1 c1") })
	again("an ack that is a number", func(v *visit, _ *message) { v.write(ackOf + "05") })
	if tr.sub != send { // it waits a minute
		tr.run("no ack", func(p *probe) {
			p.pipelines = tr.sub.(*sender).pipelines
			f := newFake(p, nil, moody(func(*visit, *message) {}))
			s := tr.client(p, "plain", f)
			text := newLine()
			s.line(text)
			if foreign() {
				s.in.Close()
				if !within(*wait, func() bool { return f.has(text) > 0 }) {
					p.unseen("nothing was sent again within %v (-wait)", *wait)
				}
			}
			s.finish(f, text)
			f.resent(p)
		})
	}
	tr.run("a reset in place of an ack", func(p *probe) {
		f := tr.oneLine(p, "plain", moody(func(v *visit, _ *message) {
			if c, ok := v.Conn.(*net.TCPConn); ok {
				_ = c.SetLinger(0)
			}
			v.Close()
		}))
		if n := len(f.all()); n < 2 {
			p.Errorf("%d connections", n)
		}
	})
}

// hangUp ends the server's side.
func (v *visit) hangUp() {
	if cw, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		_ = cw.CloseWrite() // the client may have gone first
	}
}

func rule29(tr *trial) {
	tr.run("an ack byte by byte", func(p *probe) {
		f := tr.oneLine(p, "plain", func(v *visit) {
			for m, ok := v.next(); ok; m, ok = v.next() {
				v.f.took(m)
				for _, b := range bytewise(append(unhex(ackOf), m.id.raw...)) {
					_, _ = v.Write(b) // the client may be gone
				}
			}
		})
		if n := len(f.all()); n != 1 {
			p.Errorf("%d connections", n)
		}
	})
	if tr.sub.(*sender).pipelines {
		tr.run("two acks in one segment", func(p *probe) {
			f := newFake(p, nil, func(v *visit) {
				var acks []byte
				for m, ok := v.next(); ok; m, ok = v.next() {
					v.f.took(m)
					if acks = append(append(acks, unhex(ackOf)...), m.id.raw...); len(v.got()) == 2 {
						_, _ = v.Write(acks) // the client may be gone
						v.ackAll()
						return
					}
				}
			})
			s := tr.client(p, "plain", f)
			one, two := newLine(), newLine()
			s.line(one)
			until(p, "the first message arrives", func() bool { return f.has(one) > 0 })
			s.line(two)
			if foreign() && !within(*wait/4, func() bool { return f.has(two) > 0 }) {
				p.unseen("the client has one message in flight")
			}
			s.finish(f, one, two)
			if n := len(f.all()); n != 1 {
				p.Errorf("%d connections", n)
			}
		})
	}
	tr.run("an empty map", func(p *probe) {
		p.pipelines = tr.sub.(*sender).pipelines
		tr.oneLine(p, "plain", moody(func(v *visit, _ *message) { v.write("80") })).resent(p)
	})
}

func rule44(tr *trial) {
	look := func(name, kind string) {
		tr.run(name, func(p *probe) {
			f := tr.oneLine(p, kind, (*visit).ackAll)
			for _, m := range f.all()[0].got() {
				if m.mode != "packed" {
					p.unseen("the client does not send packed entries")
				}
				if m.packed.kind != "bin" {
					p.Errorf("packed entries as %s", m.packed.kind)
				}
				if how, _ := m.option.get("compressed"); kind != "plain" && how.text != kind {
					p.Errorf("compressed by %q", how.text)
				}
			}
		})
	}
	look("packed entries", "plain")
	if tr.sub == logger { // send compresses nothing
		look("gzip", "gzip")
		look("zstd", "zstd")
	}
}

func rule45(tr *trial) {
	tr.run("ids", func(p *probe) {
		f := newFake(p, nil, (*visit).ackAll)
		s := tr.client(p, "plain", f)
		var texts []string
		for range 5 {
			text := newLine()
			s.line(text)
			until(p, "the event arrives", func() bool { return f.has(text) > 0 })
			texts = append(texts, text)
		}
		s.finish(f, texts...)
		seen := map[string]string{}
		for _, v := range f.all() {
			for _, m := range v.got() {
				if m.id.kind == "" {
					p.unseen("the client asks for no acks")
				}
				if b, err := decodeID(m.id.text); err != nil || len(b) != 16 {
					p.Errorf("an id that is not base64 of 128 bits: %q", m.id.text)
				}
				if other, ok := seen[m.id.text]; ok && other != m.plain() {
					p.Errorf("two chunks have the id %q", m.id.text)
				}
				seen[m.id.text] = m.plain()
			}
		}
	})
	tr.run("a chunk resent", func(p *probe) {
		p.pipelines = tr.sub.(*sender).pipelines
		f := tr.oneLine(p, "plain", func(v *visit) {
			if m, ok := v.next(); ok && v.n > 2 {
				v.ack(m)
				v.ackAll()
			}
		})
		visits := f.all()
		for _, v := range visits[1:] {
			a, b := visits[0].got()[0], v.got()
			if len(b) > 0 && (b[0].id.text != a.id.text || b[0].plain() != a.plain()) {
				p.Errorf("sent again it is another one")
			}
		}
	})
}

func rule42client(tr *trial) {
	secure := func(p *probe, change func(*tls.Config)) *tls.Config {
		p.ca = testcert.New(p.T)
		c := &tls.Config{Certificates: []tls.Certificate{p.ca.Server.TLS}, MinVersion: tls.VersionTLS12}
		change(c)
		return c
	}
	good := func(name string, change func(*tls.Config)) {
		tr.run(name, func(p *probe) {
			f := newFake(p, secure(p, change), (*visit).ackAll)
			s := tr.client(p, "tls", f)
			text := newLine()
			s.line(text)
			s.finish(f, text)
		})
	}
	bad := func(name string, change func(*probe, *tls.Config)) {
		tr.run(name, func(p *probe) {
			f := newFake(p, secure(p, func(c *tls.Config) { change(p, c) }), (*visit).ackAll)
			s := tr.client(p, "tls", f)
			text := newLine()
			s.line(text)
			until(p, "the client comes again", func() bool { return len(f.all()) >= 2 || s.over() })
			if f.has(text) > 0 {
				p.Errorf("the event went out all the same")
			}
		})
	}
	good("TLS 1.2", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	good("TLS 1.3", func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 })
	bad("TLS 1.1", func(_ *probe, c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	bad("somebody else's authority", func(p *probe,
		c *tls.Config,
	) {
		c.Certificates = []tls.Certificate{testcert.New(p.T).Server.TLS}
	})
	bad("another name", func(p *probe, c *tls.Config) {
		c.Certificates = []tls.Certificate{p.ca.Issue(p.T,
			&testcert.Options{Name: "other", Hosts: []string{"other.example"}}).TLS}
	})
	bad("a certificate that is over", func(p *probe, c *tls.Config) {
		c.Certificates = []tls.Certificate{p.ca.Issue(p.T,
			&testcert.Options{
				Name: "localhost", Hosts: []string{"127.0.0.1"},
				NotAfter: time.Now().Add(-time.Hour),
			}).TLS}
	})
}
