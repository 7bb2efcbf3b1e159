// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// merge is how a ring that takes appends is read: lane by lane, merged by key. The reader's
// goroutine alone has it.
//
// The reader first reads its clock, T, then looks at the lanes. A lane that it sees idle can bring
// nothing older than T any more, for an appender reads its clock after it has made the lane busy. A
// lane that it sees busy can bring one record that is older: not older, though, than the last time
// the lane was seen idle, nor than the last record read from it. The smallest of these is the
// bound; below it, everything there is can be seen, so the merged order is final. Where a lane ends
// is in its state, so nothing is read that an appender may be writing.
type merge struct {
	memory   *memory
	life     *life
	clock    *clock
	lanes    *lanes
	segments *segments
	retired  *retired

	follow    [maxLanes]follower
	ready     []uint16      // lanes with something to be read
	bound     uint64        // what has a lower key has all been seen
	previous  uint64        // the clock when all lanes were last looked at
	looked    atomic.Uint64 // stored between the reading of the clock and the looks at the lanes
	sweepNext uint64

	returned      uint64 // by Next, those of a rescue, too
	returnedBytes uint64
}

// follower is the reader's place in one lane.
type follower struct {
	seg      *segment // nil: no segment that the reader knows of
	pos, end int64    // what is there to be read in seg; none if equal
	seen     int64    // the lane's tail when last looked at
	key      uint64   // of the record at pos
	least    uint64   // one more than the key read last: nothing lower follows
	idle     uint64   // when the lane was last seen idle: nothing that was not seen then has a lower key
	busy     bool     // when last looked at
	known    bool     // was ever looked at
}

// idleAfter is for how long a lane keeps a segment whose records are all done, unless room is
// short: taking another one costs more than an append.
const idleAfter = uint64(time.Second)

// sweepEvery is how often the reader looks for such segments while nothing waits for room.
const sweepEvery = uint64(10 * time.Millisecond)

// pick is the lane whose record is next, or -1.
func (m *merge) pick() int {
	best, at := m.bound, -1
	for _, i := range m.ready {
		if f := &m.follow[i]; f.key < best || f.key == best && at > int(i) {
			best, at = f.key, int(i)
		}
	}
	return at
}

// read takes the record at a follower's place and moves on.
func (m *merge) read(i int) (Record, error) {
	f := &m.follow[i]
	b := m.memory.mem[f.pos:f.end]
	n := int64(order.Uint32(b))
	if n > f.end-f.pos-recordHeader {
		return Record{}, overwritten(f.pos)
	}
	rec := Record{
		Key: f.key, Lane: uint16(i), Time: int64(order.Uint64(b[24:])),
		Data: b[recordHeader : recordHeader+n : recordHeader+n],
	}
	f.pos += recordHeader + align8(n)
	f.least = f.key + 1
	if err := m.advance(i); err != nil {
		return Record{}, err
	}
	m.returned++
	m.returnedBytes += uint64(n)
	return rec, nil
}

// advance finds the record at which a follower stands after it moved, over the ends of segments.
func (m *merge) advance(i int) error {
	f := &m.follow[i]
	if f.pos == f.end && f.seg != nil && (f.seen <= f.seg.off || f.seen > f.seg.limit) {
		m.retired.mu.Lock()
		m.turnPageLocked(i)
		m.retired.mu.Unlock()
	}
	if f.pos == f.end {
		if at := slices.Index(m.ready, uint16(i)); at >= 0 {
			m.ready = slices.Delete(m.ready, at, at+1)
		}
		if f.busy {
			m.bound = min(m.bound, max(f.idle, f.least))
		}
		return nil
	}
	if f.end-f.pos < recordHeader || order.Uint32(m.memory.mem[f.pos+4:]) != uint32(f.seg.nonce) {
		return overwritten(f.pos)
	}
	if f.key = order.Uint64(m.memory.mem[f.pos+16:]); f.key < f.least {
		return overwritten(f.pos)
	}
	return nil
}

func overwritten(at int64) error {
	return fmt.Errorf("%w: the record at offset %d was overwritten", ErrCorrupt, at)
}

// turnPageLocked brings a follower whose segment is read to the next one, under the lock of notes.
func (m *merge) turnPageLocked(i int) {
	f := &m.follow[i]
	for f.pos == f.end {
		next := m.segments.pool.segment(m.lanes.all[i].first.Load())
		if f.seg != nil {
			if !f.seg.closed.Load() {
				return
			}
			if end := f.seg.off + f.seg.filled; f.pos < end {
				f.end = end
				return
			}
			next = f.seg.next
			m.retired.retireLocked(f.seg)
		}
		f.seg = next
		if next == nil {
			f.pos, f.end = 0, 0
			return
		}
		f.pos, f.end = next.off, next.off
		if next.closed.Load() {
			f.end = next.off + next.filled
		} else if f.seen > next.off && f.seen <= next.limit {
			f.end = f.seen
		}
	}
}

