// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/ring"
)

const (
	quietFor   = 5 * time.Second  // adopted rings are poured into the spill when the destination has taken nothing for so long
	adoptEvery = 30 * time.Second // so often a running process looks for rings of others that died
)

// pourAdopted moves what dead processes left in memory to the own spill while the destination takes nothing, so that processes that are started and die again and
// again do not fill the memory. What is with the destination stays, and what has to come before a spill that cannot be moved.
func (m *Mover) pourAdopted() {
	if len(m.queue) == 0 || !m.quiet() || !m.canSpill() {
		return
	}
	for i, q := range m.queue {
		switch q := q.(type) {
		case *remnant:
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
		case *spill:
			if m.behind[q] {
				return // what follows must not pass it
			}
		}
	}
	m.queue = slices.DeleteFunc(m.queue, func(q shipper) bool { return q.over(m) })
}

// follow notes that of the queue's i-th something is in the own spill now: what is younger has to wait for that.
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

// adoptAgain looks for rings of processes that died since Open. Not so for a destination with states, which wants to see them all before anything is submitted. Their spills
// come with them; spills alone wait for the next Open, for to look for them would touch the disk.
func (m *Mover) adoptAgain() {
	now := time.Now()
	if m.cfg.Shm == "" || m.stateful || now.Before(m.adoptAt) || !m.scouted || len(m.queue) > 0 || m.sealed || m.stopped {
		return
	}
	m.adoptAt = now.Add(m.cfg.adoptEvery)
	m.scouting = true
	m.disk.do("looking for rings", func() {
		rings := m.adoptRings()
		var spills []*spill
		if len(rings) > 0 && m.cfg.Dir != "" {
			spills = m.scout(rings)
		}
		if !m.post(func() { m.scouting = false; m.found(rings, spills) }) {
			for _, s := range rings {
				_ = s.close(true) // they are as they were
			}
			closeAll(spills)
		}
	})
}

// closeAll leaves spills to the next process.
func closeAll(spills []*spill) {
	for _, sp := range spills {
		_ = sp.j.Close() // it was only read
	}
}

// adoptRings takes over the rings that dead processes of the same identity left. They are read when their spills are known.
func (m *Mover) adoptRings() []*source {
	if m.cfg.Shm == "" {
		return nil
	}
	mine := m.identity()
	rings, err := ring.Adopt(m.cfg.Shm, m.cfg.Name, func(o ring.Owner) bool { return bytes.Equal(o.Identity, mine) }, m.cfg.Diagnostics)
	if err != nil {
		m.report(fmt.Errorf("looking for rings: %w", err))
	}
	var found []*source
	for _, r := range rings {
		s := m.newSource(r, false)
		s.name = filepath.Base(r.Path())
		found = append(found, s)
	}
	return found
}

