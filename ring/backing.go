// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// How a mapped ring gets its memory. Its file has its whole length from the start, and is mapped
// so, but holds only what it was given: its head, and a little for the first records. More is asked
// of the file system before it is touched, a block at a time, by the tender: a goroutine that keeps
// some segments ahead of those in use. An appender that is faster asks for itself. When the file
// system has no more, the ring is as large as it is, until there is more again. What was not needed
// for a while goes back, by holes in free segments: they belong to the tender while it makes them,
// and their lines in the table say that they are free. The file is never cut while it is mapped.
//
// An adopted ring is not written to but in its head, and has no tender.

const (
	// blockLen is what a segment gets at a time while it is not clear that it will be filled.
	blockLen = 64 << 10
	// reserveLen is what the segment has that AppendReserved can always take.
	reserveLen = 16 << 10
	// stepLen is what the tender asks for at once: a signal makes tmpfs undo all of a call, and a
	// profiler's come each 10 ms.
	stepLen = 1 << 20
	// fewAhead is how many free segments are kept ahead.
	fewAhead = 2
)

var ( // variables for tests
	// keepFor is for how long the memory of free segments is kept that nobody needs, or twice that.
	keepFor = 10 * time.Second
	// retryAfter is when a file system is asked again that had no room.
	retryAfter = time.Second
)

// backing is what is known of the memory of a ring's file.
type backing struct {
	allocate   func(from, to int64) error // has the file system provide it
	populate   func(from, to int64)       // has the kernel map it; nil: it is when it is touched
	punch      func(from, to int64) error // gives it back; nil: it cannot be
	overwrites bool                       // allocate writes zeros, over what is there: it is asked only for what nobody else writes to
	free       func() int64               // how much more the file system says it has; nil: nobody knows
	short      atomic.Bool                // there is no more for now
	room       atomic.Int64               // what free said last
	told       atomic.Bool
	moves      atomic.Uint32 // odd while the tender has segments that nobody else can take
	why        atomic.Pointer[error]
	ahead      atomic.Int64 // free segments below which the tender wants to know
	states     atomic.Int64 // bytes of a state that both places have memory for
	nudge      chan struct{}
	stop       chan struct{}
	tending    sync.WaitGroup
	every      time.Duration // keepFor
	again      time.Duration // retryAfter
}

func newBacking(allocate func(from, to int64) error) *backing {
	b := &backing{allocate: allocate, nudge: make(chan struct{}, 1), stop: make(chan struct{}), every: keepFor, again: retryAfter}
	b.ahead.Store(fewAhead)
	b.room.Store(math.MaxInt64)
	return b
}

// measure asks the file system how far the ring can grow, so that this is not learnt only when it
// is full.
func (b *backing) measure() {
	if b.free != nil {
		b.room.Store(b.free())
	}
}

// get asks for memory that is about to be used.
func (b *backing) get(from, to int64) error {
	if err := b.allocate(from, to); err != nil {
		return err
	}
	if b.populate != nil {
		b.populate(from, to)
	}
	return nil
}

// isShort says that the file system had no more memory when it was last asked. A nil backing has
// all there is.
func (b *backing) isShort() bool { return b != nil && b.short.Load() }

// moved is an even number that changes when the tender has had segments, or has some.
func (b *backing) moved() uint32 {
	if b == nil {
		return 0
	}
	return b.moves.Load()
}

// lacks notes that there is no more memory.
func (b *backing) lacks(err error) {
	b.why.CompareAndSwap(nil, &err)
	b.short.Store(true)
	b.tend()
}

// tend wakes the tender.
func (b *backing) tend() {
	select {
	case b.nudge <- struct{}{}:
	default:
	}
}

// wantAhead wakes the tender if few free segments are left.
func (b *backing) wantAhead(p *pool) {
	if b != nil && p.count.Load() <= b.ahead.Load() && p.away.Load() > 0 && !b.short.Load() {
		b.tend()
	}
}

