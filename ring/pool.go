// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// pool says which segments are free, and which have no memory yet. Single ones are taken from the
// low end, where those that were used last lie (their memory is in the caches), runs for large
// records from the high end, so that the two stay out of each other's way. Nobody waits for
// anybody: who takes segments first takes their number off count, so that there is always a free
// bit for him, and then looks for it. What has no memory belongs, like what is free, to whoever
// takes its bit.
type pool struct {
	segments []segment       // by their place
	free     []atomic.Uint64 // a bit a segment
	absent   []atomic.Uint64 // likewise: it would be free if it had memory
	n        int             // segments
	count    atomic.Int64    // free bits that nobody is after
	away     atomic.Int64    // absent bits
	least    atomic.Int64    // that count was since somebody asked
	runs     sync.Mutex      // held by who looks for a run
}

// newPool has no memory in any segment.
func newPool(n int) *pool {
	words := (n + 63) / 64
	p := &pool{segments: make([]segment, n), free: make([]atomic.Uint64, words), absent: make([]atomic.Uint64, words), n: n}
	for at := range n {
		p.absent[at/64].Or(1 << (at % 64))
	}
	p.away.Store(int64(n))
	return p
}

// present is how many segments have memory.
func (p *pool) present() int64 { return int64(p.n) - p.away.Load() }

// reserve takes k off count if so many stay.
func (p *pool) reserve(k, stay int) bool {
	for {
		c := p.count.Load()
		if c < int64(k+stay) {
			return false
		}
		if p.count.CompareAndSwap(c, c-int64(k)) {
			if c -= int64(k); c < p.least.Load() {
				p.least.Store(c)
			}
			return true
		}
	}
}

