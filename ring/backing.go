// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"math"
	"os"
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
	// keepFor is how long memory of free segments is kept that is not needed, or twice that.
	keepFor = 10 * time.Second
	// retryAfter is when a file system is asked again that had no room.
	retryAfter = time.Second
)

// backing is what is known of the memory of a ring's file.
type backing struct {
	allocate func(from, to int64) error // has the file system provide it
	populate func(from, to int64)       // has the kernel map it; nil: it is when it is touched
	punch    func(from, to int64) error // gives it back; nil: it cannot be
	// Allocate writes zeros, over what is there: it is asked only for what nothing else writes to.
	overwrites bool
	hole       func(off int64) int64 // where the first one begins from there on; nil: unknown
	free       func() int64          // how much more the file system says it has; nil: unknown
	short      atomic.Bool           // there is no more for now
	room       atomic.Int64          // what free said last
	told       atomic.Bool
	moves      atomic.Uint32 // odd while the tender has segments that nothing else can take
	missed     atomic.Bool   // an append was refused because of these
	vain       atomic.Uint32 // the odd moves that was last waited for in vain; appends write it
	why        atomic.Pointer[error]
	ahead      atomic.Int64 // free segments below which the tender wants to know
	states     atomic.Int64 // bytes of a state that both places have memory for
	wake       chan struct{}
	stop       chan struct{}
	tending    sync.WaitGroup
	every      time.Duration // keepFor
	again      time.Duration // retryAfter
}

func newBacking(allocate func(from, to int64) error) *backing {
	b := &backing{
		allocate: allocate, wake: make(chan struct{}, 1), stop: make(chan struct{}), every: keepFor,
		again: retryAfter,
	}
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

// written is how far from an offset on, at most to end, the file may have been written to. Reading
// a hole of a tmpfs through a mapping would fill it, or fault where there is no room.
func (b *backing) written(off, end int64) int64 {
	if b == nil || b.hole == nil {
		return end
	}
	return min(end, b.hole(off))
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
	case b.wake <- struct{}{}:
	default:
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

// writeZeros allocates a part of a file where the system has no better way.
func writeZeros(f *os.File, from, to int64) error {
	if fi, err := f.Stat(); err != nil {
		return err
	} else if fi.Size() < to {
		return fmt.Errorf("%w: somebody has cut %s", ErrFailed, f.Name())
	}
	zeros := make([]byte, min(to-from, 1<<20))
	for at := from; at < to; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), to-at)], at); err != nil {
			return err
		}
	}
	return nil
}
