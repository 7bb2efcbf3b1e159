// SPDX-License-Identifier: Apache-2.0

package mover

import "time"

// overflow makes room in the ring while its records cannot be shipped: they go to the spill, or,
// with DropOldest and no spill that takes them, nowhere.
func (m *Mover) overflow() {
	for {
		fate := m.circumstances().fate()
		s := m.rings.full()
		switch {
		case fate == ships:
			m.short.Store(false) // room comes by itself; whoever finds none all the same asks again
			return
		case fate == waits || s == nil:
			return
		case fate == spills && !m.spillFrom(s), fate == drops && !m.dropFrom(s):
			return
		}
		m.short.Store(false)
	}
}

// spillFrom cuts a window and has it written to the spill.
func (m *Mover) spillFrom(s *source) bool {
	if s.marks > mostMarks || !m.work.cut(s, m.batch) {
		return false
	}
	m.hand(m.pack(s, nil, toSpill))
	return true
}

// holds says that there are events in a spill, or on their way into one.
func (m *Mover) holds() bool {
	if m.handing > 0 || m.spill != nil && m.spill.entries.len() > 0 || len(m.stranded) > 0 || len(m.saved) > 0 {
		return true
	}
	for _, q := range m.queue {
		if sp, ok := q.(*backlog); ok && sp.entries.len() > 0 {
			return true
		}
	}
	return false
}

// again tries once more what the disk did not take, or did not give.
func (m *Mover) again() {
	m.watch()
	now := time.Now()
	if m.refused && !now.Before(m.againAt) {
		m.refused, m.room = false, nil
	}
	if len(m.stuck) == 0 && !m.stalled && m.why.Load() != nil {
		m.why.Store(nil)
	}
	if m.handing == 0 && !m.refused && m.phase != stopped {
		flights := m.stuck
		m.stuck = nil
		m.hand(flights)
	}
	if m.spill != nil {
		m.spill.again(m, now)
	}
	for _, sp := range m.stranded {
		sp.again(m, now)
	}
}

// dropFrom drops the oldest events that are in nobody's hands: those that the spill had no room
// for, then those of the ring.
func (m *Mover) dropFrom(s *source) bool {
	if len(m.stuck) > 0 && m.handing == 0 {
		for _, f := range m.stuck {
			m.unmark(f)
			f.leaveSpill()
			n := uint64(f.chunk.Events)
			m.count.cut.sub(n, f.bytes)
			m.count.drop(Oldest, n)
			m.answerDropped(f.win, f.first, f.last)
			m.release(f)
		}
		m.stuck = nil
		return true
	}
	w := &m.work
	w.skip = true
	some := w.cut(s, int(s.r.Size()/16))
	w.skip = false
	if !some {
		return false
	}
	m.took(s, 0, 0)
	m.count.untell(s, w.last, true)
	m.count.drop(Oldest, w.taken-w.bad)
	s.r.Cut(w.last)
	s.answerTo(w.first, w.last, ErrDropped)
	return true
}

// answerDropped takes a chunk that will not be delivered off its window.
func (m *Mover) answerDropped(win *window, first, last uint64) {
	if win == nil {
		return
	}
	win.left--
	win.s.answerTo(first, last, ErrDropped)
}
