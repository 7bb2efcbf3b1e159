// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// A Budget is the memory that all connections together may hold in buffers.
//
// A connection asks before it takes. A quarter of the whole is kept for those with small messages,
// so that large ones do not hold them up. When there is none left a connection waits in line: first
// those that want little, then those that are in the middle of a large message, then those that
// would begin one; of a line the one whose peer holds least. Those that would begin also wait while
// those in the middle will need what is left, going by what such messages have needed before. What
// is half read can always be finished, so nothing waits for ever: the first in line may overdraw,
// alone, and as much as its message takes, until it has handed on what it holds. While one waits,
// the server cuts connections that hold memory and do not go on, see Watch.
//
// Lock order: Budget.mu is taken last, and never held while anything else is waited for.
type Budget struct {
	limit   int64
	stop    <-chan struct{} // closed: no more waiting
	lack    func()          // somebody begins to wait
	_       [64]byte        // what is read by all stands on other cache lines
	used    atomic.Int64    // by all that take and release
	_       [64]byte
	waiting atomic.Int32 // holders in line; written with mu held

	large   atomic.Int32 // holders that hold more than little
	typical atomic.Int64 // what those held at most that were large before, on average

	mu    sync.Mutex
	lines [lineCount][]*Holder   // those that wait, by lineOf
	over  atomic.Pointer[Holder] // which overdraws; written with mu held

	_    [64]byte
	pool pool
}

const (
	// maxLittle is what a connection with small messages holds at most: a parked buffer, the one
	// that takes its place, a group's scratch.
	maxLittle = Parked + 2*Base
	// MaxSmall is the largest message that is small: it fits into a Base, behind what is
	// left over of the one before it.
	MaxSmall = 64<<10 + 1<<10
)

// little tells whether a holder would hold little with n bytes more.
func (h *Holder) little(n int64) bool { return !h.big.Load() && h.held.Load()+n <= maxLittle }

// Lines; lower ones go first.
const (
	lineLittle = iota
	lineMiddle
	lineBegin
	lineCount
)

// lineOf is where a holder waits for n bytes.
func lineOf(h *Holder, n int64) int {
	switch {
	case h.little(n):
		return lineLittle
	case h.held.Load() > Parked:
		return lineMiddle
	}
	return lineBegin
}

// kept is the part of the budget for those that hold little.
func (b *Budget) kept() int64 { return min(b.limit/2, max(b.limit/4, 1<<20)) }

// Scarce tells whether a connection had better begin with a small buffer, to see how large its
// message is.
func (b *Budget) Scarce() bool { return b.used.Load() > b.limit/2 }

// New makes a budget of so many bytes. lack is called by each connection that begins to wait,
// before it does; nothing waits any more when stop is closed.
func New(limit int64, stop <-chan struct{}, lack func()) *Budget {
	b := &Budget{limit: limit, stop: stop, lack: lack}
	b.pool.limit, b.pool.used = limit, &b.used
	return b
}

// Close lets go of the buffers that are kept.
func (b *Budget) Close() { b.pool.close() }

// Limit is how many bytes there are.
func (b *Budget) Limit() int64 { return b.limit }

// Used is how many bytes are held.
func (b *Budget) Used() int64 { return b.used.Load() }

// Waiting is how many connections are in line.
func (b *Budget) Waiting() int { return int(b.waiting.Load()) }

// AtRest says what is left behind when nothing should be: bytes, or holders.
func (b *Budget) AtRest() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := 0
	for _, line := range b.lines {
		waiting += len(line)
	}
	if used, large := b.used.Load(), b.large.Load(); used != 0 || large != 0 || waiting > 0 || b.waiting.Load() != 0 ||
		b.over.Load() != nil {
		return fmt.Errorf("%d bytes are held, %d holders are large, %d of %d wait, one overdraws: %v", used, large,
			waiting, b.waiting.Load(), b.over.Load() != nil)
	}
	return nil
}

// A Peer is what the connections of one peer hold together.
type Peer struct {
	held  atomic.Int64 // by its holders
	Conns int          // by the set of connections
}

// Held is how much that is.
func (s *Peer) Held() int64 { return s.held.Load() }

// A Holder is one connection's part of the budget. Its fields are the connection's own, except
// while it waits.
type Holder struct {
	b     *Budget
	shard uint64       // of the pool
	held  atomic.Int64 // written by the connection, those that share its buffers and by what grants, read by the watch
	lent  atomic.Int64 // the part of it that only those hold; by the connection and by them
	large atomic.Bool  // counted in Budget.large
	peak  atomic.Int64 // of held since it is
	big   atomic.Bool  // its message in progress is not small; by the connection
	peer  *Peer        // all connections of its peer; nil: it is alone
	over  bool         // may overdraw; true only for Budget.over
	want  int64        // while waiting, as all below; with Budget.mu held
	grant chan struct{}
	cut   bool // refused
}

