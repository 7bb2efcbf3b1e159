// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/ring"
)

// pourAdopted moves what dead processes left in memory to the own spill while the destination takes
// nothing, so that processes that are started and die again and again do not fill the memory. What
// is with the destination stays, and what has to come before a spill that cannot be moved.
func (m *Mover) pourAdopted() {
	if len(m.queue) == 0 || !m.quiet() || !m.basics().spillable() {
		return
	}
	for i, q := range m.queue {
		switch q := q.(type) {
		case *remnant:
			if q.shown && m.sourced != nil {
				continue // where its lines may be written already, only its own states know
			}
			if len(q.chunks) > 0 && (q.before == nil || q.before.entries.len() == 0) {
				chunks := q.chunks
				q.chunks = nil
				m.follow(i)
				m.hand(chunks)
				return
			}
		case *source:
			if m.spillFrom(q) {
				m.follow(i)
				return
			}
		case *backlog:
			if m.behind[q] {
				return // what follows must not pass it
			}
		}
	}
	m.queue = slices.DeleteFunc(m.queue, func(q shipper) bool { return q.over(m) })
}

// follow notes that of the queue's i-th something is in the own spill now: what is younger has to
// wait for that.
func (m *Mover) follow(i int) {
	if !m.mixed {
		m.mixed, m.behind = true, map[shipper]bool{}
	}
	for _, q := range m.queue[i:] {
		m.behind[q] = true
	}
}

// unmix forgets that once the own spill is empty.
func (m *Mover) unmix() {
	if m.handing == 0 && len(m.stuck) == 0 && (m.spill == nil || m.spill.entries.len() == 0) {
		m.mixed, m.behind = false, nil
	}
}

// quiet says that the destination has chunks and has taken none for a while.
func (m *Mover) quiet() bool {
	return m.cfg.Dir != "" && m.inFlight > 0 && time.Since(m.landedAt) >= m.cfg.quiet
}

// adoptAgain looks for rings of processes that died since Open. Not so for a destination with
// states, which wants to see them all before anything is submitted. Their spills come with them;
// spills alone wait for the next Open, for to look for them would touch the disk.
func (m *Mover) adoptAgain() {
	now := time.Now()
	if m.cfg.Shm == "" || m.resumer != nil || now.Before(m.adoptAt) || !m.scouted || len(m.queue) > 0 || m.phase >= sealed {
		return
	}
	m.adoptAt = now.Add(m.cfg.adoptEvery)
	m.scouting = true
	m.disk.do("looking for rings", func() {
		rings := m.adoptRings()
		var spills []*spill.Spill
		if len(rings) > 0 && m.cfg.Dir != "" {
			spills = m.scout(rings)
		}
		if !m.mail.post(func() { m.scouting = false; m.found(rings, spills) }) {
			for _, s := range rings {
				_ = s.close(true) // they are as they were
			}
			closeAll(spills)
		}
	})
}

// closeAll leaves spills to the next process.
func closeAll(spills []*spill.Spill) {
	for _, sp := range spills {
		_ = sp.Close() // it was only read
	}
}

// adoptRings takes over the rings that dead processes of the same identity left. They are read when
// their spills are known.
func (m *Mover) adoptRings() []*source {
	if m.cfg.Shm == "" {
		return nil
	}
	mine := m.cfg.identity()
	rings, err := ring.Adopt(m.cfg.Shm, m.cfg.Name, func(o ring.Owner) bool { return bytes.Equal(o.Identity, mine) }, m.cfg.Diagnostics)
	if err != nil {
		m.report(fmt.Errorf("looking for rings: %w", err))
	}
	var found []*source
	for _, r := range rings {
		s := &source{r: r, origin: &m.rings.origin, name: filepath.Base(r.Path())}
		if m.sourced != nil {
			s.origin = &origin{ring: s}
		}
		found = append(found, s)
	}
	return found
}

// scout finds the spills of dead processes. Only on the disk's goroutine.
func (m *Mover) scout(rings []*source) []*spill.Spill {
	var names []string
	for _, s := range rings {
		names = append(names, s.name)
	}
	return m.shelf.folder.Scout(names)
}

