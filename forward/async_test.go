// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// started is a chunk that a handler has.
type started struct {
	ctx  context.Context
	c    *Chunk
	sum  *Chunk // a copy
	done func(error)
}

// intact fails if the chunk is not what it was.
func (s *started) intact(t *testing.T) {
	t.Helper()
	if s.c.Tag != s.sum.Tag || !bytes.Equal(s.c.ID, s.sum.ID) || !bytes.Equal(s.c.Entries, s.sum.Entries) ||
		!bytes.Equal(s.c.Compressed, s.sum.Compressed) ||
		!bytes.Equal(sentOf(s.c).Entries, sentOf(s.sum).Entries) {
		t.Errorf("chunk %q changed while it was lent", s.sum.ID)
	}
}

// shelf is an AsyncHandler that puts chunks aside until the test finishes them.
type shelf struct {
	mu     sync.Mutex
	chunks []*started
}

func (s *shelf) ServeForward(context.Context, *Chunk) error {
	panic("an asynchronous handler is started")
}

func (s *shelf) StartForward(ctx context.Context, c *Chunk, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chunks = append(s.chunks, &started{ctx, c, c.Clone(), done})
}

func (s *shelf) have() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.chunks)
}

func (s *shelf) at(i int) *started {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chunks[i]
}

func TestAsyncOrder(t *testing.T) {
	h := new(shelf)
	bubble(t, &Server{Handler: h}, func(t *testing.T, p *pipes, peerErrors func() string) {
		q := p.peer()
		for _, id := range []byte("abcd") {
			write(t, q, withID(id))
		}
		synctest.Wait()
		if h.have() != 4 {
			t.Fatalf("%d chunks were started", h.have())
		}
		for _, step := range []struct {
			finish int
			acked  string
		}{{2, ""}, {1, ""}, {1, ""}, {0, "abc"}, {3, "abcd"}} {
			h.at(step.finish).intact(t)
			h.at(step.finish).done(nil)
			h.at(step.finish).done(errors.New("a second call does not count"))
			synctest.Wait()
			if got, _ := q.received(); !bytes.Equal(got, ackOf(step.acked)) {
				t.Fatalf("acks %x after %d, want those of %q", got, step.finish, step.acked)
			}
		}
		if peerErrors() != "" {
			t.Error(peerErrors())
		}
	})
}

// Whatever the modes, the sizes and the order in which chunks are finished: acks leave in order,
// bytes stay as they were, no memory is left behind.
func TestAsyncRandom(t *testing.T) {
	for seed := range uint64(8) {
		h := new(shelf)
		s := &Server{Handler: h, Memory: 8 << 20, MaxInFlight: 20}
		if seed%2 == 1 {
			s.Endpoint.AddressKey = "ip"
		}
		bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
			rng := rand.New(rand.NewPCG(seed, 1))
			q := p.peer()
			var want []byte
			var stream [][]byte
			for i := range 150 {
				id := fmt.Appendf(nil, "id %d", i)
				c := Chunk{Tag: "t", ID: id, Entries: entries(1 + rng.IntN(1<<rng.IntN(11)))}
				how := []string{"", "", "gzip", "zstd"}[rng.IntN(4)]
				if rng.IntN(10) == 0 {
					c.ID = nil
				} else {
					want = wire.AppendAck(want, id, false, false)
				}
				stream = append(stream, wireOf(&c, how))
				if rng.IntN(3) == 0 {
					stream = append(stream, unhex("93 a1 75 05 80"), unhex("93 a1 75 "+hexTime+" 80"))
				}
			}
			all := bytes.Join(stream, nil)
			go func() {
				for len(all) > 0 {
					n := min(len(all), 1+rng.IntN(100<<10))
					if _, err := q.Write(all[:n]); err != nil {
						return
					}
					all = all[n:]
				}
			}()
			pick := rand.New(rand.NewPCG(seed, 2))
			var open []int
			for next := 0; ; {
				synctest.Wait()
				for ; next < h.have(); next++ {
					open = append(open, next)
				}
				if len(open) == 0 {
					break
				}
				if len(open) > 20 {
					t.Fatalf("%d chunks in flight", len(open))
				}
				i := pick.IntN(len(open))
				h.at(open[i]).intact(t)
				h.at(open[i]).done(nil)
				open = slices.Delete(open, i, i+1)
			}
			if got, _ := q.received(); !bytes.Equal(got, want) {
				t.Errorf("%d bytes of acks, want %d, or in another order", len(got), len(want))
			}
			if peerErrors() != "" {
				t.Error(peerErrors())
			}
		})
	}
}