// sync looks at all lanes.
func (m *merge) sync() error {
	now := m.clock.now()
	// The store cannot be made before the clock was read, nor the loads before the store.
	m.looked.Store(now)
	m.bound = now
	var bad error
	fault := m.memory.touch(func() {
		for i, n := uint32(reserved), m.lanes.active.Load(); i < n; i++ {
			if bad = m.look(int(i), now); bad != nil {
				return
			}
		}
	})
	if fault == nil {
		fault = bad
	}
	if fault != nil {
		return m.life.fail(fault)
	}
	m.previous = now
	if m.segments.wanted.Load() || now >= m.sweepNext && m.retired.due.Load() {
		m.sweep(now)
	}
	return nil
}

func (m *merge) look(i int, now uint64) error {
	f := &m.follow[i]
	if !f.known {
		f.known, f.idle = true, m.previous // the lane was not reachable when all lanes were last looked at
	}
	s := m.lanes.all[i].state.Load()
	tail, none := int64(s>>1), f.pos == f.end
	if f.busy = s&busy != 0; !f.busy {
		f.idle = now
	}
	if tail != f.seen {
		f.seen = tail
		if f.seg != nil && tail > f.seg.off && tail <= f.seg.limit {
			f.end = tail
		} else {
			m.retired.mu.Lock()
			if f.seg != nil {
				f.end = f.seg.off + f.seg.filled // it is closed, else the tail would be in it
			}
			m.turnPageLocked(i)
			m.retired.mu.Unlock()
		}
	}
	if !none {
		if f.key > now { // it was there before the clock was read
			return overwritten(f.pos)
		}
		return nil
	}
	if f.pos != f.end {
		m.ready = append(m.ready, uint16(i))
	}
	return m.advance(i)
}

// anyBusy says that a lane was busy when last looked at.
func (m *merge) anyBusy() bool {
	for i, n := uint32(reserved), m.lanes.active.Load(); i < n; i++ {
		if m.follow[i].busy {
			return true
		}
	}
	return false
}

// sweep takes the segments of idle lanes whose records are all read and done. The reader does that.
func (m *merge) sweep(now uint64) {
	m.retired.due.Store(false)
	m.segments.wanted.Store(false)
	m.sweepNext = now + sweepEvery
	m.retired.mu.Lock()
	defer m.retired.mu.Unlock()
	short := m.segments.used() > m.segments.Size()/4
	for i, n := uint32(reserved), m.lanes.active.Load(); i < n; i++ {
		f := &m.follow[i]
		if f.seg == nil || f.seg.closed.Load() || f.pos != f.end || f.pos == f.seg.off ||
			!m.retired.doneLocked(f.seg.first, f.least-1) {
			continue
		}
		if !short && now < f.least+idleAfter {
			m.retired.due.Store(true) // later
			continue
		}
		l := &m.lanes.all[i]
		old, ok := l.try()
		if !ok {
			continue
		}
		tail := int64(old >> 1)
		if tail == f.pos && m.segments.pool.segment(l.seg) == f.seg {
			l.seg, l.limit, tail = 0, 0, 0
			l.first.Store(0)
			m.segments.giveBack(f.seg)
			f.seg, f.pos, f.end, f.seen = nil, 0, 0, 0
		}
		l.state.Store(uint64(tail) << 1) // not release: the reader is awake
	}
}

// unread is a rescue of what was not yet read, after all lanes have been taken for ever.
func (m *merge) unread() *rescue {
	q := &rescue{notes: &m.retired.notes}
	for i, n := uint32(reserved), m.lanes.active.Load(); i < n; i++ {
		f, tail := &m.follow[i], int64(m.lanes.all[i].state.Load()>>1)
		s := f.seg
		if s == nil {
			s = m.segments.pool.segment(m.lanes.all[i].first.Load())
		}
		for ; s != nil; s = s.next {
			end := s.off
			if s.closed.Load() {
				end = s.off + s.filled
			} else if tail > s.off && tail <= s.limit {
				end = tail
			}
			src := &segmentReader{segmentFacts: s.segmentFacts, off: s.off, pos: s.off, end: end}
			src.last = math.MaxUint64
			if s == f.seg {
				src.pos, src.least = f.pos, f.least
			}
			q.sources = append(q.sources, src)
		}
	}
	q.start()
	return q
}