// take returns a free segment, or -1; so many stay free.
func (p *pool) take(stay int) int {
	if !p.reserve(1, stay) {
		return -1
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

// takeRun finds k segments in a row that are free, or absent if fresh says so, or returns -1.
func (p *pool) takeRun(k, stay int, fresh bool) int {
	p.runs.Lock()
	defer p.runs.Unlock()
	run := 0
	for at := p.n - 1; at >= 0; at-- {
		if p.takeAt(at, stay) || fresh && p.takeAbsent(at) {
			if run++; run == k {
				return at
			}
			continue
		}
		p.put(at+1, run)
		run = 0
	}
	p.put(0, run)
	return -1
}

// takeAt takes a segment if it is free.
func (p *pool) takeAt(at, stay int) bool {
	if p.free[at/64].Load()&(1<<(at%64)) == 0 || !p.reserve(1, stay) {
		return false
	}
	if claim(p.free, at) {
		return true
	}
	p.count.Add(1)
	return false
}

// takeWith takes a free segment that has memory for so many bytes, or returns -1.
func (p *pool) takeWith(need int64, stay int) int {
	for at := range p.n {
		if p.segments[at].backed.Load() >= need && p.takeAt(at, stay) {
			return at
		}
	}
	return -1
}

// takeAbsent takes a segment if it has no memory.
func (p *pool) takeAbsent(at int) bool {
	if !claim(p.absent, at) {
		return false
	}
	p.away.Add(-1)
	return true
}

// takeFresh takes up to k segments in a row that have no memory, -1 if there is none.
func (p *pool) takeFresh(k int) (at, got int) {
	for i := range p.absent {
		for w := p.absent[i].Load(); w != 0; w = p.absent[i].Load() {
			at := i*64 + bits.TrailingZeros64(w)
			for got < k && at+got < p.n && p.takeAbsent(at+got) {
				got++
			}
			if got > 0 {
				return at, got
			}
		}
	}
	return -1, 0
}

// claim takes one bit if it is there.
func claim(words []atomic.Uint64, at int) bool {
	bit := uint64(1) << (at % 64)
	return words[at/64].And(^bit)&bit != 0
}

// put gives segments back, to the free ones if they have memory.
func (p *pool) put(at, k int) {
	for i := at; i < at+k; i++ {
		if p.segments[i].backed.Load() == 0 {
			p.absent[i/64].Or(1 << (i % 64))
			p.away.Add(1)
			continue
		}
		p.free[i/64].Or(1 << (i % 64))
		p.count.Add(1)
	}
}

// segment is a piece of the ring in use: the facts that lie in the ring's memory, and what only
// this process needs to know.
type segment struct {
	segmentFacts
	off    int64        // of the segment in the ring's memory
	limit  int64        // where its room ends
	backed atomic.Int64 // bytes of this one, not of those of its run, that have memory; written by who has its bit, and by the tender
	next   *segment
	// closed says that the lane has gone on to next: whoever sees that sees next, last, filled and
	// count, too, and the appender has nothing more to do with the segment.
	closed atomic.Bool
}

// segment is that of which a lane has the place + 1, nil for 0.
func (r *Ring) segment(place1 int32) *segment {
	if place1 == 0 {
		return nil
	}
	return &r.pool.segments[place1-1]
}

// grow gives the lane room for need bytes, in its segment or in a new one, and returns where. The
// lane is the caller's. As long as there is room it takes no lock: an owner of one that is off its
// core would keep appenders waiting.
func (r *Ring) grow(l *lane, n uint16, tail, need int64, key uint64) (off int64, err error) {
	prev := r.segment(l.seg)
	if prev != nil && tail+need <= prev.limit && r.back(prev, tail+need) {
		l.limit = r.roomIn(prev)
		return tail, nil
	}
	stay := 1
	if n == reserved {
		stay = 0
	} else if r.full.Load() || !l.begin && r.few() {
		return 0, ErrFull
	}
	l.begin = false
	units := int((need + r.head.unit - 1) / r.head.unit)
	at := r.obtain(units, stay, need)
	if at < 0 {
		return 0, ErrFull
	}
	s := &r.pool.segments[at]
	s.segmentFacts = segmentFacts{nonce: newNonce(), units: uint32(units), lane: n, seq: r.seq.Add(1), first: key}
	s.next = nil
	s.closed.Store(false)
	if prev != nil {
		prev.filled, prev.count, prev.last = tail-prev.off, l.index, l.last
	}
	err = r.touch(func() {
		if prev != nil {
			prev.putFilled(&r.head, prev.off, r.line(prev.off))
		}
		for i := 1; i < units; i++ { // before there is anything in them
			noSegment(r.line(r.head.offset(at + i)))
		}
		s.put(&r.head, s.off, r.line(s.off))
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
	l.seg, l.limit, l.nonce, l.index = int32(at)+1, r.roomIn(s), s.nonce, 0
	if p := r.pressure.Load(); p > 0 && r.used() >= p && r.pressed.CompareAndSwap(false, true) {
		r.callWake()
	}
	if prev != nil {
		r.backing.wantAhead(r.pool)
	}
	return s.off, nil
}

// obtain takes segments in a row with memory for need bytes, or notes that somebody may be waiting
// for room and returns -1.
func (r *Ring) obtain(units, stay int, need int64) (at int) {
	if at = r.tryObtain(units, stay, need); at >= 0 {
		return at
	}
	r.mu.Lock()
	if units == 1 && r.pool.count.Load() <= int64(stay) {
		r.full.Store(true)
	}
	first := r.room == nil
	if first {
		r.room = make(chan struct{})
	}
	r.mu.Unlock()
	// Who gives back does it before he takes mu to tell those who wait: one of the two sees the
	// other.
	for moves := uint32(1); moves != r.backing.moved(); runtime.Gosched() { // else the tender may have had one for a moment
		moves = r.backing.moved() &^ 1
		if at = r.tryObtain(units, stay, need); at >= 0 {
			r.allowAgain()
			return at
		}
	}
	r.sweepNow.Store(true) // idle lanes may hold what the reader can free
	if first {             // nobody was refused since there last was room
		r.callWake()
	}
	return -1
}

func (r *Ring) tryObtain(units, stay int, need int64) (at int) {
	if units > 1 {
		at = r.pool.takeRun(units, stay, !r.backing.isShort())
	} else if at = r.pool.take(stay); at < 0 {
		at = r.fresh(need)
	}
	found := at >= 0
	for again := units == 1; at >= 0; again = false {
		for i := range units {
			s := &r.pool.segments[at+i]
			s.off = r.head.offset(at + i)
			s.limit = r.head.offset(at + units)
			s.units = uint32(units)
		}
		if r.back(&r.pool.segments[at], r.head.offset(at)+need) {
			return at
		}
		r.pool.put(at, units)
		if at = -1; again { // there is no more memory, but another one may have it
			at = r.pool.takeWith(need, stay)
		}
	}
	if units > 1 || found {
		r.looksFull() // what was taken for a while seemed to be in use
	}
	return -1
}

// looksFull lets those try again who may have been refused because segments were taken for a while
// that are free.
func (r *Ring) looksFull() {
	if r.full.Load() {
		r.allowAgain()
	}
}

func (r *Ring) allowAgain() {
	r.mu.Lock()
	r.allow()
	r.mu.Unlock()
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
	return (r.pool.present() - r.pool.count.Load()) * r.head.unit
}

// giveBack frees a segment, to which nobody points any more. Under mu.
func (r *Ring) giveBack(s *segment) {
	_ = r.touch(func() { noSegment(r.line(s.off)) }) // a fault is met again by whoever writes there
	r.pool.put(r.head.place(s.off), int(s.units))
	if r.used() < r.pressure.Load() {
		r.pressed.Store(false)
	}
	r.allow()
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
