// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// pool says which segments are free. Single ones are taken from the low end, where those that were
// used last lie (their memory is in the caches), runs for large records from the high end, so that
// the two stay out of each other's way. Nobody waits for anybody: who takes segments first takes
// their number off count, so that there is always a free bit for him, and then looks for it.
type pool struct {
	free  []atomic.Uint64 // a bit a segment
	n     int             // segments
	count atomic.Int64    // free bits that nobody is after
	runs  sync.Mutex      // held by who looks for a run
}

func newPool(n int) *pool {
	p := &pool{free: make([]atomic.Uint64, (n+63)/64), n: n}
	p.put(0, n)
	return p
}

// take returns the first of k segments in a row, or -1; so many stay free.
func (p *pool) take(k, stay int) int {
	for {
		c := p.count.Load()
		if c < int64(k+stay) {
			return -1
		}
		if p.count.CompareAndSwap(c, c-int64(k)) {
			break
		}
	}
	if k > 1 {
		at := p.takeRun(k)
		if at < 0 {
			p.count.Add(int64(k))
		}
		return at
	}
	for {
		for i := range p.free {
			for w := p.free[i].Load(); w != 0; w = p.free[i].Load() {
				at := bits.TrailingZeros64(w)
				if p.free[i].CompareAndSwap(w, w&^(1<<at)) {
					return i*64 + at
				}
			}
		}
	}
}

// takeRun finds k free bits in a row, or returns -1.
func (p *pool) takeRun(k int) int {
	p.runs.Lock()
	defer p.runs.Unlock()
	run := 0
	for at := p.n - 1; at >= 0; at-- {
		if !p.claim(at) {
			p.drop(at+1, run)
			run = 0
			continue
		}
		if run++; run == k {
			return at
		}
	}
	p.drop(0, run)
	return -1
}

// claim takes one bit if it is free.
func (p *pool) claim(at int) bool {
	w, bit := &p.free[at/64], uint64(1)<<(at%64)
	return w.And(^bit)&bit != 0
}

// drop gives bits back that were counted as taken, or never counted.
func (p *pool) drop(at, k int) {
	for i := at; i < at+k; i++ {
		p.free[i/64].Or(1 << (i % 64))
	}
}

func (p *pool) put(at, k int) {
	p.drop(at, k)
	p.count.Add(int64(k))
}

// segment is a piece of the ring in use: the head that lies in it, and what only this process needs
// to know.
type segment struct {
	segmentFacts
	off   int64  // of the segment in the ring's memory
	limit int64  // where its room ends
	last  uint64 // once closed: key of its last record
	next  *segment
	// closed says that the lane has gone on to next: whoever sees that sees next, last, filled and
	// count, too, and the appender has nothing more to do with the segment.
	closed atomic.Bool
}

// segment is that of which a lane has the place + 1, nil for 0.
func (r *Ring) segment(place1 int32) *segment {
	if place1 == 0 {
		return nil
	}
	return &r.segments[place1-1]
}

