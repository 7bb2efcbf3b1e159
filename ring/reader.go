// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"slices"
)

// Record is one record as read.
type Record struct {
	Key  uint64 // monotonic nanoseconds since the ring's birth
	Lane uint16
	Time int64  // Unix nanoseconds, as given to Append
	Data []byte // lies in the ring until the record is done: see Cut. Read it within Guard, or with Copy
}

// How the live reader works. The reader first reads its clock, T, then looks at the lanes. A lane
// that it sees idle can bring nothing older than T any more, for an appender reads its clock after
// it has made the lane busy. A lane that it sees busy can bring one record that is older: not
// older, though, than the last time the lane was seen idle, nor than the last record read from it.
// The smallest of these is the bound; below it, everything there is can be seen, so the merged
// order is final. Where a lane ends is in its state, so nothing is read that an appender may be
// writing.

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

// Next returns the next record in the order of (Key, Lane). ok is false when there is none yet: a
// record whose turn is not certain becomes visible later, never out of turn. Of an adopted ring it
// returns the records that are whole and not done, and counts the rest: see [Ring.Lost]; ok is
// false at the end. Of a ring that failed it goes on with what can still be read, then ok is false
// and the error wraps [ErrFailed].
//
// Next, Peek, Guard, Copy, Sleep, Rewind, Close and Leave are for one goroutine, the reader.
func (r *Ring) Next() (rec Record, ok bool, err error) {
	for {
		if r.rescue != nil {
			rec, ok = r.rescue.next()
			if ok {
				r.returned++
				r.returnedBytes += uint64(len(rec.Data))
				return rec, true, nil
			}
			return Record{}, false, r.Failed()
		}
		if r.over.Load() == overFailed {
			r.startRescue()
			continue
		}
		i := r.pick()
		if i < 0 {
			if err := r.sync(); err != nil {
				continue
			}
			if i = r.pick(); i < 0 {
				return Record{}, false, nil
			}
		}
		if err := r.touch(func() { rec, err = r.read(i) }); err != nil {
			_ = r.fail(err)
			continue
		}
		if err != nil {
			_ = r.fail(err)
			continue
		}
		return rec, true, nil
	}
}

// Peek is the key of the record that Next would return. After ok=false any record that comes later
// has a larger key than all that Next has returned.
func (r *Ring) Peek() (key uint64, ok bool, err error) {
	for {
		if r.rescue != nil {
			if key, ok := r.rescue.peek(); ok {
				return key, true, nil
			}
			return 0, false, r.Failed()
		}
		if r.over.Load() == overFailed {
			r.startRescue()
			continue
		}
		i := r.pick()
		if i < 0 {
			if err := r.sync(); err != nil {
				continue
			}
			if i = r.pick(); i < 0 {
				return 0, false, nil
			}
		}
		return r.follow[i].key, true, nil
	}
}

// pick is the lane whose record is next, or -1.
func (r *Ring) pick() int {
	best, at := r.bound, -1
	for _, i := range r.ready {
		if f := &r.follow[i]; f.key < best || f.key == best && at > int(i) {
			best, at = f.key, int(i)
		}
	}
	return at
}

// read takes the record at a follower's place and moves on.
func (r *Ring) read(i int) (Record, error) {
	f := &r.follow[i]
	b := r.mem[f.pos:f.end]
	n := int64(order.Uint32(b))
	if n > f.end-f.pos-recordHeader {
		return Record{}, overwritten(f.pos)
	}
	rec := Record{Key: f.key, Lane: uint16(i), Time: int64(order.Uint64(b[24:])), Data: b[recordHeader : recordHeader+n : recordHeader+n]}
	f.pos += recordHeader + align8(n)
	f.least = f.key + 1
	if err := r.advance(i); err != nil {
		return Record{}, err
	}
	r.returned++
	r.returnedBytes += uint64(n)
	return rec, nil
}

// advance finds the record at which a follower stands after it moved, over the ends of segments.
func (r *Ring) advance(i int) error {
	f := &r.follow[i]
	if f.pos == f.end && f.seg != nil && (f.seen <= f.seg.off || f.seen > f.seg.limit) {
		r.mu.Lock()
		r.turnPage(i)
		r.mu.Unlock()
	}
	if f.pos == f.end {
		if at := slices.Index(r.ready, uint16(i)); at >= 0 {
			r.ready = slices.Delete(r.ready, at, at+1)
		}
		if f.busy {
			r.bound = min(r.bound, max(f.idle, f.least))
		}
		return nil
	}
	if f.end-f.pos < recordHeader || order.Uint32(r.mem[f.pos+4:]) != uint32(f.seg.nonce) {
		return overwritten(f.pos)
	}
	if f.key = order.Uint64(r.mem[f.pos+16:]); f.key < f.least {
		return overwritten(f.pos)
	}
	return nil
}