// forState sees to the memory for states of n bytes, with their headers.
func (b *backing) forState(at, n int64) error {
	if b == nil || n <= b.states.Load() {
		return nil
	}
	n = wholePages(n)
	for slot := range int64(2) {
		if err := b.allocate(at+slot*stateRoom+b.states.Load(), at+slot*stateRoom+n); err != nil {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
	b.states.Store(n)
	return nil
}

func wholePages(n int64) int64 { return (n + pageSize - 1) / pageSize * pageSize }

// Short returns an error, once, when the file system had no room for all of [Options.Size]: the
// ring is a smaller one then, until there is more. See [Ring.Size].
func (r *Ring) Short() error {
	b := r.backing
	if !b.isShort() || b.told.Swap(true) {
		return nil
	}
	return fmt.Errorf("ring: there is room for only %d of %d bytes of %s: %w", r.pool.present()*r.head.unit, r.head.size, r.path, *b.why.Load())
}

// few says that the ring has so little memory that lanes have to share segments.
func (r *Ring) few() bool {
	if r.backing == nil {
		return false
	}
	size := r.Size()
	return size < r.head.size/2 && size/r.head.unit < 4*int64(firstLanes())
}

// roomIn is how far records may go in a segment whose bit is the caller's.
func (r *Ring) roomIn(s *segment) int64 {
	if r.backing == nil {
		return s.limit
	}
	for off := s.off; off < s.limit; off += r.head.unit {
		if have := r.pool.segments[r.head.place(off)].backed.Load(); have < r.head.unit {
			return off + have
		}
	}
	return s.limit
}

// back sees to it that a segment whose bit is the caller's, and the others of its run, have memory
// up to an offset.
func (r *Ring) back(s *segment, to int64) bool {
	if r.backing == nil {
		return true
	}
	for off := s.off; off < to; off += r.head.unit {
		want := min(to-off, r.head.unit)
		if s := &r.pool.segments[r.head.place(off)]; s.backed.Load() < want && (r.backing.short.Load() || !r.provide(s, off, want)) {
			return false
		}
	}
	return true
}

// provide gives a segment memory for its first bytes, in whole blocks.
func (r *Ring) provide(s *segment, off, want int64) bool {
	have := s.backed.Load()
	to := min((want+blockLen-1)/blockLen*blockLen, r.head.unit)
	if err := r.backing.get(off+have, off+to); err != nil {
		r.backing.lacks(err)
		return false
	}
	s.has(to)
	if have > 0 { // the segment will be filled, it seems, and others after it
		r.backing.tend()
	}
	return true
}

// fresh takes a segment that had no memory. Of small ones several get some at once.
func (r *Ring) fresh(need int64) int {
	b := r.backing
	if b == nil || b.short.Load() {
		return -1
	}
	at, k := r.pool.takeFresh(max(1, int(blockLen/r.head.unit)))
	if at < 0 {
		return -1
	}
	if k == 1 {
		if !r.provide(&r.pool.segments[at], r.head.offset(at), need) {
			r.pool.put(at, 1)
			return -1
		}
		return at
	}
	if !r.provideAll(at, k) {
		r.pool.put(at, k)
		return -1
	}
	r.pool.put(at+1, k-1)
	return at
}

// provideAll gives segments without memory all of theirs.
func (r *Ring) provideAll(at, k int) bool {
	if err := r.backing.get(r.head.offset(at), r.head.offset(at+k)); err != nil {
		r.backing.lacks(err)
		return false
	}
	for i := at; i < at+k; i++ {
		r.pool.segments[i].has(r.head.unit)
	}
	return true
}

// has notes that the segment has memory for so many bytes, at least.
func (s *segment) has(n int64) {
	for {
		if old := s.backed.Load(); old >= n || s.backed.CompareAndSwap(old, n) {
			return
		}
	}
}

// start gets the memory for the first segments: one for the first records, and the reserve.
func (b *backing) start(h *head, p *pool) error {
	at, k := p.takeFresh(max(2, int(blockLen/h.unit)))
	for i := at; i < at+k; i++ {
		n := idleLen(i, h.unit)
		if err := b.get(h.offset(i), h.offset(i)+n); err != nil {
			return err
		}
		p.segments[i].has(n)
	}
	p.put(at, k)
	return nil
}

// idleLen is how much of its memory the segment with that number has in a ring that is not used.
func idleLen(place int, unit int64) int64 {
	switch {
	case place == 0:
		return min(unit, blockLen)
	case place == 1 && unit >= blockLen:
		return reserveLen
	case int64(place) < blockLen/unit:
		return unit
	case place == 1:
		return unit
	}
	return 0
}
