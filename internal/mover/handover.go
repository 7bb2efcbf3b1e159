// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/journal"
)

// A handover is chunks that the disk's goroutine is to put into the own spill. Until they are known
// to be stored they stay flights, under their marks:
//
//	       stored               the flight ends, and its entry is read when its turn comes
//	hand ─────────────────────► spilled
//	 ▲ │   no room, or an error                   the flight is stuck: it is handed over again, or goes to
//	 │ ├───────────────────────► spilled          the destination when that has all that is older. If it was
//	 └─│───────────────────────────┘              appended, its entry is loose: maybe it is stored
//	   │   the disk hangs
//	   └───────────────────────► late             the same; what comes of it counts when the disk is back
//
// The disk's goroutine has copies of the chunks. So a flight can end at any time; but the memory of
// entries is not used again that a disk which hangs may read.
type handover struct {
	flights []*flight // nil: ended
	chunks  []forward.Chunk
	ids     [][idLen]byte
	to      *spill.Spill       // the own spill as the loop knew it; nil: none
	at      []journal.Position // in it; 0: not appended
	known   []bool             // an earlier handover appended it
	loose   journal.Position   // the end of what was appended before and may not be stored
	late    bool
}

// How soon the disk is tried again: an error may be over soon; what lasts is no room.
const (
	againSoon  = 100 * time.Millisecond
	againAfter = time.Second
)

// troubleEvery is how often it is told that nothing can be spilled, or read, for one reason.
const troubleEvery = time.Minute

// hand gives chunks that are cut and marked to the disk's goroutine.
func (m *Mover) hand(flights []*flight) {
	n := len(flights)
	h := &handover{
		flights: flights, chunks: make([]forward.Chunk, n), ids: make([][idLen]byte, n),
		at: make([]journal.Position, n), known: make([]bool, n),
	}
	for i, f := range flights {
		h.chunks[i], h.ids[i], h.at[i], h.known[i] = f.chunk, f.id, f.pos, f.twin != nil
		h.chunks[i].ID = h.ids[i][:]
		f.hand, f.handAt = h, i
	}
	if m.spill != nil {
		h.to, h.loose = m.spill.Spill, m.spill.looseTo()
	}
	if n == 0 && h.loose == 0 {
		return
	}
	m.handing++
	m.handed = h
	m.disk.do("writing to "+m.cfg.Dir, func() {
		sp, stored, err := m.spillOut(h)
		all, some := m.removed(sp)
		m.mail.post(func() { m.spilled(h, sp, stored && !some, err, all, some) })
	})
}

// removed says what somebody removed of a spill, which may be nil. Only on the disk's goroutine.
func (m *Mover) removed(sp *spill.Spill) (all, some bool) {
	if sp == nil {
		return false, false
	}
	if all, some = sp.Removed(); some && m.shelf.spill == sp {
		m.shelf.spill = nil // what is spilled next makes another
	}
	if all {
		sp.Forget()
	}
	return all, some
}

// spillOut writes chunks to the own spill, which is made when it is first needed. stored: all that
// was appended to it is.
func (m *Mover) spillOut(h *handover) (sp *spill.Spill, stored bool, err error) {
	m.cfg.fault("spilling")
	if sp = m.shelf.spill; sp != h.to { // that is gone
		clear(h.at)
		clear(h.known)
		h.loose = 0
	}
	if sp == nil {
		if sp, err = m.shelf.folder.Make(m.rings.path, time.Now()); err != nil {
			return nil, false, err
		}
		m.shelf.spill = sp
	}
	if err = m.shelf.folder.Budget(sp); err == nil {
		err = sp.Append(h.chunks, h.at)
	}
	to := h.loose
	for _, p := range h.at {
		to = max(to, p)
	}
	if ferr := sp.Flush(to); ferr != nil {
		return sp, false, ferr
	}
	return sp, true, err
}

