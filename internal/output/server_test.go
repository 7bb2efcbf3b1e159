// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// A server does with each connection what a script says, and remembers what it stored.
type server struct {
	name   string
	script func(n int, p *peer) // n counts the connections from 1
	room   int                  // bytes that a connection holds: 1 MiB if 0

	mu     sync.Mutex
	down   bool // refuses
	conns  int
	dials  int
	open   []*peer
	log    []string // "n: id" for each chunk read
	stored map[string]bool
	wg     sync.WaitGroup
}

// A peer is the server's end of one connection.
type peer struct {
	*end
	s    *server
	n    int
	scan msgpack.Scanner
	buf  []byte
}

// A network has servers, by address.
type network map[string]*server

// newNetwork makes servers that store and ack, named a, b, c…
func newNetwork(n int) network {
	w := make(network)
	for i := range n {
		name := string(rune('a' + i))
		w[name] = &server{name: name, stored: make(map[string]bool)}
	}
	return w
}

func (w network) names() []string {
	var names []string
	for name := range w {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (w network) dial(_ context.Context, network, address string) (net.Conn, error) {
	s := w[address]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	if s.down {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	room := s.room
	if room == 0 {
		room = 1 << 20
	}
	near, far := pipe(room)
	s.conns++
	p := &peer{end: far, s: s, n: s.conns}
	s.open = append(s.open, p)
	script := s.script
	if script == nil {
		script = func(_ int, p *peer) { p.serve() }
	}
	s.wg.Go(func() {
		script(p.n, p)
		_ = p.Close()
	})
	return near, nil
}

// kill resets all connections and refuses fresh ones.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	for _, p := range s.open {
		p.Reset()
	}
	s.open = nil
}

// start ends kill.
func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

// attempts is how often it was dialed.
func (s *server) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

// count is how many chunks it stored.
func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stored)
}

// next reads a message.
func (p *peer) next() (*forward.Chunk, error) {
	seen := 0
	for {
		n, done, err := p.scan.Scan(p.buf[seen:])
		if err != nil {
			return nil, err
		}
		if seen += n; done {
			c, err := forward.ParseChunk(bytes.Clone(p.buf[:seen]))
			p.buf = p.buf[seen:]
			p.scan.Reset(msgpack.Limits{})
			if err == nil {
				p.s.mu.Lock()
				p.s.log = append(p.s.log, fmt.Sprintf("%d: %s", p.n, c.ID))
				p.s.mu.Unlock()
			}
			return c, err
		}
		b := make([]byte, 4096)
		n, err = p.Read(b)
		p.buf = append(p.buf, b[:n]...)
		if err != nil {
			return nil, err
		}
	}
}

// store remembers a chunk; the second time it is a repeat.
func (p *peer) store(c *forward.Chunk) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.stored[chunkName(c)] = true
}

func (p *peer) ack(id []byte) {
	b := msgpack.AppendMapHeader(nil, 1)
	b = msgpack.AppendString(b, "ack")
	b = msgpack.AppendString(b, string(id))
	_, _ = p.Write(b)
}

// serve stores and acks all that comes.
func (p *peer) serve() { p.serveSome(1 << 30) }

// serveSome does so for n chunks.
func (p *peer) serveSome(n int) {
	for range n {
		c, err := p.next()
		if err != nil {
			return
		}
		p.store(c)
		if c.ID != nil {
			p.ack(c.ID)
		}
	}
}

// keep stores what comes and acks nothing.
func (p *peer) keep() {
	for {
		c, err := p.next()
		if err != nil {
			return
		}
		p.store(c)
	}
}

// hold does nothing until the client ends the connection.
func (p *peer) hold() {
	never := deadline{}
	_ = p.in.await(&never, func() bool { return p.in.ended || p.in.broken != nil })
}

// chunkName is what a chunk's entries say it is: chunks of a test differ by tag.
func chunkName(c *forward.Chunk) string { return c.Tag }

// A bench has chunks submitted and knows what became of each.
type bench struct {
	*testing.T
	net network
	cfg ForwardConfig
	d   Output

	mu      sync.Mutex
	n       int
	results map[string][]Result
	taken   map[string]int // by the handler
	events  []string
	closed  bool
}

