// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/journal"
)

const (
	mostHanding = 1 // windows with the disk's goroutine: what one was refused must come before the next
	leastAhead  = 4 // chunks read ahead of the destination,
	mostAhead   = mostRuns
	aheadBytes  = 256 << 10 // or as many as have so many bytes
)

// A backlog is a spill as the loop sees it: a list of what is in it, to be shipped from its
// beginning. This process's own is appended to as well. Reading and writing is done by the disk's
// goroutine.
type backlog struct {
	*spill.Spill
	own     bool
	origin  *origin
	entries queue[entry] // all that is not known to be done, in the order of positions
	first   uint64       // number of the first of entries
	next    int          // of entries: before it they are with the destination, done, in ahead, or a flight of their own
	live    int          // of entries: neither done nor a flight of their own
	ahead   []*flight    // read, to be submitted
	reading bool
	commits bool // a commit is under way
	doneTo  journal.Position
	tried   journal.Position // of the last commit begun
	gone    atomic.Bool      // somebody removed it: what was not read is lost
	keeping atomic.Bool      // a destination's state is being stored

	broken    bool      // it cannot be read now, and what is younger does not wait for it
	failing   time.Time // since when
	againAt   time.Time
	trouble   string // as told last
	troubleAt time.Time
}

// An entry is a chunk in a spill.
type entry struct {
	spill.Entry
	win   *window // that it was cut in, nil for an adopted one
	done  bool
	loose bool    // appended, and not known to be stored
	f     *flight // that is in memory as well, and counts
}

// backlogs are those of spills that were found.
func (m *Mover) backlogs(spills []*spill.Spill) []*backlog {
	var all []*backlog
	for _, sp := range spills {
		b := &backlog{Spill: sp, origin: cmp.Or(m.state.ofSpill[sp], &m.rings.origin)}
		for _, e := range sp.Found {
			b.push(entry{Entry: e})
		}
		sp.Found = nil
		all = append(all, b)
	}
	return all
}

func (sp *backlog) push(e entry) {
	if !e.done && e.f == nil {
		sp.live++
	}
	sp.entries.push(e)
}

// note adds what a handover appended. f is nil if its flight has ended meanwhile.
func (sp *backlog) note(f *flight, h *handover, i int, stored bool) {
	c := &h.chunks[i]
	e := entry{Entry: spill.Entry{Pos: h.at[i], Bytes: uint64(len(c.Entries)), Events: uint32(c.Events)}, done: f == nil, loose: !stored, f: f}
	if f != nil {
		e.Bytes, e.win = f.bytes, f.win
		f.twin, f.pos, f.seq = sp, h.at[i], sp.first+uint64(sp.entries.len())
	}
	sp.push(e)
}

// rests says that a flight is over and its entry counts.
func (sp *backlog) rests(f *flight) {
	sp.entries.at(int(f.seq - sp.first)).f = nil
	sp.live++
}

// looseTo is the end of what was appended and may not be stored, 0 if there is no such.
func (sp *backlog) looseTo() journal.Position {
	if n := sp.entries.len(); n > 0 && sp.entries.at(n-1).loose {
		return sp.entries.at(n - 1).Pos
	}
	return 0
}

// flushed says that all that was appended is stored.
func (sp *backlog) flushed() {
	for i := sp.entries.len() - 1; i >= 0 && sp.entries.at(i).loose; i-- {
		sp.entries.at(i).loose = false
	}
}

// doneWith notes that the chunk of the entry of that number is done.
func (sp *backlog) doneWith(seq uint64) {
	e := sp.entries.at(int(seq - sp.first))
	if e.f == nil {
		sp.live--
	}
	e.f, e.done = nil, true
	sp.pop()
}

// pop forgets entries that are done, once the reader has passed them.
func (sp *backlog) pop() {
	for sp.next > 0 && sp.entries.len() > 0 && sp.entries.front().done {
		sp.doneTo = sp.entries.front().Pos
		sp.entries.pop()
		sp.first++
		sp.next--
	}
}