// found queues what dead processes left. Of each, first what was with its destination, then what it
// had spilled, which is younger, then what it was spilling, then the rest of its ring.
func (m *Mover) found(rings []*source, all []*spill.Spill) {
	spills := m.backlogs(all)
	ids := map[[idLen]byte]bool{}
	for _, sp := range spills {
		for id := range sp.IDs {
			ids[id] = true
		}
		sp.IDs = nil
		m.count.spillsFound.Add(1)
		for i := range sp.entries.len() {
			e := sp.entries.at(i)
			m.count.adopted.add(uint64(e.Events), e.Bytes)
			m.count.cut.add(uint64(e.Events), e.Bytes)
		}
	}
	// Spills without a ring come in their turn, by age.
	lone := func(before *source) {
		for len(spills) > 0 && (before == nil || spills[0].Made.Before(before.r.Owner().Made)) {
			m.queue = append(m.queue, spills[0])
			spills = spills[1:]
		}
	}
	with := map[string]*backlog{}
	for _, s := range rings {
		for i, sp := range spills {
			if filepath.Base(sp.Dir) == s.name {
				with[s.name], sp.Paired = sp, true
				spills = append(spills[:i:i], spills[i+1:]...)
				break
			}
		}
	}
	for _, s := range rings {
		lone(s)
		m.count.ringsFound.Add(1)
		m.count.inherit(s)
		older, younger := m.rebuild(s, ids)
		m.queue = append(m.queue, older)
		if sp := with[s.name]; sp != nil {
			older.before = sp
			m.queue = append(m.queue, sp)
		}
		m.queue = append(m.queue, younger, s)
	}
	lone(nil)
	for _, s := range rings {
		m.adopted = append(without(m.adopted, s), s) // start may have noted it
	}
	m.scouted = true
}

// A remnant is chunks of an adopted ring that its owner had cut.
type remnant struct {
	s      *source
	chunks []*flight
	before *backlog // holds what is younger
	shown  bool     // the destination has had them, perhaps
}

func (r *remnant) ship(m *Mover) bool {
	if len(r.chunks) == 0 {
		return false
	}
	f := r.chunks[0]
	r.chunks = r.chunks[1:]
	m.submit(f)
	return true
}

// over: the next in the queue waits anyway until nothing is with the destination.
func (r *remnant) over(*Mover) bool { return r.sent() }
func (r *remnant) sent() bool       { return len(r.chunks) == 0 }

func (s *source) sent() bool { return !s.fill() && s.ended }

// over says that all of a ring is shipped and done that ever will be, and lets go of it.
func (s *source) over(m *Mover) bool {
	if s.fill() || !s.ended || s.out > 0 {
		return false
	}
	if s.own {
		return s.overOwn(m)
	}
	m.state.ringGoes(s.origin)
	// What was counted when the ring was found and could not be read later, and what was unreadable
	// from the beginning, as far as that can be counted.
	if loss := s.r.Lost(); loss.Regions > 0 {
		n := max(loss.Regions, loss.Records)
		m.report(fmt.Errorf("of the adopted ring %s %d bytes in %d places cannot be read: at least %d events are lost", s.name, loss.Bytes, loss.Regions, n))
		m.count.adopted.add(n, 0)
		m.count.drop(Lost, n)
	}
	if n := s.rest - s.taken.Load(); n > 0 {
		m.count.waiting.sub(n, s.restBytes-s.bytes.Load())
		m.count.drop(Lost, n)
	}
	if err := s.close(false); err != nil {
		m.report(fmt.Errorf("removing an adopted ring: %w", err))
	}
	m.adopted = without(m.adopted, s)
	return true
}

// overOwn lets go of a ring that failed: what it had and nobody could read is lost.
func (s *source) overOwn(m *Mover) bool {
	s.settle()
	if s.lines.len() > 0 {
		return false
	}
	m.loseUnread(s)
	s.doneTo.Store(1<<64 - 1)
	s.bury()
	m.rings.drop(s)
	return true
}

// loseUnread counts what nobody can read any more of an own ring that failed. What comes next gets
// another ring, also when no call has met the failure yet.
func (m *Mover) loseUnread(s *source) {
	if !s.ended || s.fill() || s.counted {
		return
	}
	s.counted = true
	m.rings.replace(s)
	t := s.totals()
	n := t.events - s.taken.Load()
	if n == 0 {
		return
	}
	s.taken.Add(n)
	s.bytes.Store(t.bytes)
	m.count.drop(Lost, n)
	s.answerTo(s.cutTo+1, 1<<64-1, ErrDropped)
	m.report(fmt.Errorf("%d events of the ring that failed cannot be read: they are lost", n))
}