// add changes what h holds, and returns how much that is now.
func (h *Holder) add(n int64) int64 {
	if h.peer != nil {
		h.peer.held.Add(n)
	}
	return h.held.Add(n)
}

// ofPeer is what all connections of its peer hold.
func (h *Holder) ofPeer() int64 {
	if h.peer == nil {
		return h.held.Load()
	}
	return h.peer.held.Load()
}

// try takes n bytes if there are as many, and nobody is in line for them unless they are few.
func (b *Budget) try(h *Holder, n int64) bool {
	if h.over {
		b.force(h, n)
		return true
	}
	return (b.waiting.Load() == 0 || h.little(n)) && b.take(h, n)
}

func (b *Budget) take(h *Holder, n int64) bool {
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
func (b *Budget) force(h *Holder, n int64) {
	b.used.Add(n)
	b.grown(h, h.add(n))
}

// grown notes that a holder holds more. Called by the connection, or for it while it waits.
func (b *Budget) grown(h *Holder, held int64) {
	if held <= maxLittle {
		return
	}
	if h.peak.Store(max(h.peak.Load(), held)); !h.large.Swap(true) {
		b.large.Add(1)
	}
}

// shrunk notes that it holds less.
func (b *Budget) shrunk(h *Holder, held int64) {
	if held > maxLittle || !h.large.Load() || !h.large.Swap(false) {
		return
	}
	b.large.Add(-1)
	typical := b.typical.Load()
	b.typical.Store(typical + (h.peak.Swap(0)-typical)/8) // two at a time: one counts
}

// acquire takes n bytes, and waits for them; false: stop was closed, or h was refused.
func (b *Budget) acquire(h *Holder, n int64) bool {
	if b.try(h, n) {
		return true
	}
	grant := make(chan struct{})
	b.mu.Lock()
	h.want, h.grant = n, grant
	line := &b.lines[lineOf(h, n)]
	*line = append(*line, h)
	b.waiting.Add(1)
	b.dispatchLocked()
	waits := h.grant != nil
	b.mu.Unlock()
	if waits {
		b.lack()
	}
	select {
	case <-grant:
		return !h.cut // written before grant was closed
	case <-b.stop:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.grant != nil { // else granted meanwhile: a holder that gives up releases all that it holds
		b.leaveLocked(h)
		b.dispatchLocked()
	}
	return false
}

// refuse ends the wait of a holder, if it waits, with nothing.
func (b *Budget) refuse(h *Holder) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.grant != nil {
		h.cut = true
		close(h.grant)
		b.leaveLocked(h)
		b.dispatchLocked()
	}
}

// leaveLocked takes a holder out of its line.
func (b *Budget) leaveLocked(h *Holder) {
	h.grant = nil
	is := func(w *Holder) bool { return w == h }
	for i := range b.lines {
		b.lines[i] = slices.DeleteFunc(b.lines[i], is)
	}
	b.waiting.Add(-1)
}

// dispatchLocked grants what it can.
func (b *Budget) dispatchLocked() {
	for {
		i := slices.IndexFunc(b.lines[:], func(line []*Holder) bool { return len(line) > 0 })
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

// first is what goes first in a line: of the peer that holds least, the one that waits longest.
func (b *Budget) first(line []*Holder) (first int) {
	if b.over.Load() != nil && b.limit-b.used.Load() < Parked {
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
func (b *Budget) release(h *Holder, n int64) {
	if n == 0 {
		return
	}
	b.shrunk(h, h.add(-n))
	b.used.Add(-n)
	if b.waiting.Load() > 0 {
		b.mu.Lock()
		b.dispatchLocked()
		b.mu.Unlock()
	}
}

// settle ends an overdraft, when its holder has handed on what it held. What it still holds then is
// little, see Holder.Settle.
func (b *Budget) settle(h *Holder) {
	if !h.over {
		return
	}
	b.mu.Lock()
	h.over = false
	b.over.Store(nil)
	b.dispatchLocked()
	b.mu.Unlock()
}

// Wanted is how many bytes connections wait for.
func (b *Budget) Wanted() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.lines {
		for _, h := range line {
			n += h.want
		}
	}
	return n
}

// Pressed tells whether a holder waits.
func (b *Budget) Pressed() bool { return b.waiting.Load() > 0 }
