// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
)

// A store is a forward.Server over the machine's own network.
type store struct {
	mu     sync.Mutex
	events map[string]int // by tag
	*forward.Server
	served chan error
}

// listen starts a server.
func listen(t testing.TB, network, address string) (s *store, at string) {
	t.Helper()
	l, err := net.Listen(network, address)
	needs.Have(t, err == nil, "sockets of IPv4, IPv6 and Unix on this machine: %v", err)
	s = &store{events: make(map[string]int), served: make(chan error, 1)}
	s.Server = &forward.Server{Handler: forward.HandlerFunc(func(_ context.Context, c *forward.Chunk) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events[c.Tag] += c.Events
		return nil
	})}
	go func() { s.served <- s.Serve(l) }()
	return s, l.Addr().String()
}

// end stops it.
func (s *store) end(t testing.TB) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-s.served
}

func (s *store) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.events {
		n += k
	}
	return n
}

func entriesOf(n int) []byte { return bytes.Repeat([]byte("\x92\x01\x81\xa1k\xa1v"), n) }

// deliverOne submits a chunk of one event and waits for its result.
func deliverOne(t testing.TB, d Output, tag string) Result {
	t.Helper()
	done := make(chan Result, 1)
	d.Submit(&forward.Chunk{Tag: tag, ID: forward.NewID(), UniqueID: true, Entries: entriesOf(1), Events: 1},
		func(r Result) { done <- r })
	select {
	case r := <-done:
		return r
	case <-time.After(4 * time.Minute):
		t.Fatal("not delivered")
	}
	panic("unreachable")
}

// poll waits until something is so.
func poll(t testing.TB, so func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(4 * time.Minute); !so(); <-tick.C {
		if time.Now().After(limit) {
			t.Fatal("it takes too long")
		}
	}
}

func closeNow(t testing.TB, d Output) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	if err := d.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestForwardNetworks(t *testing.T) {
	for _, tc := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"},
		{"tcp", "[::1]:0"},
		{"unix", filepath.Join(t.TempDir(), "s")},
	} {
		for _, how := range []string{"", "gzip", "zstd"} {
			for _, noAck := range []bool{false, true} {
				t.Run(fmt.Sprint(tc, how, noAck), func(t *testing.T) {
					s, at := listen(t, tc.network, tc.address)
					d := NewForward(&ForwardConfig{
						Network: tc.network, Hosts: []string{at}, Compress: how,
						NoAck: noAck,
					})
					var wg sync.WaitGroup
					for i := range 100 {
						wg.Add(1)
						d.Submit(&forward.Chunk{
							Tag: fmt.Sprint(i % 3), ID: forward.NewID(), UniqueID: true,
							Entries: entriesOf(i + 1), Events: i + 1,
						}, func(r Result) {
							defer wg.Done()
							if r.Err != nil || r.HandedOver || r.MaybeRepeated {
								t.Errorf("%+v", r)
							}
						})
					}
					wg.Wait()
					poll(t, func() bool { return s.total() == 5050 }) // without acks it is still under way
					closeNow(t, d)
					s.end(t)
				})
			}
		}
	}
}

// The first event after a server's restart is delivered, at once, with and without acks: the
// connection's end was seen.
func TestForwardRestart(t *testing.T) {
	for _, noAck := range []bool{false, true} {
		s, at := listen(t, "tcp", needs.Address())
		d := NewForward(&ForwardConfig{Hosts: []string{at}, NoAck: noAck})
		for range 5 {
			deliverOne(t, d, "t")
			poll(t, func() bool { return s.total() == 1 })
			s.end(t)
			f := d.(*forwarder)
			poll(t, func() bool { // the end is seen
				f.mu.Lock()
				defer f.mu.Unlock()
				return !f.hosts[0].up
			})
			s, _ = listen(t, "tcp", at)
		}
		closeNow(t, d)
		s.end(t)
	}
}