// An error: that chunk is not acked, nor is any later one, stored or not; the earlier ones are.
func TestAsyncError(t *testing.T) {
	h := new(shelf)
	bubble(t, &Server{Handler: h}, func(t *testing.T, p *pipes, peerErrors func() string) {
		q := p.peer()
		for _, id := range []byte("abcd") {
			write(t, q, withID(id))
		}
		synctest.Wait()
		h.at(1).done(errors.New("disk full"))
		h.at(2).done(nil)
		synctest.Wait()
		if got, _ := q.received(); len(got) > 0 || q.closed() {
			t.Errorf("acks %x before the first chunk was finished", got)
		}
		h.at(0).done(nil)
		synctest.Wait()
		if got, _ := q.received(); !bytes.Equal(got, ackOf("a")) || !q.closed() {
			t.Errorf("acks %x, closed %t", got, q.closed())
		}
		h.at(3).intact(t) // it is still lent
		h.at(3).done(nil)
		if peerErrors() != "unstored: connection closed" {
			t.Error(peerErrors())
		}
	})
}

// Shutdown waits for what the handler has; Close tells it that it need not go on.
func TestRule46AsyncShutdown(t *testing.T) {
	h := new(shelf)
	s := &Server{Handler: h}
	bubble(t, s, func(t *testing.T, p *pipes, _ func() string) {
		q := p.peer()
		write(t, q, withID('a'))
		write(t, q, withID('b'))
		synctest.Wait()
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(context.Background()) }()
		h.at(1).done(nil)
		synctest.Wait()
		select {
		case err := <-down:
			t.Fatalf("Shutdown did not wait: %v", err)
		default:
		}
		h.at(0).done(nil)
		if err := <-down; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got, _ := q.received(); !bytes.Equal(got, ackOf("ab")) || !q.closed() {
			t.Errorf("acks %x, closed %t", got, q.closed())
		}
	})
}

func TestAsyncClose(t *testing.T) {
	h := new(shelf)
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Handler: h}
		p := newPipes()
		served := make(chan error)
		go func() { served <- s.Serve(p) }()
		q := p.peer()
		write(t, q, withID('a'))
		synctest.Wait()
		if err := s.Close(); err != nil { // returns, though done was never called
			t.Error(err)
		}
		<-served
		a := h.at(0)
		if a.ctx.Err() == nil {
			t.Error("the handler was not told")
		}
		a.intact(t)
		a.done(nil) // too late, and harmless
		a.done(errors.New("again"))
		if got, _ := q.received(); len(got) > 0 {
			t.Errorf("acks %x", got)
		}
		if st := s.Stats(); st.Memory != 0 || st.Connections != 0 {
			t.Errorf("left behind: %+v", st)
		}
	})
}

// A handler that is slow with one connection's chunks holds up that connection and no other.
func TestAsyncPushesBack(t *testing.T) {
	h := new(shelf)
	s := &Server{Handler: h, Memory: 16 << 20, MaxInFlight: 5}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		slow, good := p.peer(), p.peer()
		var sent atomic.Int64
		go func() {
			for range 1000 {
				if _, err := slow.Write(packedMessage("slow", 2000, "")); err != nil { // 280 KB
					return
				}
				sent.Add(1)
			}
		}()
		synctest.Wait()
		had := h.have()
		if had > 5 || sent.Load() > 10 {
			t.Errorf("%d chunks in flight, %d sent", had, sent.Load())
		}
		for i := range 100 {
			write(t, good, withID(byte('A'+i%26)))
			synctest.Wait()
			if h.have() != had+i+1 {
				t.Fatalf("chunk %d of the good connection was not started", i)
			}
			h.at(had + i).done(nil)
		}
		<-time.After(time.Minute) // the watch does not take it for a slow sender
		if slow.closed() || peerErrors() != "" {
			t.Errorf("closed %t: %s", slow.closed(), peerErrors())
		}
		if used := s.Stats().Memory; used > 16<<20 || used == 0 {
			t.Errorf("%d bytes", used)
		}
		_ = slow.Close()
		for i := 0; i < h.have(); i++ {
			if i < had || i >= had+100 {
				h.at(i).intact(t)
				h.at(i).done(nil)
			}
			synctest.Wait() // one more may be started
		}
	})
}

