// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"sync"
	"sync/atomic"
)

// An AsyncHandler is a Handler that finishes chunks later, in any order. The server then calls
// StartForward in place of ServeForward, unless the Handler is a GroupHandler too.
type AsyncHandler interface {
	Handler
	// StartForward takes a chunk and returns soon; done, called from any goroutine, StartForward's
	// own included, says what came of it: nil when it is stored as promised, an error when it is
	// not. Only the first call of done counts.
	//
	// The chunk and its bytes are lent until done is called, and must not be changed. Acks leave in
	// the order in which a connection's chunks were sent, each after its own done and those of all
	// before it. After an error that chunk is not acked, nor is any later one of the connection,
	// which is closed; what was stored of the later ones comes again. A connection has at most
	// MaxInFlight chunks with the handler, and an eighth of Server.Memory: beyond it nothing more
	// is read from it.
	//
	// ctx is done when the server is closed or its Shutdown runs out of time. Shutdown waits for
	// done; Close does not, for nothing is acked any more.
	StartForward(ctx context.Context, c *Chunk, done func(error))
}

// How this file is organised. Chunks that a handler has longer than a call lie in buffers that the
// connection is done with, or goes on filling behind them. So buffers count who holds them: their
// owner, the connection, and the parcels. A parcel is what was handed on together; a flight is one
// chunk of it. Where a flight ends its acker is waiting for it (ack.go), in order; when the last
// one of a parcel ends, its buffers go back.

// parcel is described above.
type parcel struct {
	c    *conn
	left atomic.Int32 // flights
	bufs []*buffer
}

// flight is one chunk that the handler has.
type flight struct {
	chunk  Chunk
	sent   Sent // of the chunk, where it has one
	parcel *parcel
	called atomic.Bool
	ended  chan struct{}
	err    error // of done; read after ended
}

// done is what the handler calls.
func (f *flight) done(err error) {
	if f.called.Swap(true) {
		return
	}
	p := f.parcel
	f.err = err
	close(f.ended)
	if err != nil {
		p.c.away.failed.Store(true)
		p.c.interrupt() // what comes from here on would not be acked
	}
	p.end()
}

// wait is for the acker.
func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.ended:
		return f.err
	default:
	}
	select {
	case <-f.ended:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end is called at the end of each flight.
func (p *parcel) end() {
	a := &p.c.away
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.left.Add(-1) == 0 {
		for _, b := range p.bufs {
			p.c.giveBack(b)
		}
	}
	a.n--
	if a.woken != nil {
		close(a.woken)
		a.woken = nil
	}
}

// share lets a parcel hold a buffer too.
func (p *parcel) share(b *buffer) {
	b.owned.Add(1)
	p.bufs = append(p.bufs, b)
}

// away counts a connection's flights. Lock order: away.mu, then those of budget and pool.
type away struct {
	failed atomic.Bool // one ended with an error
	mu     sync.Mutex
	n      int
	woken  chan struct{} // closed when a flight ends; nil: nobody waits. Only the reader waits.
}

// until waits until enough says so of the number of flights, or the server is closing.
func (a *away) until(enough func(n int) bool, stop <-chan struct{}) bool {
	for {
		a.mu.Lock()
		if enough(a.n) {
			a.mu.Unlock()
			return true
		}
		if a.woken == nil {
			a.woken = make(chan struct{})
		}
		woken := a.woken
		a.mu.Unlock()
		select {
		case <-woken:
		case <-stop:
			return false
		}
	}
}

func none(n int) bool { return n == 0 }

// handAsync gives chunks to a handler that finishes them later.
func (c *conn) handAsync(chunks []*Chunk) error {
	p, err := c.pack(chunks)
	if err != nil {
		return err
	}
	g := c.g
	room := func(n int) bool {
		return c.away.failed.Load() || n == 0 || n < c.s.maxInFlight && c.hold.lent.Load() <= c.s.mem.limit/8
	}
	at, acked := 0, 0
	for i, ch := range chunks {
		if !c.away.until(room, c.s.stop) || c.away.failed.Load() {
			p.abandon(len(chunks) - i)
			return errGone
		}
		f := &flight{chunk: *ch, parcel: p, ended: make(chan struct{})}
		if ch.Sent != nil {
			f.sent = *ch.Sent
			f.chunk.Sent = &f.sent
		}
		end, count := len(g.acks), g.ackCount
		if i+1 < len(chunks) {
			end, count = g.starts[i+1].acks, g.starts[i+1].count
		}
		c.away.mu.Lock()
		c.away.n++
		c.away.mu.Unlock()
		c.s.async.StartForward(c.ctx, &f.chunk, f.done)
		if err := c.ack(g.acks[at:end], count-acked, f.wait); err != nil {
			p.abandon(len(chunks) - i - 1)
			return err
		}
		at, acked = end, count
	}
	if c.hold.over { // an overdraft ends before the next message begins
		c.away.until(none, c.s.stop)
	}
	return nil
}

// abandon ends n flights that never began.
func (p *parcel) abandon(n int) {
	for range n {
		p.c.away.mu.Lock()
		p.c.away.n++
		p.c.away.mu.Unlock()
		p.end()
	}
}

// pack makes a parcel of chunks that are to be handed on. What is small in a large buffer moves to
// one of its own, so that it does not hold the other.
func (c *conn) pack(chunks []*Chunk) (*parcel, error) {
	g := c.g
	p := &parcel{c: c}
	p.left.Store(int32(len(chunks)))
	if len(g.extra) == 0 || c.json { // of JSON the connection has no buffer of its own
		size := int64(0)
		for _, ch := range chunks {
			size += int64(len(ch.ID) + len(ch.Entries))
			if ch.Sent != nil {
				size += int64(len(ch.Sent.Entries))
			}
		}
		if own := bufferSize(size); c.json || own <= len(c.buf.b)/8 {
			if err := c.memoryNow(int64(own)); err != nil {
				return nil, err
			}
			b := c.s.pool.take(own, c.sender.Conn)
			rest := b.b[:0]
			for _, ch := range chunks {
				parts := [...]*[]byte{&ch.ID, &ch.Entries, nil}
				if ch.Sent != nil {
					parts[2] = &ch.Sent.Entries
				}
				for _, part := range parts {
					if part != nil && *part != nil {
						n := len(rest)
						rest = append(rest, *part...)
						*part = rest[n:len(rest):len(rest)]
					}
				}
			}
			p.share(b)
			c.drop(b)
			return p, nil
		}
	}
	if c.buf != nil {
		p.share(c.buf)
	}
	if g.scratch != nil {
		p.share(g.scratch)
		c.dropScratch()
	}
	for _, b := range g.extra {
		p.share(b)
	}
	return p, nil
}

// lentBack waits until the handler has finished all chunks of the connection, or the server is
// closing. What else the connection is charged with is forgiven.
func (c *conn) lentBack() {
	if c.s.async == nil {
		return
	}
	c.away.until(none, c.s.stop)
	c.away.mu.Lock()
	defer c.away.mu.Unlock()
	c.forgive()
}