// Two servers that end and begin again all the time, over the machine's own network: each chunk is
// somewhere, and where it is twice that is said.
func TestForwardRestarts(t *testing.T) {
	var mu sync.Mutex
	stored := make(map[string]map[string]bool) // ids, and who has them
	begin := func(address, name string) (*forward.Server, string, chan error) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		s := &forward.Server{Handler: forward.HandlerFunc(func(_ context.Context, c *forward.Chunk) error {
			mu.Lock()
			defer mu.Unlock()
			if stored[string(c.ID)] == nil {
				stored[string(c.ID)] = make(map[string]bool)
			}
			stored[string(c.ID)][name] = true
			return nil
		})}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		return s, l.Addr().String(), served
	}
	a, atA, servedA := begin(needs.Address(), "a")
	b, atB, servedB := begin(needs.Address(), "b")
	d := NewForward(&ForwardConfig{
		Hosts: []string{atA, atB}, MinBackoff: time.Millisecond,
		MaxBackoff: 10 * time.Millisecond, FailoverAfter: 100 * time.Millisecond,
	})
	const chunks = 800
	results := make(map[string][]Result)
	room := make(chan struct{}, 12)
	for i := range chunks {
		room <- struct{}{}
		id := forward.NewID()
		n := 1 + i%7*100
		d.Submit(&forward.Chunk{Tag: "t", ID: id, UniqueID: true, Entries: entriesOf(n), Events: n}, func(r Result) {
			mu.Lock()
			results[string(id)] = append(results[string(id)], r)
			mu.Unlock()
			<-room
		})
		switch i % 160 {
		case 50:
			_ = a.Close()
			<-servedA
		case 80:
			a, _, servedA = begin(atA, "a")
		case 100:
			_ = b.Close()
			<-servedB
			b, _, servedB = begin(atB, "b")
		case 150:
			_ = a.Close()
			_ = b.Close()
			<-servedA
			<-servedB
			a, _, servedA = begin(atA, "a")
			b, _, servedB = begin(atB, "b")
		}
	}
	for range cap(room) {
		room <- struct{}{}
	}
	closeNow(t, d)
	_ = a.Close()
	_ = b.Close()
	<-servedA
	<-servedB
	if len(results) != chunks {
		t.Errorf("%d of %d chunks", len(results), chunks)
	}
	repeated := 0
	for id, rs := range results {
		switch r := rs[0]; {
		case len(rs) != 1 || r.Err != nil || r.HandedOver || len(stored[id]) == 0:
			t.Fatalf("%s: %+v, stored by %v", id, rs, stored[id])
		case len(stored[id]) > 1 && !r.MaybeRepeated:
			t.Errorf("%s is stored by two, which nobody said", id)
		case r.MaybeRepeated:
			repeated++
		}
	}
	t.Logf("%d may be repeated", repeated)
}

// What a chunk costs does not depend on its events.
func TestForwardAllocs(t *testing.T) {
	id := forward.NewID()
	ack := append([]byte("\x81\xa3ack\xb8"), id...)
	d := NewForward(&ForwardConfig{Hosts: []string{"a"}, Dial: func(context.Context, string, string) (net.Conn, error) {
		e, _ := pipe(1 << 20)
		return &echo{end: e, ack: ack, tail: id}, nil
	}})
	defer closeNow(t, d)
	done := make(chan struct{})
	for _, events := range []int{1, 100_000} {
		c := &forward.Chunk{Tag: "app.web", ID: id, UniqueID: true, Entries: entriesOf(events), Events: events}
		n := testing.AllocsPerRun(100, func() {
			d.Submit(c, func(Result) { done <- struct{}{} })
			<-done
		})
		if n > 50 {
			t.Errorf("a chunk of %d events: %v allocations", events, n)
		}
	}
}

// What submitting and delivering one chunk costs, the server's part and that of loopback included.
func BenchmarkForward(b *testing.B) {
	for _, size := range []int{1, 1000} {
		for _, hosts := range []int{1, 2} {
			b.Run(fmt.Sprintf("events=%d/hosts=%d", size, hosts), func(b *testing.B) {
				var names []string
				for range hosts {
					s, at := listen(b, "tcp", "127.0.0.1:0")
					defer s.end(b)
					names = append(names, at)
				}
				d := NewForward(&ForwardConfig{Hosts: names})
				defer closeNow(b, d)
				c := &forward.Chunk{
					Tag: "app.web", ID: forward.NewID(), UniqueID: true, Entries: entriesOf(size),
					Events: size,
				}
				room := make(chan struct{}, 16)
				b.ReportAllocs()
				for b.Loop() {
					room <- struct{}{}
					d.Submit(c, func(Result) { <-room })
				}
				for range cap(room) {
					room <- struct{}{}
				}
			})
		}
	}
}

// The same without a server: a connection that acks by itself.
func BenchmarkForwardAlone(b *testing.B) {
	id := forward.NewID()
	ack := append([]byte("\x81\xa3ack\xb8"), id...)
	d := NewForward(&ForwardConfig{Hosts: []string{"a"}, Dial: func(context.Context, string, string) (net.Conn, error) {
		e, _ := pipe(1 << 20)
		return &echo{end: e, ack: ack, tail: id}, nil
	}})
	defer closeNow(b, d)
	c := &forward.Chunk{Tag: "app.web", ID: id, UniqueID: true, Entries: entriesOf(1), Events: 1}
	room := make(chan struct{}, 8)
	b.ReportAllocs()
	for b.Loop() {
		room <- struct{}{}
		d.Submit(c, func(Result) { <-room })
	}
	for range cap(room) {
		room <- struct{}{}
	}
}

// echo acks each chunk that is written.
type echo struct {
	*end
	ack, tail []byte
}

func (e *echo) Write(p []byte) (int, error) {
	n := bytes.Count(p, e.tail)
	e.in.update(func() { e.in.buf = append(e.in.buf, bytes.Repeat(e.ack, n)...) })
	return len(p), nil
}
