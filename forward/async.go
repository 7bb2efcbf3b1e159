// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/spillwaylog/spillway/forward/internal/budget"
)

// How this file is organised. Chunks that a handler has longer than a call lie in buffers that the
// connection is done with, or goes on filling behind them. So buffers count their holders: their
// owner, the connection, and the parcels. A parcel is what was handed on together; an asyncChunk is
// one chunk of it. Where one ends its acker is waiting for it (ack.go), in order; when the last one
// of a parcel ends, its buffers go back.

// parcel is described above.
type parcel struct {
	c    *remote
	away *away
	left atomic.Int32 // chunks that are not done
	bufs []*budget.Buffer
}

// asyncChunk is one chunk that the handler has.
type asyncChunk struct {
	chunk  Chunk
	sent   Sent // of the chunk, where it has one
	parcel *parcel
	called atomic.Bool
	ended  chan struct{}
	err    error // of done; read after ended
}

// done is what the handler calls.
func (f *asyncChunk) done(err error) {
	if f.called.Swap(true) {
		return
	}
	p := f.parcel
	f.err = err
	close(f.ended)
	if err != nil {
		p.away.failed.Store(true)
		p.c.interrupt() // what comes from here on would not be acked
	}
	p.end()
}

// wait is for the acker.
func (f *asyncChunk) wait(ctx context.Context) error {
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

// end is called at the end of each asyncChunk.
func (p *parcel) end() {
	a := p.away
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.left.Add(-1) == 0 {
		for _, b := range p.bufs {
			p.c.hold.GiveBack(b)
		}
	}
	a.n--
	if a.woken != nil {
		close(a.woken)
		a.woken = nil
	}
}

// share lets a parcel hold a buffer too.
func (p *parcel) share(b *budget.Buffer) {
	b.Share()
	p.bufs = append(p.bufs, b)
}

// away counts a connection's chunks that the handler has. Lock order: away.mu, then those of budget
// and pool.
type away struct {
	failed atomic.Bool // one ended with an error
	mu     sync.Mutex
	n      int
	woken  chan struct{} // closed when a chunk is done; nil: nobody waits. Only the reader waits.
}

// until waits until enough says so of the number of chunks, or the server is closing.
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

// abandon ends n chunks that never began.
func (p *parcel) abandon(n int) {
	for range n {
		p.away.mu.Lock()
		p.away.n++
		p.away.mu.Unlock()
		p.end()
	}
}
