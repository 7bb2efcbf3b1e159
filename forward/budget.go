// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"slices"
	"sync"
	"sync/atomic"
)

// budget is the memory that all connections together may hold in buffers.
//
// A connection asks before it takes. A part of the whole is kept for those that hold little, so that many large messages that come slowly do
// not hold up the small ones. When there is none left a connection waits in line: first those that want little, then those that are in the
// middle of a large message, then those that would begin one. These also wait while those in the middle will need what is left, going by what such
// messages have needed before. What is half read can always be finished, so nothing waits for ever: the first in line may overdraw, alone,
// and as much as its message takes, until it has handed on what it holds. The server cuts connections that hold memory others wait for
// and do not go on (slow.go).
//
// Lock order: budget.mu is taken last, and never held while anything else is waited for.
type budget struct {
	limit   int64
	_       [64]byte     // what is read by all stands on other cache lines
	used    atomic.Int64 // by whoever takes and releases
	_       [64]byte
	waiting atomic.Int32 // holders in line; written with mu held

	large   atomic.Int32 // holders that hold more than little
	typical atomic.Int64 // what those held at most that were large before, on average

	mu    sync.Mutex
	lines [3][]*holder           // those that wait, by lineOf
	over  atomic.Pointer[holder] // who overdraws; written with mu held
}

// littleMost is what a connection with ordinary messages holds at most: a parked buffer, the one that takes its place, a group's scratch.
const littleMost = parkedBuffer + 2*baseBuffer

// little tells whether a holder would hold little with n bytes more.
func (h *holder) little(n int64) bool { return h.held.Load()+n <= littleMost }

// lineOf is where a holder waits for n bytes; lower lines go first.
func lineOf(h *holder, n int64) int {
	switch {
	case h.little(n):
		return 0
	case h.large.Load():
		return 1
	}
	return 2
}

// kept is the part of the budget for those that hold little.
func (b *budget) kept() int64 { return min(b.limit/2, max(b.limit/8, 1<<20)) }

// holder is one connection's part of the budget. Its fields are the connection's own, except while it waits.
type holder struct {
	held  atomic.Int64 // written by the connection, its parcels and by who grants, read by the watch
	lent  atomic.Int64 // the part of it that only parcels hold, see async.go; by the connection and its parcels
	large atomic.Bool  // counted in budget.large
	peak  atomic.Int64 // of held since it is
	over  bool         // may overdraw; true only for budget.over
	want  int64        // while waiting
	grant chan struct{}
}

// try takes n bytes if there are as many, and nobody is in line for them unless they are few.
func (b *budget) try(h *holder, n int64) bool {
	if h.over {
		b.force(h, n)
		return true
	}
	return (b.waiting.Load() == 0 || h.little(n)) && b.take(h, n)
}

func (b *budget) take(h *holder, n int64) bool {
	limit := b.limit
	if !h.little(n) {
		limit -= b.kept()
		if !h.large.Load() && b.used.Load() > b.limit/4 && int64(b.large.Load()+1)*b.typical.Load() > limit {
			return false // let those finish that have begun: what lies half read serves nobody
		}
	} else if o := b.over.Load(); o != nil {
		limit += o.held.Load() // an overdraft comes on top of the limit, not out of what is kept
	}
	for {
		used := b.used.Load()
		if used+n > limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			b.grown(h, h.held.Add(n))
			return true
		}
	}
}

// force takes n bytes, whatever there is.
func (b *budget) force(h *holder, n int64) {
	b.used.Add(n)
	b.grown(h, h.held.Add(n))
}

// grown notes that a holder holds more. Called by the connection, or for it while it waits.
func (b *budget) grown(h *holder, held int64) {
	if held <= littleMost {
		return
	}
	if h.peak.Store(max(h.peak.Load(), held)); !h.large.Swap(true) {
		b.large.Add(1)
	}
}

// shrunk notes that it holds less.
func (b *budget) shrunk(h *holder, held int64) {
	if held > littleMost || !h.large.Load() || !h.large.Swap(false) {
		return
	}
	b.large.Add(-1)
	typical := b.typical.Load()
	b.typical.Store(typical + (h.peak.Swap(0)-typical)/8) // two at a time: one counts
}

// acquire takes n bytes, and waits for them; false: stop was closed. begin is called once, if it has to wait.
func (b *budget) acquire(h *holder, n int64, stop <-chan struct{}, begin func()) bool {
	if b.try(h, n) {
		return true
	}
	grant := make(chan struct{})
	b.mu.Lock()
	h.want, h.grant = n, grant
	line := &b.lines[lineOf(h, n)]
	*line = append(*line, h)
	b.waiting.Add(1)
	b.dispatch()
	b.mu.Unlock()
	begin()
	select {
	case <-grant:
		return true
	case <-stop:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.grant == nil { // granted meanwhile: whoever gives up releases all that it holds
		return false
	}
	h.grant = nil
	is := func(w *holder) bool { return w == h }
	for i := range b.lines {
		b.lines[i] = slices.DeleteFunc(b.lines[i], is)
	}
	b.waiting.Add(-1)
	b.dispatch()
	return false
}

// dispatch grants what it can. With mu held.
func (b *budget) dispatch() {
	for {
		i := slices.IndexFunc(b.lines[:], func(line []*holder) bool { return len(line) > 0 })
		if i < 0 {
			return
		}
		line := &b.lines[i]
		h := (*line)[0]
		switch {
		case b.take(h, h.want):
		case b.over.Load() == nil:
			b.over.Store(h)
			h.over = true
			b.force(h, h.want)
		default:
			return
		}
		*line = slices.Delete(*line, 0, 1)
		b.waiting.Add(-1)
		close(h.grant)
		h.grant = nil
	}
}

// release gives n bytes back.
func (b *budget) release(h *holder, n int64) {
	if n == 0 {
		return
	}
	b.shrunk(h, h.held.Add(-n))
	b.used.Add(-n)
	if b.waiting.Load() > 0 {
		b.mu.Lock()
		b.dispatch()
		b.mu.Unlock()
	}
}

// settle ends an overdraft, when its holder has handed on what it held. What it still holds then is little, see conn.settle.
func (b *budget) settle(h *holder) {
	if !h.over {
		return
	}
	b.mu.Lock()
	h.over = false
	b.over.Store(nil)
	b.dispatch()
	b.mu.Unlock()
}

// pressed tells whether anybody waits.
func (b *budget) pressed() bool { return b.waiting.Load() > 0 }
