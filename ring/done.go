// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"slices"
	"time"
)

// Mark covers records that were handed on and are not yet done: those with keys from First to Last
// that belong together in a way that the caller can tell from the label and the record First. It
// outlives the process.
type Mark struct {
	First, Last uint64   // keys
	Lane        uint16   // of the record First
	Label       [24]byte // the caller's
	Slot        int      // set by Marks; Put ignores it
}

// idleAfter is for how long a lane keeps a segment whose records are all done, unless room is
// short: taking another one costs more than an append.
const idleAfter = uint64(time.Second)

// sweepEvery is how often the reader looks for such segments while nobody waits for room.
const sweepEvery = uint64(10 * time.Millisecond)

// Put stores a mark; ok is false when [MaxMarks] are there already.
func (r *Ring) Put(m Mark) (slot int, ok bool) {
	slot = -1
	r.header(func() {
		for i, there := range r.marked {
			if !there {
				m.Slot, slot = i, i
				r.marked[i], r.marks[i] = true, m
				r.nmarks++
				r.putMark(i)
				return
			}
		}
	})
	return slot, slot >= 0
}

// Clear removes a mark. Its records are done, if a Cut has passed them and no other mark covers
// them.
func (r *Ring) Clear(slot int) {
	r.header(func() {
		if !r.marked[slot] {
			return
		}
		r.marked[slot] = false
		r.nmarks--
		r.clearMark(slot)
		r.freeHeld()
	})
}

// Cut says that every record with this key or a lower one is done, unless a mark covers it. A
// segment all of whose records are done is free. What Next has not yet returned must not be cut, or
// it may still come.
func (r *Ring) Cut(key uint64) {
	r.header(func() {
		if key <= r.cut {
			return
		}
		r.cut = key
		r.putCut()
		r.freeHeld()
	})
}

// Marks returns all marks in the order of First.
func (r *Ring) Marks() (all []Mark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, there := range r.marked {
		if there {
			all = append(all, r.marks[i])
		}
	}
	slices.SortFunc(all, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Slot, b.Slot)) })
	return all
}

// CutKey is the highest key that was given to Cut.
func (r *Ring) CutKey() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut
}

// done says that every record with keys from first to last is done. Under mu.
func (r *Ring) done(first, last uint64) bool {
	if last > r.cut || r.nmarks == 0 {
		return last <= r.cut
	}
	for i, there := range r.marked {
		if there && r.marks[i].First <= last && r.marks[i].Last >= first {
			return false
		}
	}
	return true
}

// retire notes that the reader has read a closed segment to its end. Under mu.
func (r *Ring) retire(s *segment) {
	if r.done(s.first, s.last) {
		r.giveBack(s)
		return
	}
	r.held = append(r.held, s)
}

// freeHeld frees what has been read and is done. Under mu, which appenders want: so the marks that
// count are looked up only once.
func (r *Ring) freeHeld() {
	r.sweepDue.Store(true)
	if r.room != nil { // what somebody waits for may be in lanes, and only the reader can take it from there
		r.sweepNow.Store(true)
		r.nudge = true
	}
	if len(r.held) == 0 {
		return
	}
	var spans [MaxMarks][2]uint64
	n := 0
	for i, there := range r.marked {
		if there {
			spans[n] = [2]uint64{r.marks[i].First, r.marks[i].Last}
			n++
		}
	}
	keep := r.held[:0]
	for _, s := range r.held {
		done := s.last <= r.cut
		for _, span := range spans[:n] {
			done = done && (span[0] > s.last || span[1] < s.first)
		}
		if done {
			r.giveBack(s)
		} else {
			keep = append(keep, s)
		}
	}
	clear(r.held[len(keep):])
	r.held = keep
}

// sweep takes the segments of idle lanes whose records are all read and done. The reader does that.
func (r *Ring) sweep(now uint64) {
	r.sweepDue.Store(false)
	r.sweepNow.Store(false)
	r.sweepNext = now + sweepEvery
	r.mu.Lock()
	defer r.mu.Unlock()
	short := r.used() > r.Size()/4
	for i, n := uint32(reserved), r.active.Load(); i < n; i++ {
		f := &r.follow[i]
		if f.seg == nil || f.seg.closed.Load() || f.pos != f.end || f.pos == f.seg.off || !r.done(f.seg.first, f.least-1) {
			continue
		}
		if !short && now < f.least+idleAfter {
			r.sweepDue.Store(true) // later
			continue
		}
		l := &r.lanes[i]
		old, ok := l.try()
		if !ok {
			continue
		}
		tail := int64(old >> 1)
		if tail == f.pos && r.segment(l.seg) == f.seg {
			l.seg, l.limit, tail = 0, 0, 0
			l.first.Store(0)
			r.giveBack(f.seg)
			f.seg, f.pos, f.end, f.seen = nil, 0, 0, 0
		}
		l.state.Store(uint64(tail) << 1) // not release: the reader is awake
	}
}
