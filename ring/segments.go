// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// tenderPatience is for how long an append that finds no room waits for segments that the tender
// has. That takes a hundredth of it, unless the file system hangs.
const tenderPatience = 10 * time.Millisecond

// segments are those of a ring, with their memory: what a lane gets when it goes on to another one,
// and what comes back. It is written to there; by the reader, when something is done; and, as far
// as memory goes, by the tender.
type segments struct {
	space
	*memory
	life     *life
	pool     *pool         // nil: the ring was adopted
	left     atomic.Int64  // segments in use in an adopted ring
	seq      atomic.Uint64 // of the segment begun last
	pressure atomic.Int64  // see SetPressure
	pressed  atomic.Bool
}

// furnish gets the memory that a new ring's file needs to begin with.
func (g *segments) furnish() error {
	g.pool = newPool(int(g.head.size / g.head.unit))
	if err := g.backing.get(0, wholePages(tableAt+lineLen*int64(g.pool.n))); err != nil {
		return err
	}
	if err := g.backing.forState(statesAt, pageSize); err != nil {
		return err
	}
	defer g.backing.measure()
	return g.begin()
}

// begin gets the memory for the first segments: one for the first records, and the reserve.
func (g *segments) begin() error {
	at, k := g.pool.takeFresh(max(2, int(blockLen/g.head.unit)))
	for i := at; i < at+k; i++ {
		n := idleLen(i, g.head.unit)
		if err := g.backing.get(g.head.offset(i), g.head.offset(i)+n); err != nil {
			return err
		}
		g.pool.segments[i].has(n)
	}
	g.pool.put(at, k)
	return nil
}

// haveAll makes all segments of plain memory free: they have theirs.
func (g *segments) haveAll() {
	g.pool = newPool(int(g.head.size / g.head.unit))
	at, k := g.pool.takeFresh(g.pool.n)
	for i := at; i < at+k; i++ {
		g.pool.segments[i].has(g.head.unit)
	}
	g.pool.put(at, k)
}

// wantAhead wakes the tender if few free segments are left.
func (g *segments) wantAhead() {
	if b := g.backing; b != nil && g.pool.count.Load() <= b.ahead.Load() && g.pool.away.Load() > 0 && !b.short.Load() {
		b.tend()
	}
}

// grow gives the lane room for need bytes, in its segment or in a new one, and returns where. The
// lane is the caller's. As long as there is room it takes no lock: an owner of one that is off its
// core would keep appenders waiting.
func (g *segments) grow(l *lane, n uint16, tail, need int64, key uint64) (off int64, err error) {
	prev := g.pool.segment(l.seg)
	if prev != nil && tail+need <= prev.limit && g.back(prev, tail+need) {
		l.limit = g.roomIn(prev)
		return tail, nil
	}
	stay := 1
	if n == reserved {
		stay = 0
	} else if g.full.Load() || !l.begin && g.few() {
		return 0, ErrFull
	}
	l.begin = false
	units := int((need + g.head.unit - 1) / g.head.unit)
	at := g.obtain(units, stay, need)
	if at < 0 {
		return 0, ErrFull
	}
	s := &g.pool.segments[at]
	s.segmentFacts = segmentFacts{nonce: newNonce(), units: uint32(units), lane: n, seq: g.seq.Add(1), first: key}
	s.next = nil
	s.closed.Store(false)
	if prev != nil {
		prev.filled, prev.count, prev.last = tail-prev.off, l.index, l.last
	}
	err = g.touch(func() {
		if prev != nil {
			prev.putFilled(&g.head, prev.off, g.line(prev.off))
		}
		for i := 1; i < units; i++ { // before there is anything in them
			noSegment(g.line(g.head.offset(at + i)))
		}
		s.put(&g.head, s.off, g.line(s.off))
	})
	if err != nil {
		g.pool.put(at, units)
		return 0, g.life.fail(err)
	}
	if prev != nil {
		prev.next = s
		prev.closed.Store(true)
	} else {
		l.first.Store(int32(at) + 1)
	}
	l.seg, l.limit, l.nonce, l.index = int32(at)+1, g.roomIn(s), s.nonce, 0
	if p := g.pressure.Load(); p > 0 && g.used() >= p && g.pressed.CompareAndSwap(false, true) {
		g.life.callWake()
	}
	if prev != nil {
		g.wantAhead()
	}
	return s.off, nil
}