func overwritten(at int64) error {
	return fmt.Errorf("%w: the record at offset %d was overwritten", ErrCorrupt, at)
}

// turnPage brings a follower whose segment is read to the next one. Under mu.
func (r *Ring) turnPage(i int) {
	f := &r.follow[i]
	for f.pos == f.end {
		next := r.segment(r.lanes[i].first.Load())
		if f.seg != nil {
			if !f.seg.closed.Load() {
				return
			}
			if end := f.seg.off + f.seg.filled; f.pos < end {
				f.end = end
				return
			}
			next = f.seg.next
			r.retire(f.seg)
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
func (r *Ring) sync() error {
	now := r.clock.now()
	// The store cannot be made before the clock was read, nor the loads before the store.
	r.looked.Store(now)
	r.bound = now
	var bad error
	fault := r.touch(func() {
		for i, n := uint32(reserved), r.active.Load(); i < n; i++ {
			if bad = r.look(int(i), now); bad != nil {
				return
			}
		}
	})
	if fault == nil {
		fault = bad
	}
	if fault != nil {
		return r.fail(fault)
	}
	r.previous = now
	if r.sweepNow.Load() || now >= r.sweepNext && r.sweepDue.Load() {
		r.sweep(now)
	}
	return nil
}

func (r *Ring) look(i int, now uint64) error {
	f := &r.follow[i]
	if !f.known {
		f.known, f.idle = true, r.previous // the lane was not reachable when all lanes were last looked at
	}
	s := r.lanes[i].state.Load()
	tail, none := int64(s>>1), f.pos == f.end
	if f.busy = s&busy != 0; !f.busy {
		f.idle = now
	}
	if tail != f.seen {
		f.seen = tail
		if f.seg != nil && tail > f.seg.off && tail <= f.seg.limit {
			f.end = tail
		} else {
			r.mu.Lock()
			if f.seg != nil {
				f.end = f.seg.off + f.seg.filled // it is closed, else the tail would be in it
			}
			r.turnPage(i)
			r.mu.Unlock()
		}
	}
	if !none {
		if f.key > now { // it was there before the clock was read
			return overwritten(f.pos)
		}
		return nil
	}
	if f.pos != f.end {
		r.ready = append(r.ready, uint16(i))
	}
	return r.advance(i)
}

// Sleep announces that the reader is going to sleep: from now on the first Append calls wake, once.
// With ready=true there is something to be read already, and wake is not called for it.
// (ready=false while there are records whose turn is not certain: the appender that makes it so
// calls wake when it is done.) Of an adopted ring, and of one that failed, ready says that not
// everything was read.
func (r *Ring) Sleep() (ready bool) {
	if r.rescue != nil || r.over.Load() == overFailed {
		return !r.Drained()
	}
	r.sawBusy.Store(0)
	r.asleep.Store(1)
	for {
		switch {
		case r.sync() != nil || r.pick() >= 0:
			r.asleep.Store(0)
			return true
		case !r.anyBusy():
			if len(r.ready) == 0 {
				return false
			}
			// There are records, none of which was appended before the clock's present reading.
		case r.sawBusy.Load() != 0:
			return false // whoever has the lane calls wake
		default:
			r.sawBusy.Store(1) // and look again, for he may have let go before this
		}
	}
}

// anyBusy says that a lane was busy when last looked at.
func (r *Ring) anyBusy() bool {
	for i, n := uint32(reserved), r.active.Load(); i < n; i++ {
		if r.follow[i].busy {
			return true
		}
	}
	return false
}

// SetWake sets what is called when the reader sleeps and a record comes, when the pressure is
// passed (see [Ring.SetPressure]) and when the ring fails. Appenders call it: it must not block,
// nor call the ring. Set it before the first Append.
func (r *Ring) SetWake(fn func()) { r.wake.Store(&fn) }

func (r *Ring) callWake() {
	if fn := r.wake.Load(); fn != nil {
		(*fn)()
	}
}

// rouse wakes the reader if it sleeps.
func (r *Ring) rouse() {
	if r.asleep.Load() != 0 && r.asleep.CompareAndSwap(1, 0) {
		r.callWake()
	}
}
