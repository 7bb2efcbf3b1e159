// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math/bits"
	"math/rand/v2"
)

// pool says which segments are free. Single ones are taken from the low end, where those that were used last lie (their memory is in the caches), runs
// for large records from the high end, so that the two stay out of each other's way. Ring.mu guards it.
type pool struct {
	free  []uint64 // a bit a segment
	n     int      // segments
	count int      // free ones
}

func newPool(n int) pool {
	p := pool{free: make([]uint64, (n+63)/64), n: n}
	p.put(0, n)
	return p
}

// take returns the first of k segments in a row, or -1.
func (p *pool) take(k int) int {
	if k > p.count {
		return -1
	}
	if k == 1 {
		for i, w := range p.free {
			if w != 0 {
				at := i*64 + bits.TrailingZeros64(w)
				p.mark(at, 1)
				return at
			}
		}
		return -1
	}
	run := 0
	for at := p.n - 1; at >= 0; at-- {
		if p.free[at/64]&(1<<(at%64)) == 0 {
			run = 0
			continue
		}
		if run++; run == k {
			p.mark(at, k)
			return at
		}
	}
	return -1
}

func (p *pool) mark(at, k int) {
	for i := at; i < at+k; i++ {
		p.free[i/64] &^= 1 << (i % 64)
	}
	p.count -= k
}

func (p *pool) put(at, k int) {
	for i := at; i < at+k; i++ {
		p.free[i/64] |= 1 << (i % 64)
	}
	p.count += k
}

// segment is a piece of the ring in use: the head that lies in it, and what only this process needs to know.
type segment struct {
	segmentFacts
	off    int64  // of the segment in the ring's memory
	limit  int64  // where its room ends
	last   uint64 // once closed: key of its last record
	next   *segment
	closed bool
}

// grow gives the lane a new segment with room for need bytes and returns where its records begin. The lane is the caller's.
func (r *Ring) grow(l *lane, n uint16, tail, need int64, key uint64) (off int64, err error) {
	if r.full.Load() && n != reserved {
		return 0, ErrFull
	}
	r.mu.Lock()
	if !r.takes(n) {
		r.mu.Unlock()
		return 0, r.overErr()
	}
	units := int((need + segmentHead + r.head.unit - 1) / r.head.unit)
	at := -1
	if n == reserved || r.pool.count > units {
		at = r.pool.take(units)
	}
	if at < 0 {
		first := r.refuse(r.pool.count <= 1)
		r.mu.Unlock()
		r.sweepNow.Store(true) // idle lanes may hold what the reader can free
		if first {
			r.callWake()
		}
		return 0, ErrFull
	}
	r.seq++
	s := new(segment)
	if n := len(r.spare); n > 0 {
		s, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	*s = segment{
		segmentFacts: segmentFacts{nonce: newNonce(), units: uint32(units), lane: n, seq: r.seq, first: key},
		off:          segmentsAt + int64(at)*r.head.unit,
	}
	s.limit = s.off + int64(units)*r.head.unit
	prev := r.tails[n]
	if prev != nil {
		prev.filled, prev.count, prev.last, prev.closed = tail-prev.off, l.index, l.last, true
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
		r.mu.Unlock()
		return 0, r.fail(err)
	}
	if prev != nil {
		prev.next = s
	}
	if r.firsts[n] == nil {
		r.firsts[n] = s
	}
	pressed := false
	if used := r.used() + int64(units)*r.head.unit; r.pressure > 0 && used >= r.pressure && !r.pressed {
		r.pressed, pressed = true, true
	}
	r.tails[n] = s
	r.inUse += int64(units)
	r.mu.Unlock()
	l.limit, l.nonce, l.index = s.limit, s.nonce, 0
	if pressed {
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

// used is the bytes of segments in use. Under mu.
func (r *Ring) used() int64 { return r.inUse * r.head.unit }

// giveBack frees a segment, to which nobody points any more. Under mu.
func (r *Ring) giveBack(s *segment) {
	_ = r.touch(func() { // a fault is met again by whoever writes there
		for i := range int64(s.units) {
			noSegment(r.mem[s.off+i*r.head.unit:])
		}
		r.clearEntry(s)
	})
	r.pool.put(int((s.off-segmentsAt)/r.head.unit), int(s.units))
	r.inUse -= int64(s.units)
	if len(r.spare) < cap(r.spare) {
		r.spare = append(r.spare, s)
	}
	if r.used() < r.pressure {
		r.pressed = false
	}
	r.allow()
}

// refuse notes that somebody may be waiting for room; first: nobody was refused since there last was some. Under mu.
func (r *Ring) refuse(all bool) (first bool) {
	if all {
		r.full.Store(true)
	}
	if first = r.room == nil; first {
		r.room = make(chan struct{})
	}
	return first
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

// Space returns a channel that is closed when an Append that was refused with [ErrFull] may succeed; it may also be refused again.
func (r *Ring) Space() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room == nil {
		return hasRoom
	}
	return r.room
}

// Used is the bytes of all segments in use. A lane that is idle gives its segment back when its records are done and the reader next calls Next or Sleep.
func (r *Ring) Used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used()
}

// SetPressure has wake called when more than so many bytes come into use, whether the reader sleeps or not: once, until fewer are in use again or
// SetPressure is called again. If they are in use already, it is called at once.
func (r *Ring) SetPressure(bytes int64) {
	r.mu.Lock()
	r.pressure = bytes
	r.pressed = bytes > 0 && r.used() >= bytes
	pressed := r.pressed
	r.mu.Unlock()
	if pressed {
		r.callWake()
	}
}