// newBench makes an output over all servers of the network. It must be in a bubble.
func newBench(t *testing.T, w network, set func(c *ForwardConfig)) *bench {
	b := &bench{T: t, net: w, results: make(map[string][]Result), taken: make(map[string]int)}
	b.cfg = ForwardConfig{Hosts: w.names(), Dial: w.dial}
	b.cfg.Breaker = func(e BreakerEvent) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, e.State.String())
		if (e.Err != nil) != (e.State == BreakerOpen) {
			b.Errorf("%v: %v", e.State, e.Err)
		}
	}
	if set != nil {
		set(&b.cfg)
	}
	b.d = NewForward(&b.cfg)
	return b
}

// submit submits n chunks: 1, 2, 3…
func (b *bench) submit(n int) {
	for range n {
		b.submitChunk(100)
	}
}

func (b *bench) submitChunk(size int) {
	b.mu.Lock()
	b.n++
	name := fmt.Sprint(b.n)
	b.mu.Unlock()
	entries := bytes.Repeat([]byte("\x92\x01\x80"), max(1, size/3))
	c := &forward.Chunk{Tag: name, ID: []byte("id" + name), UniqueID: true, Entries: entries, Events: len(entries) / 3}
	b.d.Submit(c, func(r Result) {
		clear(c.Entries) // from now on the caller's
		clear(c.ID)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.results[name] = append(b.results[name], r)
	})
}

// take is a handler that takes everything.
func (b *bench) take(_ error, c *forward.Chunk) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken[chunkName(c)]++
	return nil
}

// done is how many chunks are done.
func (b *bench) done() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.results)
}

// await lets time pass until n chunks are done.
func (b *bench) await(n int) {
	b.Helper()
	for i := range 10_000 {
		if b.done() >= n {
			return
		}
		pass(time.Duration(20+i) * time.Millisecond)
	}
	b.Fatalf("%d of %d done", b.done(), n)
}

func (b *bench) told() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.events, " ")
}

// tally counts what became of chunks.
type tally struct{ delivered, taken, given, repeated int }

// end closes the output and asserts the law: every chunk is done once; what is called delivered is
// stored by a server, what is called taken was taken by the handler, and what is in two places is
// said to be so. (Repeats to one server are dropped by their id.)
func (b *bench) end() (n tally) {
	b.Helper()
	b.close()
	for name, s := range b.net {
		s.wg.Wait()
		s.mu.Lock()
		for c := range s.stored {
			if len(b.results[c]) == 0 {
				b.Errorf("%s stored %s, which nobody sent", name, c)
			}
		}
		s.mu.Unlock()
	}
	for i := range b.n {
		c := fmt.Sprint(i + 1)
		rs := b.results[c]
		if len(rs) != 1 {
			b.Errorf("chunk %s: done %d times", c, len(rs))
			continue
		}
		stored := 0
		for _, s := range b.net {
			if s.stored[c] {
				stored++
			}
		}
		places := stored + b.taken[c]
		switch r := rs[0]; {
		case r.Err != nil:
			n.given++
			if !errors.Is(r.Err, ErrClosed) || !b.closed {
				b.Errorf("chunk %s: %v", c, r.Err)
			}
			continue
		case r.HandedOver:
			n.taken++
			if b.taken[c] != 1 {
				b.Errorf("chunk %s: the handler took it %d times", c, b.taken[c])
			}
		default:
			n.delivered++
			if stored == 0 {
				b.Errorf("chunk %s is delivered, nobody has it", c)
			}
		}
		if rs[0].MaybeRepeated {
			n.repeated++
		} else if places > 1 {
			b.Errorf("chunk %s is in %d places, which nobody said", c, places)
		}
	}
	return n
}

// close closes the output.
func (b *bench) close() {
	b.Helper()
	if b.closed {
		return
	}
	b.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := b.d.Close(ctx); err != nil {
		b.Error(err)
	}
	if err := b.d.Close(ctx); err != nil {
		b.Error(err)
	}
	b.submit(1)
	if r := b.results[fmt.Sprint(b.n)]; len(r) != 1 || !errors.Is(r[0].Err, ErrClosed) {
		b.Errorf("after Close: %v", r)
	}
}