// grow gives the lane a new segment with room for need bytes and returns where its records begin.
// The lane is the caller's. As long as there is room it takes no lock: an owner of one that is off
// its core would keep appenders waiting.
func (r *Ring) grow(l *lane, n uint16, tail, need int64, key uint64) (off int64, err error) {
	stay := 1
	if n == reserved {
		stay = 0
	} else if r.full.Load() {
		return 0, ErrFull
	}
	units := int((need + segmentHead + r.head.unit - 1) / r.head.unit)
	at := r.pool.take(units, stay)
	if at < 0 {
		if at, err = r.refuse(units, stay); at < 0 {
			return 0, err
		}
	}
	s := &r.segments[at]
	s.segmentFacts = segmentFacts{nonce: newNonce(), units: uint32(units), lane: n, seq: r.seq.Add(1), first: key}
	s.off = segmentsAt + int64(at)*r.head.unit
	s.limit = s.off + int64(units)*r.head.unit
	s.last, s.next = 0, nil
	s.closed.Store(false)
	prev := r.segment(l.seg)
	if prev != nil {
		prev.filled, prev.count, prev.last = tail-prev.off, l.index, l.last
	}
	err = r.touch(func() {
		if prev != nil {
			prev.putFilled(&r.head, prev.off, r.mem[prev.off:])
			r.putEntryClosed(prev)
		}
		s.put(&r.head, s.off, r.mem[s.off:])
		r.putEntry(s)
	})
	if err != nil {
		r.pool.put(at, units)
		return 0, r.fail(err)
	}
	if prev != nil {
		prev.next = s
		prev.closed.Store(true)
	} else {
		l.first.Store(int32(at) + 1)
	}
	l.seg, l.limit, l.nonce, l.index = int32(at)+1, s.limit, s.nonce, 0
	if p := r.pressure.Load(); p > 0 && r.used() >= p && r.pressed.CompareAndSwap(false, true) {
		r.callWake()
	}
	return s.off + segmentHead, nil
}

// newNonce is never 0: fresh memory is.
func newNonce() uint64 {
	for {
		if n := rand.Uint64(); uint32(n) != 0 {
			return n
		}
	}
}

// used is the bytes of segments in use.
func (r *Ring) used() int64 {
	if r.adopted {
		return r.left.Load() * r.head.unit
	}
	return (int64(r.pool.n) - r.pool.count.Load()) * r.head.unit
}

// giveBack frees a segment, to which nobody points any more. Under mu.
func (r *Ring) giveBack(s *segment) {
	_ = r.touch(func() { // a fault is met again by whoever writes there
		for i := range int64(s.units) {
			noSegment(r.mem[s.off+i*r.head.unit:])
		}
		r.clearEntry(s)
	})
	r.pool.put(int((s.off-segmentsAt)/r.head.unit), int(s.units))
	if r.used() < r.pressure.Load() {
		r.pressed.Store(false)
	}
	r.allow()
}

// refuse notes that somebody may be waiting for room, unless some has come in the meantime: then it
// returns that.
func (r *Ring) refuse(units, stay int) (at int, err error) {
	r.mu.Lock()
	if at = r.pool.take(units, stay); at >= 0 { // who gives back does it before it takes mu, to tell those who wait
		r.mu.Unlock()
		return at, nil
	}
	if r.pool.count.Load() <= 1 {
		r.full.Store(true)
	} else if r.full.Load() { // while a run was looked for in vain its segments seemed to be taken
		r.allow()
	}
	first := r.room == nil
	if first {
		r.room = make(chan struct{})
	}
	r.mu.Unlock()
	r.sweepNow.Store(true) // idle lanes may hold what the reader can free
	if first {             // nobody was refused since there last was room
		r.callWake()
	}
	return -1, ErrFull
}

// allow lets all who wait for room try again. Under mu.
func (r *Ring) allow() {
	r.full.Store(false)
	if r.room != nil {
		close(r.room)
		r.room = nil
	}
}

var hasRoom = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Space returns a channel that is closed when an Append that was refused with [ErrFull] may
// succeed; it may also be refused again.
func (r *Ring) Space() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room == nil {
		return hasRoom
	}
	return r.room
}

// Used is the bytes of all segments in use. A lane that is idle gives its segment back when its
// records are done and the reader next calls Next or Sleep.
func (r *Ring) Used() int64 { return r.used() }

// SetPressure has wake called when more than so many bytes come into use, whether the reader sleeps
// or not: once, until fewer are in use again or SetPressure is called again. If they are in use
// already, it is called at once.
func (r *Ring) SetPressure(bytes int64) {
	r.pressed.Store(false)
	r.pressure.Store(bytes)
	// Whoever takes a segment looks at the pressure after that; this looks in the other order. One
	// of the two sees the other.
	if bytes > 0 && r.used() >= bytes && r.pressed.CompareAndSwap(false, true) {
		r.callWake()
	}
}