// ship submits the next chunk, or sees to it that there will be one.
func (sp *backlog) ship(m *Mover) bool {
	sp.advance(m)
	if len(sp.ahead) > 0 {
		f := sp.ahead[0]
		sp.ahead = sp.ahead[1:]
		m.submit(f)
		return true
	}
	if !sp.broken {
		sp.read(m)
	}
	return false
}

// ships says that the own spill has something that is older than what is in memory, and can be had.
func (sp *backlog) ships(m *Mover) bool {
	return sp.live > 0 && (len(sp.ahead) > 0 || !sp.broken && !m.stalled) && (!sp.sent() || !m.stands())
}

func (sp *backlog) sent() bool { return len(sp.ahead) == 0 && sp.next == sp.entries.len() }

// empty says that nothing in the spill matters any more.
func (sp *backlog) empty() bool {
	for i := range sp.entries.len() {
		if !sp.entries.at(i).done {
			return false
		}
	}
	return true
}

// over says that an adopted spill is empty, and has it removed.
func (sp *backlog) over(m *Mover) bool {
	if sp.broken && len(sp.ahead) == 0 {
		// Nothing more can be had of it now. It comes back when something can.
		if m.inFlight > 0 && m.active == shipper(sp) {
			return false
		}
		m.stranded = append(m.stranded, sp)
		return true
	}
	if sp.entries.len() > 0 {
		return false
	}
	m.state.spillGoes(sp.origin)
	if !sp.gone.Load() {
		m.remove(sp)
	}
	return true
}

// again reads what could not be read before, and goes over what need not be.
func (sp *backlog) again(m *Mover, now time.Time) {
	if sp.broken && now.Before(sp.againAt) || !sp.broken && (sp.live > 0 || sp.entries.len() == 0) || m.phase >= stopped {
		return
	}
	sp.againAt = now.Add(againAfter)
	sp.advance(m)
	sp.read(m)
}

// read has the next chunks read.
func (sp *backlog) read(m *Mover) {
	var want []journal.Position
	size := uint64(0)
	for i := sp.next; i < sp.entries.len() && (len(want) < leastAhead || len(want) < mostAhead && size < aheadBytes); i++ {
		e := sp.entries.at(i)
		if e.loose {
			break
		}
		want = append(want, e.Pos)
		size += e.Bytes
	}
	if sp.reading || len(want) == 0 {
		return
	}
	sp.reading = true
	m.disk.do("reading "+sp.Dir, func() {
		chunks, err := sp.Fetch(want)
		all := false
		if err != nil || slices.Contains(chunks, nil) {
			all, _ = sp.Removed()
		}
		if all {
			m.removed(sp.Spill)
		}
		m.mail.post(func() { sp.fetched(m, want, chunks, err, all) })
	})
}

func (sp *backlog) fetched(m *Mover, want []journal.Position, chunks []*forward.Chunk, err error, all bool) {
	sp.reading = false
	if sp.gone.Load() {
		return
	}
	for i, c := range chunks {
		e := sp.entries.at(sp.next)
		if e.Pos != want[i] {
			panic("mover: a spill's entries are not those that were read")
		}
		seq := sp.first + uint64(sp.next)
		sp.next++
		switch {
		case e.done, e.f != nil: // it was, or will be, dealt with from memory
			sp.pop()
		case c == nil:
			m.lose(e)
			sp.doneWith(seq)
		default:
			f := m.newFlight()
			f.chunk, f.slot, f.from, f.pos = *c, -1, sp, e.Pos
			f.bytes, f.win, f.seq = e.Bytes, e.win, seq
			sp.ahead = append(sp.ahead, f)
		}
	}
	switch {
	case all:
		if m.spill == sp {
			m.retire(true)
		} else {
			sp.vanish(m)
			sp.back(m)
		}
	case err != nil:
		sp.fails(m, err)
	default:
		sp.failing, sp.trouble = time.Time{}, ""
		sp.back(m)
	}
}

