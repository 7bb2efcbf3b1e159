// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

const (
	idLen      = 24      // of a chunk id of ours, and of a mark's label
	mostPooled = 8 << 20 // bytes of buffers kept
	newBuffer  = 4 << 10
)

// A flight is a chunk from the cut to what becomes of it. It comes from a ring (src, with slot the
// mark that covers it), or from a spill (from, with seq its entry). One of a ring may be in the own
// spill as well (twin, with seq its entry), or may get there yet (hand).
type flight struct {
	m      *Mover
	chunk  forward.Chunk
	id     [idLen]byte
	bytes  uint64 // of the payloads
	src    *source
	slot   int  // -1: no mark
	to     byte // the mark's last character
	first  uint64
	last   uint64
	lane   uint16
	under  *sequence // whose mark covers it in place of one of its own
	win    *window
	from   *backlog
	twin   *backlog
	seq    uint64
	pos    journal.Position
	hand   *handover
	handAt int  // in its flights
	flying bool // the destination has it, or gave it up
	lent   bool // a disk that hangs may read its entries
	res    output.Result
	kept   uint64              // events that the destination refuses, and that are dead letters
	landed func(output.Result) // made once
}

func (m *Mover) newFlight() *flight {
	if n := len(m.free); n > 0 {
		f := m.free[n-1]
		m.free = m.free[:n-1]
		return f
	}
	f := &flight{m: m}
	f.landed = f.land
	return f
}

// land is what the destination calls. A state is stored before it returns: the destination counts
// on that. Chunks whose state comes with a later one wait for that, or their marks could go while
// the state that whoever adopts the ring finds is still the one before them.
func (f *flight) land(r output.Result) {
	if d := &f.m.dead; d.keeps(&r) {
		d.keep(f, r)
		return
	}
	f.touchDown(r)
}

// touchDown is the end of land: the chunk needs nothing more.
func (f *flight) touchDown(r output.Result) {
	m := f.m
	stored := r.State != nil && r.Err == nil
	if stored {
		m.state.keep(f, r.State)
		m.cfg.fault("stored")
	}
	r.State = nil
	f.res = r
	m.inbox.Lock()
	switch {
	case m.inbox.closed:
	case m.resumer != nil && !stored && r.Err == nil && !r.HandedOver: // a later one brings it
		m.inbox.more = append(m.inbox.more, f)
		m.inbox.Unlock()
		return
	case stored:
		m.inbox.done = append(append(m.inbox.done, m.inbox.more...), f)
		clear(m.inbox.more)
		m.inbox.more = m.inbox.more[:0]
	default:
		m.inbox.done = append(m.inbox.done, f)
	}
	m.inbox.Unlock()
	m.mail.wake()
}

// buffer is an empty one for entries.
func (m *Mover) buffer() []byte {
	if n := len(m.buffers); n > 0 {
		b := m.buffers[n-1]
		m.buffers = m.buffers[:n-1]
		m.pooled -= cap(b)
		return b
	}
	return make([]byte, 0, newBuffer)
}

func (m *Mover) giveBuffer(b []byte) {
	if m.pooled+cap(b) <= mostPooled {
		m.pooled += cap(b)
		m.buffers = append(m.buffers, b[:0])
	}
}

// release gives a flight's memory back.
func (m *Mover) release(f *flight) {
	if f.under == nil && !f.lent {
		m.giveBuffer(f.chunk.Entries)
	}
	fn := f.landed
	*f = flight{m: m, landed: fn}
	if len(m.free) < 64 || m.cfg.Ordered && len(m.free) < mostFlying {
		m.free = append(m.free, f)
	}
}

// pack makes flights of what was cut from s, each with its mark in the ring, and only then moves
// the ring's cut.
func (m *Mover) pack(s *source, flights []*flight, to byte) []*flight {
	w := &m.work
	win := &window{s: s, first: w.first, last: w.last}
	events, bytes := uint64(0), uint64(0)
	at := 0
	for i := range w.n {
		p := &w.parts[i]
		entries := p.entries
		if p.events == 0 { // its first record could not be read
			if entries != nil {
				m.giveBuffer(entries)
			}
			p.entries = nil
			continue
		}
		if m.cfg.Ordered {
			entries = w.entries[at:p.end:p.end]
			at = p.end
		}
		f := m.newFlight()
		f.chunk = forward.Chunk{Tag: p.tag, ID: f.id[:], Entries: entries, Events: p.events, Own: true}
		f.src, f.win, f.bytes = s, win, p.bytes
		f.first, f.last, f.lane = p.first, p.last, p.lane
		p.entries = nil
		win.left++
		s.out++
		events += uint64(p.events)
		bytes += p.bytes
		flights = append(flights, f)
	}
	m.markAll(flights, to)
	m.cfg.fault("marked")
	m.count.untell(s, w.last, false)
	if s.own {
		s.lines.push(win)
	}
	m.took(s, events, bytes)
	s.r.Cut(w.last)
	m.cfg.fault("cut")
	return flights
}

// A mark's label is the chunk's id; its last byte, which is always '=' in an id, says where the
// chunk is to go. What goes to the spill is younger than what is there, and what goes to the
// destination older: whoever adopts the ring has to know. With the last two the mark is for all
// records of a window, and the id is that of its first run.
const (
	toDestination     = '='
	toSpill           = '>'
	runsToDestination = 'D'
	runsToSpill       = 'S'
)

// toRuns is what a sequence has in place of toDestination and toSpill.
func toRuns(to byte) byte {
	if to == toSpill {
		return runsToSpill
	}
	return runsToDestination
}