func TestAsyncJSON(t *testing.T) {
	h := new(shelf)
	bubble(t, &Server{Handler: h}, func(t *testing.T, p *pipes, _ func() string) {
		q := p.peer()
		for _, text := range []string{`["t", 5, {"m":"1"}, {"chunk":"a"}]`, `["t", 0, {"m":"2"}, {"chunk":"b"}]`} {
			write(t, q, []byte(text))
			synctest.Wait()
		}
		for i := range 2 {
			h.at(1 - i).intact(t)
			h.at(1 - i).done(nil)
		}
		synctest.Wait()
		if got, _ := q.received(); string(got) != "{\"ack\":\"a\"}\n{\"ack\":\"b\"}\n" {
			t.Errorf("acks %q", got)
		}
	})
}

// On sockets, many connections, with the race detector's eye on the buffers.
func TestAsyncSockets(t *testing.T) {
	var wg sync.WaitGroup
	s := &Server{Memory: 4 << 20}
	s.Handler = asyncFunc(func(_ context.Context, c *Chunk, done func(error)) {
		wg.Go(func() {
			n := 0
			for range c.All() {
				n++
			}
			if n != c.Events {
				done(fmt.Errorf("%d events, want %d", n, c.Events))
				return
			}
			done(nil)
		})
	})
	sockets(t, s, func(t *testing.T, dial func() net.Conn) {
		var senders sync.WaitGroup
		for i := range 6 {
			c := dial()
			senders.Go(func() {
				defer c.Close()
				rng := rand.New(rand.NewPCG(uint64(i), 3))
				var want []byte
				for k := range 60 {
					id := fmt.Appendf(nil, "%d-%d", i, k)
					if _, err := c.Write(wireOf(&Chunk{
						Tag: "t", ID: id,
						Entries: entries(1 + rng.IntN(1<<rng.IntN(12))),
					}, "")); err != nil {
						t.Error(err)
						return
					}
					want = wire.AppendAck(want, id, false, false)
				}
				if got := readAll(t, c, len(want)); !bytes.Equal(got, want) {
					t.Errorf("connection %d: acks out of order", i)
				}
			})
		}
		senders.Wait()
	})
	wg.Wait()
}

// asyncFunc is a function as an AsyncHandler.
type asyncFunc func(context.Context, *Chunk, func(error))

func (f asyncFunc) ServeForward(context.Context, *Chunk) error { panic("not this one") }

func (f asyncFunc) StartForward(ctx context.Context, c *Chunk, done func(error)) { f(ctx, c, done) }

// TestAsyncLater: a chunk that is too long to be kept decompressed stays what it was, too.
func TestAsyncLater(t *testing.T) {
	h := new(shelf)
	bubble(t, &Server{Handler: h, Memory: 256 << 20, MaxEvent: 1 << 20},
		func(t *testing.T, p *pipes, peerErrors func() string) {
			q := p.peer()
			one := entries(1000)
			long := Chunk{Tag: "t", ID: []byte("a"), Entries: bytes.Repeat(one, maxLater/len(one)+1)}
			write(t, q, wireOf(&long, "zstd"))
			synctest.Wait()
			write(t, q, wireOf(&Chunk{Tag: "u", ID: []byte("b"), Entries: one}, ""))
			synctest.Wait()
			if h.have() != 2 {
				t.Errorf("%d chunks were started, %s", h.have(), peerErrors())
			}
			for i := range h.have() {
				s := h.at(i)
				if i == 0 && (s.c.Entries != nil || len(s.c.Compressed) == 0) {
					t.Errorf("%d bytes of entries, %d compressed", len(s.c.Entries), len(s.c.Compressed))
				}
				s.intact(t)
				s.done(nil)
			}
		})
}
