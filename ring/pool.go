// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// pool says which segments are free, and which have no memory yet. Single ones are taken from the
// low end, where those that were used last lie (their memory is in the caches), runs for large
// records from the high end, so that the two stay out of each other's way. No appender waits for
// another: it first takes the number of segments off count, so that there is always a free bit for
// it, and then looks for that bit. A segment without memory belongs, like a free one, to the
// appender that takes its bit.
type pool struct {
	segments []segment       // by their place
	free     []atomic.Uint64 // a bit a segment
	absent   []atomic.Uint64 // likewise: it would be free if it had memory
	n        int             // segments
	count    atomic.Int64    // free bits that no appender is after
	away     atomic.Int64    // absent bits
	least    atomic.Int64    // that count was since it was last asked for
	runs     sync.Mutex      // held while looking for a run
}

// newPool has no memory in any segment.
func newPool(n int) *pool {
	words := (n + 63) / 64
	p := &pool{
		segments: make([]segment, n), free: make([]atomic.Uint64, words), absent: make([]atomic.Uint64, words),
		n: n,
	}
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
	off   int64 // of the segment in the ring's memory
	limit int64 // where its room ends
	// Bytes of this one, not of those of its run, that have memory; written by the holder of its
	// bit, and by the tender.
	backed atomic.Int64
	next   *segment
	// closed says that the lane has gone on to next: a reader that sees that sees next, last,
	// filled and count, too, and the appender has nothing more to do with the segment.
	closed atomic.Bool
}

// segment is that of which a lane has the place + 1, nil for 0.
func (p *pool) segment(place1 int32) *segment {
	if place1 == 0 {
		return nil
	}
	return &p.segments[place1-1]
}

// has notes that the segment has memory for so many bytes, at least.
func (s *segment) has(n int64) {
	for {
		if old := s.backed.Load(); old >= n || s.backed.CompareAndSwap(old, n) {
			return
		}
	}
}