// found queues what dead processes left. Of each, first what was with its destination, then what it had spilled, which is younger, then
// what it was spilling, then the rest of its ring.
func (m *Mover) found(rings []*source, spills []*spill) {
	ids := map[[idLen]byte]bool{}
	for _, sp := range spills {
		for id := range sp.ids {
			ids[id] = true
		}
		sp.ids = nil
		m.count.spills.Add(1)
		for i := range sp.entries.len() {
			e := sp.entries.at(i)
			m.count.adopted.add(uint64(e.events), e.bytes)
			m.count.cut.add(uint64(e.events), e.bytes)
		}
	}
	// Spills without a ring come in their turn, by age.
	lone := func(before *source) {
		for len(spills) > 0 && (before == nil || spills[0].made.Before(before.r.Owner().Made)) {
			m.queue = append(m.queue, spills[0])
			spills = spills[1:]
		}
	}
	with := map[string]*spill{}
	for _, s := range rings {
		for i, sp := range spills {
			if filepath.Base(sp.dir) == s.name {
				with[s.name], sp.paired = sp, true
				spills = append(spills[:i:i], spills[i+1:]...)
				break
			}
		}
	}
	for _, s := range rings {
		lone(s)
		m.count.rings.Add(1)
		m.inherit(s)
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
	before *spill // holds what is younger
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
func (r *remnant) over(*Mover) bool { return len(r.chunks) == 0 }

// over says that all of a ring is shipped and done that ever will be, and lets go of it.
func (s *source) over(m *Mover) bool {
	if s.fill() || !s.ended || s.out > 0 {
		return false
	}
	if s.own {
		return s.overOwn(m)
	}
	m.state.move()
	// What was counted when the ring was found and could not be read later, and what was unreadable from the beginning, as far as that can be counted.
	if loss := s.r.Lost(); loss.Regions > 0 {
		n := max(loss.Regions, loss.Records)
		m.report(fmt.Errorf("of the adopted ring %s %d bytes in %d places cannot be read: at least %d events are lost", s.name, loss.Bytes, loss.Regions, n))
		m.count.adopted.add(n, 0)
		m.drop(Lost, n)
	}
	if n := s.rest - s.taken.Load(); n > 0 {
		m.count.waiting.sub(n, s.restBytes-s.bytes.Load())
		m.drop(Lost, n)
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
	t := s.totals()
	if n := t.events - s.taken.Load(); n > 0 {
		m.drop(Lost, n)
		m.report(fmt.Errorf("%d events of the ring that failed cannot be read: they are lost", n))
	}
	s.doneTo.Store(1<<64 - 1)
	s.bury()
	m.swap.Lock()
	if err := s.close(false); err != nil {
		m.report(fmt.Errorf("removing the ring that failed: %w", err))
	}
	m.gone.events += t.events
	all := without(*m.own.Load(), s)
	m.own.Store(&all)
	m.swap.Unlock()
	return true
}

func without(all []*source, s *source) []*source {
	var kept []*source
	for _, o := range all {
		if o != s {
			kept = append(kept, o)
		}
	}
	return kept
}

// inherit takes over the drops that a dead process had not told of.
func (m *Mover) inherit(s *source) {
	for i := range int(reasons) {
		n := s.r.Counter(i) - s.r.Counter(toldCounters+i)
		if n == 0 || n > s.r.Counter(i) {
			continue
		}
		m.count.inherited[i].Add(n)
		m.cur.Load().r.Count(i, n)
		s.r.Count(toldCounters+i, n)
		m.count.untold.Store(true)
	}
}

// rebuild makes the chunks again that the dead owner had marked: the same records, in the same order, under the same id. Those that a spill has are in its care. The
// one whose state was stored is done, and so are all that were submitted before it: a destination with states takes chunks in turn, and their marks go later.
func (m *Mover) rebuild(s *source, ids map[[idLen]byte]bool) (older, younger *remnant) {
	older, younger = &remnant{s: s}, &remnant{s: s}
	var done [idLen]byte
	copy(done[:], s.r.State())
	s.label = done
	marks := s.r.Marks()
	slices.SortFunc(marks, func(a, b ring.Mark) int { // as they were submitted
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Lane, b.Lane))
	})
	finished := slices.IndexFunc(marks, func(k ring.Mark) bool {
		k.Label[idLen-1] = toDestination
		return k.Label == done
	})
	chunks := make([]*flight, 0, len(marks))
	to := make([]*remnant, 0, len(marks))
	for i, k := range marks {
		where := older
		if k.Label[idLen-1] == toSpill {
			k.Label[idLen-1], where = toDestination, younger
		}
		if i <= finished || ids[k.Label] {
			s.r.Clear(k.Slot)
			continue
		}
		f := m.newFlight()
		f.id = k.Label
		f.chunk = forward.Chunk{ID: f.id[:], Own: true}
		f.src, f.slot, f.first, f.last, f.lane = s, k.Slot, k.First, k.Last, k.Lane
		chunks, to = append(chunks, f), append(to, where)
	}
	cut := s.r.CutKey()
	s.r.Rewind()
	var buf []byte
	for {
		rec, ok, _ := s.r.Next() // what cannot be read is counted by Lost
		if !ok {
			break
		}
		if rec.Key > cut {
			s.rest++
			s.restBytes += uint64(len(rec.Data))
			continue
		}
		var err error
		if buf, err = s.r.Copy(buf[:0], rec); err != nil {
			continue
		}
		from, to := tagEnd(buf)
		if to == 0 {
			continue
		}
		if f := owned(chunks, rec, buf[from:to]); f != nil {
			f.chunk.Entries = appendEntry(f.chunk.Entries, rec.Time, buf[to:])
			f.chunk.Events++
			f.bytes += uint64(len(buf))
		}
	}
	s.r.Rewind()
	s.ended, s.cutTo = false, cut
	for i, f := range chunks {
		if f.chunk.Events == 0 {
			s.r.Clear(f.slot) // nothing of it is left
			continue
		}
		n := uint64(f.chunk.Events)
		m.count.adopted.add(n, f.bytes)
		m.count.cut.add(n, f.bytes)
		to[i].chunks = append(to[i].chunks, f)
		s.out++
		s.marks++
	}
	m.count.adopted.add(s.rest, s.restBytes)
	m.count.waiting.add(s.rest, s.restBytes)
	return older, younger
}

// owned is the chunk that a record belongs to, nil when it is done. A chunk's tag is that of its first record; should this one be unreadable, that of the first record which
// no other chunk can claim.
func owned(chunks []*flight, rec ring.Record, tag []byte) *flight {
	var open *flight
	for _, f := range chunks {
		if rec.Key < f.first || rec.Key > f.last {
			continue
		}
		switch {
		case f.chunk.Events > 0:
			if f.chunk.Tag == string(tag) {
				return f
			}
		case rec.Key == f.first && rec.Lane == f.lane:
			f.chunk.Tag = string(tag)
			return f
		case rec.Key > f.first && open == nil:
			open = f
		}
	}
	if open != nil {
		open.chunk.Tag = string(tag)
	}
	return open
}
