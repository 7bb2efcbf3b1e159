// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/journal"
)

// overflow makes room in the ring while its records cannot be shipped: they go to the spill, or, with DropOldest and no spill that takes them, nowhere.
func (m *Mover) overflow() {
	if m.able() {
		m.short.Store(false) // room comes by itself; whoever finds none all the same asks again
	}
	for m.pressed() {
		s := m.full()
		if s == nil {
			return
		}
		switch {
		case m.canSpill():
			if !m.spillFrom(s) {
				return
			}
		case m.mustDrop():
			if !m.dropFrom(s) {
				return
			}
		default:
			return
		}
		m.short.Store(false)
	}
}

// line is how full the own ring may be while it cannot be shipped from; 0: as full as it gets.
func (m *Mover) line() int64 {
	size := m.cur.Load().r.Size()
	switch {
	case m.canSpill():
		return size / 2
	case m.cfg.Overflow != DropOldest || m.stopped:
		return 0
	case m.cfg.Dir == "" || m.refused:
		return size / 4 * 3
	}
	return size / 8 * 7 // the disk may yet take it
}

// limit is line, or more where little of what is in use could be taken: windows of a few records are not worth their while.
func (m *Mover) limit(s *source, used int64) int64 {
	line := m.line()
	if line == 0 || used < line {
		return line
	}
	return min(max(line, used+int64(m.batch)/2-int64(s.unread())), s.r.Size()/8*7)
}

// pressed says that there has to be room.
func (m *Mover) pressed() bool {
	if m.pouring {
		return true
	}
	if m.line() == 0 || m.able() {
		return false
	}
	s := m.cur.Load()
	used := s.r.Used()
	return used >= m.limit(s, used) || m.short.Load()
}

// able says that the own ring's records can be shipped now.
func (m *Mover) able() bool {
	s := m.cur.Load()
	if !m.scouted || m.stopped || !m.roomy() || s.marks > mostMarks {
		return false
	}
	return m.next() == shipper(s) && (m.inFlight == 0 || m.active == shipper(s))
}

// full is the first own ring that has records to be taken.
func (m *Mover) full() *source {
	for _, s := range *m.own.Load() {
		if s.fill() {
			return s
		}
	}
	return nil
}

func (m *Mover) canSpill() bool {
	return m.cfg.Dir != "" && !m.refused && m.handing < mostHanding && len(m.stuck) == 0 && (!m.stopped || m.pouring)
}

func (m *Mover) mustDrop() bool {
	return m.cfg.Overflow == DropOldest && !m.stopped && (m.cfg.Dir == "" || m.refused || m.cur.Load().r.Used() >= m.line())
}

// spillFrom cuts a window and has it written to the spill.
func (m *Mover) spillFrom(s *source) bool {
	if s.marks > mostMarks || !m.work.cut(s, m.batch) {
		return false
	}
	m.hand(m.pack(s, nil, toSpill))
	return true
}

// hand gives chunks that are cut and marked to the disk's goroutine.
func (m *Mover) hand(flights []*flight) {
	if len(flights) == 0 {
		return
	}
	m.handing++
	m.disk.do("writing to "+m.cfg.Dir, func() {
		sp, ends, err := m.spillOut(flights)
		m.post(func() { m.spilled(sp, flights, ends, err) })
	})
}

// spillOut writes chunks to the own spill, which is made when it is first needed.
func (m *Mover) spillOut(flights []*flight) (*spill.Spill, []journal.Position, error) {
	sp := m.shelf.spill
	if sp == nil {
		var err error
		if sp, err = m.shelf.folder.Make(m.mainPath, time.Now()); err != nil {
			return nil, nil, err
		}
		m.shelf.spill = sp
	}
	if err := m.shelf.folder.Budget(sp); err != nil {
		return sp, nil, err
	}
	ends, err := sp.Write(chunksOf(flights))
	return sp, ends, err
}

// chunksOf are the chunks of flights.
func chunksOf(flights []*flight) []*forward.Chunk {
	all := make([]*forward.Chunk, len(flights))
	for i, f := range flights {
		all[i] = &f.chunk
	}
	return all
}

// spilled takes note of what the disk's goroutine did: what is on the disk needs its mark no more.
func (m *Mover) spilled(sp *spill.Spill, flights []*flight, ends []journal.Position, err error) {
	m.handing--
	if sp != nil && m.spill == nil {
		m.spill = &backlog{Spill: sp, own: true}
	}
	m.readdress(flights[len(ends):], toSpill)
	for i, p := range ends {
		f := flights[i]
		m.unmark(f)
		m.cfg.fault("unmarked")
		m.spill.entries.push(entry{Entry: spill.Entry{Pos: p, Bytes: f.bytes, Events: uint32(f.chunk.Events)}, win: f.win})
		m.count.spilled.Add(uint64(f.chunk.Events))
		m.release(f)
	}
	if sp != nil {
		m.count.disk.Store(sp.Bytes())
	}
	if err == nil {
		m.trouble = ""
		return
	}
	// What did not fit is the next to go there, before anything else is cut.
	m.stuck = append(m.stuck, flights[len(ends):]...)
	m.refused = true
	m.againAt = time.Now().Add(againAfter)
	if sp != nil && errors.Is(err, journal.ErrFull) && !errors.Is(err, spill.ErrBudget) {
		m.room = sp.Space()
	}
	if now := time.Now(); !errors.Is(err, journal.ErrFull) && !m.stopped && (err.Error() != m.trouble || now.Sub(m.troubleAt) >= troubleEvery) {
		m.trouble, m.troubleAt = err.Error(), now
		m.report(fmt.Errorf("spilling: %w", err))
	}
}

// againAfter is when the spill is tried again that had no room.
const againAfter = time.Second

// troubleEvery is how often it is told that nothing can be spilled, for one reason: it is tried each second, for as long as the destination is away.
const troubleEvery = time.Minute

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

// again tries once more what the spill had no room for.
func (m *Mover) again() {
	if m.refused && !time.Now().Before(m.againAt) {
		m.refused, m.room = false, nil
	}
	if len(m.stuck) > 0 && m.handing == 0 && !m.refused && (!m.stopped || m.pouring) {
		flights := m.stuck
		m.stuck = nil
		m.hand(flights)
	}
}

// dropFrom drops the oldest events that are in nobody's hands: those that the spill had no room for, then those of the ring.
func (m *Mover) dropFrom(s *source) bool {
	if len(m.stuck) > 0 && m.handing == 0 {
		for _, f := range m.stuck {
			m.unmark(f)
			n := uint64(f.chunk.Events)
			m.count.cut.sub(n, f.bytes)
			m.drop(Oldest, n)
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
	m.untell(s, w.last, true)
	m.drop(Oldest, w.taken-w.bad)
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
