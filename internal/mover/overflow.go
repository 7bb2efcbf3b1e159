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

// overflow makes room in the ring while its records cannot be shipped: they go to the spill, or,
// with DropOldest and no spill that takes them, nowhere.
func (m *Mover) overflow() {
	for {
		fate := m.circumstances().fate()
		s := m.full()
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

// full is the first own ring that has records to be taken.
func (m *Mover) full() *source {
	for _, s := range *m.own.Load() {
		if s.fill() {
			return s
		}
	}
	return nil
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
	m.denied = err != nil
	if sp != nil && m.spill == nil {
		m.spill = &backlog{Spill: sp, own: true, origin: &m.state.own}
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
	if now := time.Now(); !errors.Is(err, journal.ErrFull) && m.phase < stopped && (err.Error() != m.trouble || now.Sub(m.troubleAt) >= troubleEvery) {
		m.trouble, m.troubleAt = err.Error(), now
		m.report(fmt.Errorf("spilling: %w", err))
	}
}

// againAfter is when the spill is tried again that had no room.
const againAfter = time.Second

// troubleEvery is how often it is told that nothing can be spilled, for one reason: it is tried
// each second, for as long as the destination is away.
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
	if len(m.stuck) > 0 && m.handing == 0 && !m.refused && m.phase != stopped {
		flights := m.stuck
		m.stuck = nil
		m.hand(flights)
	}
}

// dropFrom drops the oldest events that are in nobody's hands: those that the spill had no room
// for, then those of the ring.
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