// obtain takes segments in a row with memory for need bytes, or notes that an appender may be
// waiting for room and returns -1.
func (g *segments) obtain(units, stay int, need int64) (at int) {
	if at = g.tryObtain(units, stay, need); at >= 0 {
		return at
	}
	first := g.refuse(func() bool { return units == 1 && g.pool.count.Load() <= int64(stay) })
	if at = g.awaitTender(units, stay, need); at >= 0 {
		g.allow()
		return at
	}
	g.wanted.Store(true)
	if first { // no append was refused since there last was room
		g.life.callWake()
	}
	return -1
}

// awaitTender obtains segments once more, and again while the tender may have had some for a
// moment; but where the file system hangs, those that the tender has are not there. What one append
// waited for in vain the next ones do not wait for.
func (g *segments) awaitTender(units, stay int, need int64) (at int) {
	b := g.backing
	since := time.Now()
	for {
		moves := b.moved()
		if at = g.tryObtain(units, stay, need); at >= 0 {
			return at
		}
		switch now := b.moved(); {
		case now == moves && now%2 == 0:
			return -1
		case now%2 == 1 && (b.vain.Load() == now || time.Since(since) > tenderPatience):
			if b.vain.Load() != now {
				b.vain.Store(now)
			}
			b.missed.Store(true)
			if b.moved() == now { // else it may have let go before it could see that
				return -1
			}
		}
		runtime.Gosched()
	}
}

