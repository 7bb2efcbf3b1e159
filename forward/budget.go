// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"slices"
	"sync"
	"sync/atomic"
)

// budget is the memory that all connections together may hold in buffers.
//
// A connection asks before it takes. A quarter of the whole is kept for those with small messages,
// so that large ones do not hold them up. When there is none left a connection waits in line: first
// those that want little, then those that are in the middle of a large message, then those that
// would begin one; of a line the one whose peer holds least. Those that would begin also wait while
// those in the middle will need what is left, going by what such messages have needed before. What
// is half read can always be finished, so nothing waits for ever: the first in line may overdraw,
// alone, and as much as its message takes, until it has handed on what it holds. While one waits,
// the server cuts connections that hold memory and do not go on (slow.go).
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
	lines [lineCount][]*holder   // those that wait, by lineOf
	over  atomic.Pointer[holder] // who overdraws; written with mu held
}

const (
	// littleMost is what a connection with small messages holds at most: a parked buffer, the one
	// that takes its place, a group's scratch.
	littleMost = parkedBuffer + 2*baseBuffer
	// smallMost is the largest message that is small: it fits into a baseBuffer, behind what is
	// left over of the one before it.
	smallMost = 64<<10 + 1<<10
)

// little tells whether a holder would hold little with n bytes more.
func (h *holder) little(n int64) bool { return !h.big.Load() && h.held.Load()+n <= littleMost }

// Lines; lower ones go first.
const (
	lineLittle = iota
	lineMiddle
	lineBegin
	lineCount
)

// lineOf is where a holder waits for n bytes.
func lineOf(h *holder, n int64) int {
	switch {
	case h.little(n):
		return lineLittle
	case h.held.Load() > parkedBuffer:
		return lineMiddle
	}
	return lineBegin
}

// kept is the part of the budget for those that hold little.
func (b *budget) kept() int64 { return min(b.limit/2, max(b.limit/4, 1<<20)) }

// scarce tells whether a connection had better begin with a small buffer, to see how large its
// message is.
func (b *budget) scarce() bool { return b.used.Load() > b.limit/2 }

// A share is what the connections of one peer hold together.
type share struct {
	held  atomic.Int64 // by its holders
	conns int          // by Server.mu
}

// holder is one connection's part of the budget. Its fields are the connection's own, except while
// it waits.
type holder struct {
	held  atomic.Int64 // written by the connection, its parcels and by who grants, read by the watch
	lent  atomic.Int64 // the part of it that only parcels hold, see async.go; by the connection and its parcels
	large atomic.Bool  // counted in budget.large
	peak  atomic.Int64 // of held since it is
	big   atomic.Bool  // its message in progress is not small; by the connection
	peer  *share       // all connections of its peer; nil: it is alone
	over  bool         // may overdraw; true only for budget.over
	want  int64        // while waiting, as all below; with budget.mu held
	grant chan struct{}
	cut   bool // refused
}

// add changes what h holds, and returns how much that is now.
func (h *holder) add(n int64) int64 {
	if h.peer != nil {
		h.peer.held.Add(n)
	}
	return h.held.Add(n)
}

// ofPeer is what all connections of its peer hold.
func (h *holder) ofPeer() int64 {
	if h.peer == nil {
		return h.held.Load()
	}
	return h.peer.held.Load()
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
			b.grown(h, h.add(n))
			return true
		}
	}
}

// force takes n bytes, whatever there is.
func (b *budget) force(h *holder, n int64) {
	b.used.Add(n)
	b.grown(h, h.add(n))
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

// acquire takes n bytes, and waits for them; false: stop was closed, or h was refused. begin is
// called once, if it has to wait.
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
	waits := h.grant != nil
	b.mu.Unlock()
	if waits {
		begin()
	}
	select {
	case <-grant:
		return !h.cut // written before grant was closed
	case <-stop:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.grant != nil { // else granted meanwhile: whoever gives up releases all that it holds
		b.leaveLocked(h)
		b.dispatch()
	}
	return false
}

// refuse ends the wait of a holder, if it waits, with nothing.
func (b *budget) refuse(h *holder) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.grant != nil {
		h.cut = true
		close(h.grant)
		b.leaveLocked(h)
		b.dispatch()
	}
}

// leaveLocked takes a holder out of its line.
func (b *budget) leaveLocked(h *holder) {
	h.grant = nil
	is := func(w *holder) bool { return w == h }
	for i := range b.lines {
		b.lines[i] = slices.DeleteFunc(b.lines[i], is)
	}
	b.waiting.Add(-1)
}

// dispatch grants what it can. With mu held.
func (b *budget) dispatch() {
	for {
		i := slices.IndexFunc(b.lines[:], func(line []*holder) bool { return len(line) > 0 })
		if i < 0 {
			return
		}
		line := &b.lines[i]
		first := b.first(*line)
		h := (*line)[first]
		switch {
		case b.take(h, h.want):
		case b.over.Load() == nil:
			b.over.Store(h)
			h.over = true
			b.force(h, h.want)
		default:
			return
		}
		*line = slices.Delete(*line, first, first+1)
		b.waiting.Add(-1)
		close(h.grant)
		h.grant = nil
	}
}

// first is who goes first in a line: of the peer that holds least, the one that waits longest.
func (b *budget) first(line []*holder) (first int) {
	if b.over.Load() != nil && b.limit-b.used.Load() < parkedBuffer {
		return 0 // there is nothing to go for
	}
	least := line[0].ofPeer()
	for i, h := range line[1:] {
		if held := h.ofPeer(); held < least {
			first, least = i+1, held
		}
	}
	return first
}

// release gives n bytes back.
func (b *budget) release(h *holder, n int64) {
	if n == 0 {
		return
	}
	b.shrunk(h, h.add(-n))
	b.used.Add(-n)
	if b.waiting.Load() > 0 {
		b.mu.Lock()
		b.dispatch()
		b.mu.Unlock()
	}
}

// settle ends an overdraft, when its holder has handed on what it held. What it still holds then is
// little, see conn.settle.
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

// wanted is how many bytes connections wait for.
func (b *budget) wanted() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.lines {
		for _, h := range line {
			n += h.want
		}
	}
	return n
}

// pressed tells whether anybody waits.
func (b *budget) pressed() bool { return b.waiting.Load() > 0 }