// fails notes that a spill cannot be read. After a while, at once if it is an adopted one, what is
// younger goes past it.
func (sp *backlog) fails(m *Mover, err error) {
	now := time.Now()
	if sp.failing.IsZero() {
		sp.failing = now
	}
	sp.againAt = now.Add(againAfter)
	sp.broken = sp.broken || !sp.own || now.Sub(sp.failing) >= m.cfg.diskPatience
	if m.phase < stopped && (err.Error() != sp.trouble || now.Sub(sp.troubleAt) >= troubleEvery) {
		sp.trouble, sp.troubleAt = err.Error(), now
		m.report(fmt.Errorf("reading %s: %w", sp.Dir, err))
	}
}

// back says that a spill can be read again.
func (sp *backlog) back(m *Mover) {
	sp.broken = false
	if i := slices.Index(m.stranded, sp); i >= 0 {
		m.stranded = slices.Delete(m.stranded, i, i+1)
		m.queue = slices.Insert(m.queue, 0, shipper(sp))
	}
}

// vanish gives up what was not read of a spill that somebody removed.
func (sp *backlog) vanish(m *Mover) {
	lost := sp.giveUp(m, sp.next)
	sp.next = sp.entries.len()
	sp.gone.Store(true)
	sp.pop()
	m.state.spillGoes(sp.origin)
	if lost > 0 {
		m.report(fmt.Errorf("somebody removed %s: %d events that were in it are lost", sp.Dir, lost))
	}
}

// giveUp counts what is not done of the entries from the i-th on as lost.
func (sp *backlog) giveUp(m *Mover, i int) (events uint64) {
	for ; i < sp.entries.len(); i++ {
		if e := sp.entries.at(i); !e.done {
			events += uint64(e.Events)
			m.lose(e)
			e.done = true
			sp.live--
		}
	}
	return events
}

// lose accounts for an entry that cannot be read.
func (m *Mover) lose(e *entry) {
	m.count.cut.sub(uint64(e.Events), e.Bytes)
	m.count.drop(Lost, uint64(e.Events))
	if e.win != nil {
		m.answerDropped(e.win, e.win.first, e.win.last)
	}
}

// advance has what is done committed, so that its segments are used again. A crash before that
// sends the same chunks again under the same ids.
func (sp *backlog) advance(m *Mover) {
	if sp.commits || sp.doneTo <= sp.tried || sp.gone.Load() {
		return
	}
	sp.commits = true
	to := sp.doneTo
	sp.tried = to
	m.disk.do("committing in "+sp.Dir, func() {
		err := sp.Commit(to, nil)
		m.mail.post(func() {
			sp.commits = false
			if err != nil && m.phase < stopped {
				m.report(fmt.Errorf("%s: %w", sp.Dir, err))
			}
			if sp.own {
				m.count.disk.Store(sp.Bytes())
			}
		})
	})
}

// remove takes away a spill in which nothing is left.
func (m *Mover) remove(sp *backlog) {
	m.disk.do("removing "+sp.Dir, func() { m.report(sp.Discard()) })
}

// keep makes a state durable with the position of a chunk, which a destination waits for; but not
// longer than others wait for the disk. An older state is found then by whoever adopts the spill,
// and the chunk once more.
func (sp *backlog) keep(m *Mover, p journal.Position, state []byte) error {
	if !sp.keeping.CompareAndSwap(false, true) {
		return nil // the one before hangs, and was told
	}
	state = bytes.Clone(state)
	done := make(chan error, 1)
	go func() {
		err := sp.Commit(p, state)
		sp.keeping.Store(false)
		done <- err
	}()
	timer := time.NewTimer(m.cfg.diskPatience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("%s: the disk hangs", sp.Dir)
	}
}