// markAll gives the chunks of a window, which are all flights, their ids and puts marks.
func (m *Mover) markAll(flights []*flight, to byte) {
	if !m.cfg.Ordered {
		for _, f := range flights {
			forward.AppendID(f.id[:0])
			if !m.mark(f, to) {
				f.slot = -1
			}
		}
		return
	}
	if len(flights) == 0 {
		return
	}
	nameRuns(flights)
	m.cover(flights, nil, toRuns(to))
	flights[0].under.entries = m.work.entries
	m.work.entries = nil
}

// mark covers a chunk's records in the ring it came from. The table has room for all that may be
// cut (mostMarks); should more than four lanes have written in the same nanosecond, under seventeen
// tags and more, the last ones go without: a crash loses them.
func (m *Mover) mark(f *flight, to byte) bool {
	label := f.id
	label[idLen-1] = to
	slot, ok := f.src.r.Put(ring.Mark{First: f.first, Last: f.last, Lane: f.lane, Label: label})
	if ok {
		f.slot, f.to = slot, to
		f.src.marks++
	}
	return ok
}

// younger says that the mark of a chunk has it behind what is in the spill.
func (f *flight) younger() bool {
	if f.under != nil {
		return f.under.to == runsToSpill
	}
	return f.to == toSpill
}

// unmark says that a chunk is no longer in its ring's care.
func (m *Mover) unmark(f *flight) {
	if f.src == nil {
		return
	}
	f.src.out--
	switch {
	case f.under != nil:
		m.uncover(f.under)
	case f.slot >= 0:
		f.src.r.Clear(f.slot)
		f.src.marks--
		f.slot = -1
	}
}

// took accounts for what was cut from a source: so many events of it, with so many bytes, are in
// our hands now.
func (m *Mover) took(s *source, events, bytes uint64) {
	w := &m.work
	m.count.cut.add(events, bytes)
	if w.bad > 0 {
		m.overwritten(s, w.bad)
	}
	s.taken.Add(w.taken)
	s.bytes.Add(w.bytes)
	if !s.own {
		m.count.waiting.sub(w.taken, w.bytes)
	}
	s.cutTo = w.last
}

// overwritten counts records of a ring that are none any more.
func (m *Mover) overwritten(s *source, n uint64) {
	m.count.drop(Lost, n)
	where := s.r.Path()
	if where == "" {
		where = "in plain memory"
	}
	m.report(fmt.Errorf("%d events of the ring %s were overwritten there, or cannot be read: they are lost", n, where))
}

// submit hands a flight to the destination.
func (m *Mover) submit(f *flight) {
	if m.inFlight == 0 {
		m.landedAt = time.Now()
	}
	m.inFlight++
	f.flying = true
	if q := f.under; q != nil {
		if q.flying++; q.flying == 1 {
			m.inWindows++
		}
	}
	m.inBytes += int64(len(f.chunk.Entries))
	m.count.inFlight.Store(int64(m.inFlight))
	if m.sourced != nil {
		m.sourced.SubmitFrom(f.origin().index, &f.chunk, f.landed)
		return
	}
	m.cfg.Destination.Submit(&f.chunk, f.landed)
}

// origin is the process whose chunk it is.
func (f *flight) origin() *origin {
	if f.from != nil {
		return f.from.origin
	}
	return f.src.origin
}

// rejected accounts for the events that the destination refuses for good, and tells the first
// reason. What is no dead letter is lost.
func (m *Mover) rejected(f *flight) uint64 {
	n := uint64(0)
	for _, r := range output.Refusals(f.res.Rejected, f.chunk.Events) {
		n += uint64(len(r.Entries))
	}
	if n == 0 {
		return 0
	}
	m.count.letters.Add(f.kept)
	fate := "which are lost"
	if lost := n - f.kept; lost > 0 {
		m.count.drop(Lost, lost)
		if f.kept > 0 {
			fate = fmt.Sprintf("of which %d are lost, and the others are dead letters in %s", lost, m.dead.dir())
		}
	} else {
		fate = "which are dead letters in " + m.dead.dir()
	}
	m.report(fmt.Errorf("the destination refuses %d events of %s for good, %s: %w", n, f.chunk.Tag, fate, f.res.Rejected[0].Err))
	return n
}

// landing takes a flight back from the destination.
func (m *Mover) landing(f *flight, now time.Time) {
	m.inFlight--
	if q := f.under; q != nil {
		if q.flying--; q.flying == 0 {
			m.inWindows--
		}
	}
	m.inBytes -= int64(len(f.chunk.Entries))
	m.count.inFlight.Store(int64(m.inFlight))
	if f.res.Err != nil {
		m.given = append(m.given, f)
		return
	}
	m.landedAt = now
	m.count.cut.sub(uint64(f.chunk.Events), f.bytes)
	n := uint64(f.chunk.Events) - m.rejected(f)
	if f.res.HandedOver {
		m.count.handedOver.Add(n)
	} else {
		m.count.delivered.Add(n)
	}
	if f.res.MaybeRepeated {
		m.count.repeated.Add(n)
	}
	if n > 0 && !f.res.HandedOver && m.cfg.Delivered != nil {
		m.cfg.Delivered(&f.chunk)
	}
	m.cfg.fault("delivered")
	f.leaveSpill()
	m.unmark(f)
	m.cfg.fault("cleared")
	if f.from != nil {
		f.from.doneWith(f.seq)
	}
	if f.win != nil {
		f.win.left--
	}
	m.release(f)
}
