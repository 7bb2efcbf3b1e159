// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"runtime"
	"sync"
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

// lane is a place where one appender at a time adds records. The appender that sets the busy bit of
// its state on owns the rest until it stores the state again. It fills two cache lines of its own,
// the pair that processors fetch together.
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

// lanes are all those of a ring, and how many of them there are to be found.
type lanes struct {
	all    *[maxLanes]lane
	active atomic.Uint32 // lanes that can be reached; only grows
	life   *life
	_      [64]byte
	turn   atomic.Uint32 // spreads appenders without a hint over the lanes
	adding sync.Mutex    // held while a lane is added, or where none may be; a leaf
	sealed bool          // all are taken for ever
	_      [64]byte
}

// begin makes the first n lanes reachable.
func (ls *lanes) begin(n int) {
	ls.all = newLanes()
	ls.all[0].state.Store(busy)
	for i := n; i < maxLanes; i++ {
		ls.all[i].state.Store(busy)
	}
	ls.active.Store(uint32(n))
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

// try takes the lane if it is not taken.
func (l *lane) try() (old uint64, ok bool) {
	old = l.state.Load()
	return old, old&busy == 0 && l.state.CompareAndSwap(old, old|busy)
}

// hold takes a lane, however long that lasts: an owner that the scheduler has taken off its core
// may keep it for milliseconds. Once the ring is over it may be kept for ever; then hold returns
// false.
func (ls *lanes) hold(l *lane) (old uint64, ok bool) {
	for {
		if old, ok := l.try(); ok {
			return old, true
		}
		if ls.life.over.Load() >= overFailed {
			return 0, false
		}
		runtime.Gosched()
	}
}

// release publishes the lane's tail and lets it go.
func (ls *lanes) release(l *lane, tail int64) {
	l.state.Store(uint64(tail) << 1)
	// The reader turns asleep on and looks at the lanes then; this looks in the other order. One of
	// the two sees the other.
	if ls.life.asleep.Load() != 0 {
		ls.life.wakeReader()
	}
}

// putBack lets a lane go in which nothing has changed.
func (ls *lanes) putBack(l *lane, old uint64) {
	l.state.Store(old)
	if ls.life.sawBusy.Load() != 0 { // that may have been here; else nothing has changed for the reader
		ls.life.wakeReader()
	}
}

// acquire finds a lane that is not taken, beginning beside the hint, and makes one more reachable
// if there is none. nil: the ring is over.
func (ls *lanes) acquire(h *Hint) (l *lane, old uint64) {
	for {
		n := ls.active.Load()
		from := uint32(h.lane)
		if from == 0 {
			from = ls.turn.Add(1)
		}
		const first = reserved + 1
		for i := range n - first {
			at := first + (from+i)%(n-first)
			if old, ok := ls.all[at].try(); ok {
				h.lane = uint8(at)
				return &ls.all[at], old
			}
		}
		if ls.life.over.Load() != 0 {
			return nil, 0
		}
		if n < maxLanes && ls.addLane(n) {
			h.lane = uint8(n)
			return &ls.all[n], 0
		}
		runtime.Gosched()
	}
}

// addLane makes lane n reachable; it was born busy, so it is the caller's.
func (ls *lanes) addLane(n uint32) bool {
	ls.adding.Lock()
	defer ls.adding.Unlock()
	return ls.life.over.Load() == 0 && ls.active.CompareAndSwap(n, n+1)
}

// seal takes all lanes of a ring that is over for ever: no append goes on or begins. Only the
// reader's goroutine does that.
func (ls *lanes) seal() {
	ls.adding.Lock()
	n, done := ls.active.Load(), ls.sealed // no lane is added from here on
	ls.adding.Unlock()
	if done {
		return
	}
	for i := uint32(reserved); i < n; i++ {
		l := &ls.all[i]
		for {
			if _, ok := l.try(); ok {
				break
			}
			runtime.Gosched()
		}
	}
	ls.adding.Lock()
	ls.sealed = true
	ls.adding.Unlock()
	ls.life.space.allow()
}

func (ls *lanes) isSealed() bool {
	ls.adding.Lock()
	defer ls.adding.Unlock()
	return ls.sealed
}

// Seal ends appending: from its return on Append answers [ErrClosed], and what was appended before
// can be read. AppendReserved goes on. Any goroutine may call it.
func (ls *lanes) Seal() {
	ls.life.raise(overClosing)
	ls.adding.Lock()
	n := ls.active.Load() // no lane is added from here on
	ls.adding.Unlock()
	ls.life.space.allow()
	for i := uint32(reserved + 1); i < n; i++ {
		if old, ok := ls.hold(&ls.all[i]); ok { // its holder may have looked before
			ls.release(&ls.all[i], int64(old>>1))
		}
	}
}

// takes says that the ring takes appends to lane n.
func (ls *lanes) takes(n uint16) bool {
	why := ls.life.over.Load()
	return why == 0 || why == overClosing && n == reserved
}

// Appended says how many records were appended to the ring by this process, and the sum of their
// lengths.
func (ls *lanes) Appended() (records, bytes uint64) {
	for i, n := uint32(reserved), ls.active.Load(); i < n; i++ {
		l := &ls.all[i]
		for {
			old, ok := l.try()
			sealed := !ok && ls.isSealed() // then nothing writes there any more
			if ok || sealed {
				records += l.records
				bytes += l.bytes
			}
			if ok {
				ls.putBack(l, old)
			}
			if ok || sealed {
				break
			}
			runtime.Gosched()
		}
	}
	return records, bytes
}
