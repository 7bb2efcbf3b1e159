// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A fake is the suite's own server, for clients. What it does on a connection is its mood.
type fake struct {
	p    *probe
	l    net.Listener
	tls  *tls.Config
	mood func(v *visit)
	wg   sync.WaitGroup

	mu     sync.Mutex
	visits []*visit
	events map[string]int // lines that came with acked messages
}

// A visit is one connection of a client.
type visit struct {
	net.Conn
	f *fake
	n int // 1 is the first
	r *valueReader

	mu       sync.Mutex
	messages []*message
	ping     *value
	left     error // how its reading ended
}

// A message is what a client sent.
type message struct {
	raw     value
	tag     string
	mode    string // message, forward, packed
	option  value
	id      value // of kind "" if there is none
	entries []value
	packed  value
	wrong   string // why it is no message
}

// newFake listens, and visits are served by mood until the case ends.
func newFake(p *probe, secure *tls.Config, mood func(*visit)) *fake {
	p.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	p.must(err)
	f := &fake{p: p, l: l, tls: secure, mood: mood, events: map[string]int{}}
	f.wg.Go(f.serve)
	p.Cleanup(func() {
		l.Close()
		f.mu.Lock()
		for _, v := range f.visits {
			v.Close()
		}
		f.mu.Unlock()
		f.wg.Wait()
	})
	return f
}

func (f *fake) serve() {
	for {
		nc, err := f.l.Accept()
		if err != nil {
			return
		}
		_ = nc.SetDeadline(time.Now().Add(4 * *wait)) // a connection of a test
		if f.tls != nil {
			nc = tls.Server(nc, f.tls)
		}
		f.mu.Lock()
		v := &visit{Conn: nc, f: f, n: len(f.visits) + 1, r: newValueReader(nc)}
		f.visits = append(f.visits, v)
		f.mu.Unlock()
		f.wg.Go(func() {
			f.mood(v)
			v.Close()
		})
	}
}

// addr is where it listens.
func (f *fake) addr() string { return f.l.Addr().String() }

// write writes hexadecimal.
func (v *visit) write(hex string) { _, _ = v.Write(unhex(hex)) } // the client may be gone

// next reads a message; values that are none, such as heartbeats, are passed over.
func (v *visit) next() (*message, bool) {
	for {
		x, err := v.r.next()
		if err != nil {
			v.mu.Lock()
			v.left = err
			v.mu.Unlock()
			return nil, false
		}
		if x.kind != "array" {
			continue
		}
		m := readMessage(x)
		v.mu.Lock()
		v.messages = append(v.messages, m)
		v.mu.Unlock()
		return m, true
	}
}

// ack acks a message.
func (v *visit) ack(m *message) {
	v.f.took(m)
	if m.id.kind != "" {
		v.write(fmt.Sprintf("%s%x", ackOf, m.id.raw))
	}
}

// ackAll acks whatever comes.
func (v *visit) ackAll() {
	for m, ok := v.next(); ok; m, ok = v.next() {
		v.ack(m)
	}
}

// took notes that a message's events have arrived for good.
func (f *fake) took(m *message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range m.entries {
		for _, text := range m.entries[i].texts(nil) {
			f.events[text]++
		}
	}
}

// has tells how often a line has arrived for good.
func (f *fake) has(text string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for have, times := range f.events {
		if strings.Contains(have, text) {
			n += times
		}
	}
	return n
}

// all returns the visits.
func (f *fake) all() []*visit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*visit(nil), f.visits...)
}

// got returns the messages of a visit.
func (v *visit) got() []*message {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]*message(nil), v.messages...)
}

// readMessage takes a message apart.
func readMessage(x value) *message {
	m := &message{raw: x}
	bad := func(format string, args ...any) *message {
		m.wrong = fmt.Sprintf(format, args...)
		return m
	}
	if n := len(x.list); n < 2 || n > 4 {
		return bad("an array of %d", n)
	}
	if x.list[0].kind != "str" {
		return bad("a tag that is %s", x.list[0].kind)
	}
	m.tag = x.list[0].text
	second, option := x.list[1], 2
	switch {
	case second.kind == "int" || second.kind == "ext" || second.kind == "float" || second.kind == "array" &&
		len(second.list) == 2 && second.list[0].kind != "array":
		if len(x.list) < 3 {
			return bad("a time without a record")
		}
		m.mode, option = "message", 3
		m.entries = []value{{kind: "array", list: []value{second, x.list[2]}}}
	case second.kind == "array":
		m.mode, m.entries = "forward", second.list
	case second.kind == "str" || second.kind == "bin":
		m.mode, m.packed = "packed", second
	default:
		return bad("a second element that is %s", second.kind)
	}
	if option < len(x.list) {
		m.option = x.list[option]
		if k := m.option.kind; k != "map" && k != "nil" {
			return bad("an option that is %s", k)
		}
		m.id, _ = m.option.get("chunk")
	}
	if m.mode == "packed" {
		plain, err := m.unpack()
		if err != nil {
			return bad("packed entries: %v", err)
		}
		for r := newValueReader(bytes.NewReader(plain)); ; {
			if _, err := r.r.Peek(1); err != nil {
				break
			}
			e, err := r.next()
			if err != nil {
				return bad("packed entries: %v", err)
			}
			m.entries = append(m.entries, e)
		}
	}
	for _, e := range m.entries {
		if e.kind != "array" || len(e.list) != 2 || e.list[1].kind != "map" {
			return bad("an entry that is none")
		}
	}
	return m
}

// unpack undoes compression.
func (m *message) unpack() ([]byte, error) {
	how, _ := m.option.get("compressed")
	var out bytes.Buffer
	switch how.text {
	case "gzip":
		z, err := gzip.NewReader(strings.NewReader(m.packed.text))
		if err != nil {
			return nil, err
		}
		_, err = out.ReadFrom(z)
		return out.Bytes(), err
	case "zstd":
		z, err := zstd.NewReader(strings.NewReader(m.packed.text))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		_, err = out.ReadFrom(z)
		return out.Bytes(), err
	case "", "text":
		return []byte(m.packed.text), nil
	}
	return nil, fmt.Errorf("compressed by %q", how.text)
}

// plain is the entries' bytes, whatever the mode.
func (m *message) plain() string {
	var b strings.Builder
	for _, e := range m.entries {
		b.Write(e.raw)
	}
	return b.String()
}