func (g *segments) tryObtain(units, stay int, need int64) (at int) {
	if units > 1 {
		at = g.pool.takeRun(units, stay, !g.backing.isShort())
	} else if at = g.pool.take(stay); at < 0 {
		at = g.fresh(need)
	}
	found := at >= 0
	for again := units == 1; at >= 0; again = false {
		for i := range units {
			s := &g.pool.segments[at+i]
			s.off = g.head.offset(at + i)
			s.limit = g.head.offset(at + units)
			s.units = uint32(units)
		}
		if g.back(&g.pool.segments[at], g.head.offset(at)+need) {
			return at
		}
		g.pool.put(at, units)
		if at = -1; again { // there is no more memory, but another one may have it
			at = g.pool.takeWith(need, stay)
		}
	}
	if units > 1 || found {
		g.looksFull() // what was taken for a while seemed to be in use
	}
	return -1
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
func (g *segments) used() int64 {
	if g.pool == nil {
		return g.left.Load() * g.head.unit
	}
	return (g.pool.present() - g.pool.count.Load()) * g.head.unit
}

// giveBack frees a segment, to which nothing points any more.
func (g *segments) giveBack(s *segment) {
	_ = g.touch(func() { noSegment(g.line(s.off)) }) // a later write there meets the fault again
	g.pool.put(g.head.place(s.off), int(s.units))
	if g.used() < g.pressure.Load() {
		g.pressed.Store(false)
	}
	g.allow()
}

// Used is the bytes of all segments in use. A lane that is idle gives its segment back when its
// records are done and the reader next calls Next or Sleep.
func (g *segments) Used() int64 { return g.used() }

// SetPressure has wake called when more than so many bytes come into use, whether the reader sleeps
// or not: once, until fewer are in use again or SetPressure is called again. If they are in use
// already, it is called at once.
func (g *segments) SetPressure(bytes int64) {
	g.pressed.Store(false)
	g.pressure.Store(bytes)
	// An appender that takes a segment looks at the pressure after that; this looks in the other
	// order. One of the two sees the other.
	if bytes > 0 && g.used() >= bytes && g.pressed.CompareAndSwap(false, true) {
		g.life.callWake()
	}
}

// Size is the bytes of all segments that others than AppendReserved can have: fewer than
// [Options.Size] while the file system has no room for more.
func (g *segments) Size() int64 {
	if g.backing == nil || g.pool == nil {
		return g.head.size
	}
	more := g.backing.room.Load() / g.head.unit
	if g.backing.short.Load() {
		more = 0
	}
	if away := g.pool.away.Load(); more < away {
		return max(int64(g.pool.n)-away+more-1, 1) * g.head.unit
	}
	return g.head.size
}

// Short returns an error, once, when the file system had no room for all of [Options.Size]: the
// ring is a smaller one then, until there is more. See [Ring.Size].
func (g *segments) Short() error {
	b := g.backing
	if !b.isShort() || b.told.Swap(true) {
		return nil
	}
	return fmt.Errorf("ring: there is room for only %d of %d bytes of %s: %w", g.pool.present()*g.head.unit,
		g.head.size, g.path, *b.why.Load())
}

// few says that the ring has so little memory that lanes have to share segments.
func (g *segments) few() bool {
	if g.backing == nil {
		return false
	}
	size := g.Size()
	return size < g.head.size/2 && size/g.head.unit < 4*int64(firstLanes())
}

// roomIn is how far records may go in a segment whose bit is the caller's.
func (g *segments) roomIn(s *segment) int64 {
	if g.backing == nil {
		return s.limit
	}
	for off := s.off; off < s.limit; off += g.head.unit {
		if have := g.pool.segments[g.head.place(off)].backed.Load(); have < g.head.unit {
			return off + have
		}
	}
	return s.limit
}

// back sees to it that a segment whose bit is the caller's, and the others of its run, have memory
// up to an offset.
func (g *segments) back(s *segment, to int64) bool {
	if g.backing == nil {
		return true
	}
	for off := s.off; off < to; off += g.head.unit {
		want := min(to-off, g.head.unit)
		if s := &g.pool.segments[g.head.place(off)]; s.backed.Load() < want &&
			(g.backing.short.Load() || !g.provide(s, off, want)) {
			return false
		}
	}
	return true
}

// provide gives a segment memory for its first bytes, in whole blocks.
func (g *segments) provide(s *segment, off, want int64) bool {
	have := s.backed.Load()
	if have >= want {
		return true // the tender was here meanwhile
	}
	to := min((want+blockLen-1)/blockLen*blockLen, g.head.unit)
	if err := g.backing.get(off+have, off+to); err != nil {
		g.backing.lacks(err)
		return false
	}
	s.has(to)
	if have > 0 { // the segment will be filled, it seems, and others after it
		g.backing.tend()
	}
	return true
}

// fresh takes a segment that had no memory. Of small ones several get some at once.
func (g *segments) fresh(need int64) int {
	b := g.backing
	if b == nil || b.short.Load() {
		return -1
	}
	at, k := g.pool.takeFresh(max(1, int(blockLen/g.head.unit)))
	if at < 0 {
		return -1
	}
	if k == 1 {
		if !g.provide(&g.pool.segments[at], g.head.offset(at), need) {
			g.pool.put(at, 1)
			return -1
		}
		return at
	}
	if !g.provideAll(at, k) {
		g.pool.put(at, k)
		return -1
	}
	g.pool.put(at+1, k-1)
	return at
}

// provideAll gives segments without memory all of theirs.
func (g *segments) provideAll(at, k int) bool {
	if err := g.backing.get(g.head.offset(at), g.head.offset(at+k)); err != nil {
		g.backing.lacks(err)
		return false
	}
	for i := at; i < at+k; i++ {
		g.pool.segments[i].has(g.head.unit)
	}
	return true
}