// spilled takes note of what the disk's goroutine did: what is on the disk needs its mark no more.
func (m *Mover) spilled(h *handover, sp *spill.Spill, stored bool, err error, all, some bool) {
	m.handing--
	m.handed = nil
	if sp != nil && m.spill == nil {
		m.spill = &backlog{Spill: sp, own: true, origin: &m.rings.origin}
	}
	if some {
		m.retire(all)
	} else if stored {
		m.spill.flushed()
	}
	var done, left []*flight
	for i, f := range h.flights {
		appended := h.at[i] != 0 && !some
		if f != nil {
			f.hand = nil
		}
		if appended && !h.known[i] {
			m.spill.note(f, h, i, stored)
		}
		switch {
		case f == nil || f.flying:
		case appended && stored:
			done = append(done, f)
		default:
			left = append(left, f)
		}
	}
	if h.late {
		m.stuck = slices.DeleteFunc(m.stuck, func(f *flight) bool { return slices.Contains(done, f) })
	} else {
		m.readdress(left, toSpill)
		m.stuck = append(m.stuck, left...) // the next to go there, before anything else is cut
	}
	for _, f := range done {
		m.unmark(f)
		m.cfg.fault("unmarked")
		m.spill.rests(f)
		m.count.spilled.Add(uint64(f.chunk.Events))
		m.release(f)
	}
	if m.spill != nil {
		m.count.disk.Store(m.spill.Bytes())
	}
	m.refuse(sp, err, some)
}

// refuse notes whether the disk takes anything now.
func (m *Mover) refuse(sp *spill.Spill, err error, some bool) {
	now := time.Now()
	switch {
	case err == nil, some: // a new spill is begun, then
		m.trouble, m.failing = "", time.Time{}
		m.why.Store(nil)
		return
	}
	full := errors.Is(err, journal.ErrFull)
	if m.failing.IsZero() {
		m.failing = now
	}
	m.refused = true
	m.lasting = full || sp == nil || now.Sub(m.failing) >= m.cfg.diskPatience
	m.againAt = now.Add(againSoon)
	if m.lasting {
		m.againAt = now.Add(againAfter)
		m.noRoom(err)
	}
	if sp != nil && full && !errors.Is(err, spill.ErrBudget) {
		m.room = sp.Space()
	}
	if !full && m.phase < stopped && (err.Error() != m.trouble || now.Sub(m.troubleAt) >= troubleEvery) {
		m.trouble, m.troubleAt = err.Error(), now
		m.report(fmt.Errorf("spilling: %w", err))
	}
}

// watch looks whether the disk hangs. What it was given is stuck then, and so goes to the
// destination when that takes something.
func (m *Mover) watch() {
	job, since := m.disk.doing()
	hangs := job != "" && time.Since(since) >= m.cfg.diskPatience
	switch {
	case hangs && !m.stalled:
		err := fmt.Errorf("the disk hangs: %s, for %v", job, m.cfg.diskPatience)
		m.report(fmt.Errorf("%w; what is in memory goes to the destination meanwhile", err))
		m.noRoom(err)
	case !hangs && m.stalled:
		m.report(fmt.Errorf("the disk of %s no longer hangs", m.cfg.Dir))
		m.why.Store(nil)
	}
	m.stalled = hangs
	h := m.handed
	if !hangs || h == nil || h.late {
		return
	}
	h.late = true
	for _, f := range h.flights {
		f.lent = true
		if f.under != nil {
			f.under.lent = true
		}
	}
	m.stuck = append(slices.Clone(h.flights), m.stuck...)
}

// inHand says that chunks are with the disk's goroutine which what is younger must not pass.
func (m *Mover) inHand() bool {
	return m.handing > 0 && (m.handed == nil || !m.handed.late && len(m.handed.flights) > 0)
}

// leaveSpill ends what a flight has with a spill that got it, or may get it yet: it is delivered or
// dropped from memory.
func (f *flight) leaveSpill() {
	if h := f.hand; h != nil {
		h.flights[f.handAt], f.hand = nil, nil
	}
	if sp := f.twin; sp != nil {
		f.twin = nil
		sp.doneWith(f.seq)
	}
}

// retire takes the own spill out of use, as somebody removed it, or the file that is written to.
// What can be read of it is shipped before all that is younger.
func (m *Mover) retire(all bool) {
	sp := m.spill
	m.spill, sp.own = nil, false
	for i := range sp.entries.len() {
		if e := sp.entries.at(i); e.f != nil {
			e.f.twin, e.f.pos = nil, 0
			e.f, e.done = nil, true
		}
		sp.entries.at(i).loose = false
	}
	at := slices.IndexFunc(m.queue, func(q shipper) bool { return m.behind[q] })
	if at < 0 {
		at = len(m.queue)
	}
	m.queue = slices.Insert(m.queue, at, shipper(sp))
	m.count.disk.Store(0)
	if all {
		sp.vanish(m)
	}
}
