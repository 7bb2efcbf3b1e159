// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"slices"
)

// What lies in the head of the ring's memory beside what never changes: the last cut, marks, the
// caller's state and counters. This process works with copies of its own; the memory is for whoever
// adopts the ring.

// header runs fn, which writes to the head, under mu. After the end of the ring it does nothing.
func (r *Ring) header(fn func()) {
	r.mu.Lock()
	if r.mem == nil {
		r.mu.Unlock()
		return
	}
	err := r.touch(fn)
	nudge := r.nudge
	r.nudge = false
	r.mu.Unlock()
	if nudge {
		r.rouse()
	}
	if err != nil {
		_ = r.fail(err)
	}
}

// putCut writes the cut into the older of its two cells.
func (r *Ring) putCut() {
	r.cutCell ^= 1
	at := int64(cutsAt + 16*r.cutCell)
	b := r.mem[at : at+16]
	order.PutUint64(b, r.cut)
	order.PutUint64(b[8:], uint64(r.head.check(uint64(at), b[:8]))|1<<32)
}

func (r *Ring) getCut() {
	for cell := range 2 {
		at := int64(cutsAt + 16*cell)
		b := r.mem[at : at+16]
		key := order.Uint64(b)
		if key >= r.cut && order.Uint64(b[8:]) == uint64(r.head.check(uint64(at), b[:8]))|1<<32 {
			r.cut, r.cutCell = key, cell
		}
	}
}

func (r *Ring) markBytes(slot int) (at int64, b []byte) {
	at = int64(marksAt + markLen*slot)
	return at, r.mem[at : at+markLen]
}

// putMark writes a mark, its check last: a mark that was not finished is none.
func (r *Ring) putMark(slot int) {
	at, b := r.markBytes(slot)
	m := &r.marks[slot]
	order.PutUint64(b, m.First)
	order.PutUint64(b[8:], m.Last)
	order.PutUint64(b[16:], uint64(m.Lane))
	copy(b[24:48], m.Label[:])
	order.PutUint64(b[48:], uint64(r.head.check(uint64(at), b[:48]))|1<<32)
}

func (r *Ring) clearMark(slot int) {
	_, b := r.markBytes(slot)
	order.PutUint64(b[48:], 0)
}

func (r *Ring) getMarks() (bad int) {
	for slot := range MaxMarks {
		at, b := r.markBytes(slot)
		word := order.Uint64(b[48:])
		if r.marked[slot] = word == uint64(r.head.check(uint64(at), b[:48]))|1<<32; !r.marked[slot] {
			if word != 0 {
				bad++
			}
			continue
		}
		r.nmarks++
		m := Mark{First: order.Uint64(b), Last: order.Uint64(b[8:]), Lane: uint16(order.Uint64(b[16:])), Slot: slot}
		copy(m.Label[:], b[24:48])
		r.marks[slot] = m
	}
	return bad
}

// SetState stores bytes of the caller's, at most [MaxState], in place of those before: whoever
// adopts the ring finds the ones or the others.
func (r *Ring) SetState(b []byte) error {
	if len(b) > MaxState {
		return fmt.Errorf("%w: state of %d bytes, the most is %d", ErrTooLarge, len(b), MaxState)
	}
	if err := r.backing.forState(r.head.states, stateHeader+int64(len(b))); err != nil {
		return err
	}
	stored := false
	r.header(func() {
		r.state = append(r.state[:0], b...)
		r.stateSeq++
		at := r.head.states + int64(r.stateSeq%2)*stateRoom
		to := r.mem[at : at+stateRoom]
		order.PutUint32(to[16:], ^order.Uint32(to[16:])) // what lies there is no more
		order.PutUint64(to, r.stateSeq)
		order.PutUint64(to[8:], uint64(len(b)))
		copy(to[stateHeader:], b)
		order.PutUint32(to[16:], r.stateCheck(at, to, len(b)))
		stored = true
	})
	if !stored { // not r.overErr alone: a sealed ring still takes states
		return r.overErr()
	}
	return nil
}

func (r *Ring) stateCheck(at int64, b []byte, n int) uint32 {
	return r.head.check(uint64(at)^uint64(r.head.check(uint64(at), b[:16]))<<20, b[stateHeader:stateHeader+n])
}

func (r *Ring) getState() {
	for slot := range int64(2) {
		at := r.head.states + slot*stateRoom
		b := r.mem[at : at+stateRoom]
		seq, n := order.Uint64(b), order.Uint64(b[8:])
		if seq > r.stateSeq && n <= MaxState && order.Uint32(b[16:]) == r.stateCheck(at, b, int(n)) {
			r.stateSeq = seq
			r.state = slices.Clone(b[stateHeader : stateHeader+n])
		}
	}
}

// State returns a copy of what SetState stored last, nil if nothing.
func (r *Ring) State() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.state)
}

// Count adds n to one of the [Counters] counters.
func (r *Ring) Count(i int, n uint64) {
	r.header(func() {
		r.counters[i] += n
		order.PutUint64(r.mem[countersAt+8*i:], r.counters[i])
	})
}

// Counter reads one.
func (r *Ring) Counter(i int) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counters[i]
}

// load reads the head of a ring that somebody else left.
func (r *Ring) load() (bad int) {
	r.getCut()
	bad = r.getMarks()
	r.getState()
	for i := range r.counters {
		r.counters[i] = order.Uint64(r.mem[countersAt+8*i:])
	}
	return bad
}
