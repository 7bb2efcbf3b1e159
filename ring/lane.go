// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

const (
	maxLanes = 256 // so that a uint8 is always the number of one
	// Lane 0 is always busy: it is what a new hint points at.
	// reserved is the lane of AppendReserved, which alone may take the last free segment.
	reserved = 1
	busy     = 1
)

// lane is a place where one appender at a time adds records. Whoever turns the busy bit of its
// state on owns the rest until he stores the state again. It fills two cache lines of its own, the
// pair that processors fetch together.
type lane struct {
	state   atomic.Uint64 // offset of the tail << 1 | busy
	last    uint64        // key of the last record
	limit   int64         // end of its segment's room
	nonce   uint64        // of its segment
	index   uint32        // number of the next record in its segment
	records uint64
	bytes   uint64
	seg     int32        // to which it appends: place + 1 in Ring.segments, 0: none
	first   atomic.Int32 // the first one since it had none, likewise: the reader, which follows from there, is told so
	begin   bool         // the next segment, though there are few
	_       [63]byte
}

// newLanes begins where a pair of cache lines does. (Lanes hold no pointers: the collector need not
// know.)
func newLanes() *[maxLanes]lane {
	more := new([maxLanes + 1]lane)
	at := unsafe.Pointer(more)
	return (*[maxLanes]lane)(unsafe.Add(at, -uintptr(at)%unsafe.Sizeof(lane{})))
}

// Hint remembers which lane an appender used last. The zero value is ready. It must not be used by
// two goroutines at once; keep it beside what is pooled for a core anyway.
type Hint struct {
	lane uint8
}

// try takes the lane if nobody has it.
func (l *lane) try() (old uint64, ok bool) {
	old = l.state.Load()
	return old, old&busy == 0 && l.state.CompareAndSwap(old, old|busy)
}

// hold takes a lane, however long that lasts: an owner that the scheduler has taken off its core
// may keep it for milliseconds. Once the ring is over it may be kept for ever; then hold returns
// false.
func (r *Ring) hold(l *lane) (old uint64, ok bool) {
	for {
		if old, ok := l.try(); ok {
			return old, true
		}
		if r.over.Load() >= overFailed {
			return 0, false
		}
		runtime.Gosched()
	}
}

// release publishes the lane's tail and lets it go.
func (r *Ring) release(l *lane, tail int64) {
	l.state.Store(uint64(tail) << 1)
	// The reader turns asleep on and looks at the lanes then; this looks in the other order. One of
	// the two sees the other.
	if r.asleep.Load() != 0 {
		r.rouse()
	}
}

// putBack lets a lane go in which nothing has changed.
func (r *Ring) putBack(l *lane, old uint64) {
	l.state.Store(old)
	if r.sawBusy.Load() != 0 { // that may have been here; else nothing has changed for the reader
		r.rouse()
	}
}

// acquire finds a lane that nobody has, beginning beside the hint, and makes one more reachable if
// there is none. nil: the ring is over.
func (r *Ring) acquire(h *Hint) (l *lane, old uint64) {
	for {
		n := r.active.Load()
		from := uint32(h.lane)
		if from == 0 {
			from = r.turn.Add(1)
		}
		const first = reserved + 1
		for i := range n - first {
			at := first + (from+i)%(n-first)
			if old, ok := r.lanes[at].try(); ok {
				h.lane = uint8(at)
				return &r.lanes[at], old
			}
		}
		if r.over.Load() != 0 {
			return nil, 0
		}
		if n < maxLanes && r.addLane(n) {
			h.lane = uint8(n)
			return &r.lanes[n], 0
		}
		runtime.Gosched()
	}
}

// addLane makes lane n reachable; it was born busy, so it is the caller's.
func (r *Ring) addLane(n uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over.Load() == 0 && r.active.CompareAndSwap(n, n+1)
}

// seal takes all lanes of a ring that is over for ever: no append goes on or begins. Only the
// reader's goroutine does that.
func (r *Ring) seal() {
	r.mu.Lock()
	n, done := r.active.Load(), r.sealed // no lane is added from here on
	r.mu.Unlock()
	if done {
		return
	}
	for i := uint32(reserved); i < n; i++ {
		l := &r.lanes[i]
		for {
			if _, ok := l.try(); ok {
				break
			}
			runtime.Gosched()
		}
	}
	r.mu.Lock()
	r.sealed = true
	r.allow()
	r.mu.Unlock()
}

func (r *Ring) isSealed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sealed
}

// Seal ends appending: from its return on Append answers [ErrClosed], and what was appended before
// can be read. AppendReserved goes on. Any goroutine may call it.
func (r *Ring) Seal() {
	r.raise(overClosing)
	r.mu.Lock()
	n := r.active.Load() // no lane is added from here on
	r.allow()
	r.mu.Unlock()
	for i := uint32(reserved + 1); i < n; i++ {
		if old, ok := r.hold(&r.lanes[i]); ok { // whoever has it may have looked before
			r.release(&r.lanes[i], int64(old>>1))
		}
	}
}
