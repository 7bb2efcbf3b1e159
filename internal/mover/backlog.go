// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"cmp"
	"fmt"

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
	next    int          // of entries: before it they are with the destination, done, or in ahead
	ahead   []*flight    // read, to be submitted
	reading bool
	broken  bool // reading has failed for good: what is left stays for the next process
	commits bool // a commit is under way
	doneTo  journal.Position
	tried   journal.Position // of the last commit begun
}

// An entry is a chunk in a spill.
type entry struct {
	spill.Entry
	win  *window // that it was cut in, nil for an adopted one
	done bool
}

// backlogs are those of spills that were found.
func (m *Mover) backlogs(spills []*spill.Spill) []*backlog {
	var all []*backlog
	for _, sp := range spills {
		b := &backlog{Spill: sp, origin: cmp.Or(m.state.ofSpill[sp], &m.state.own)}
		for _, e := range sp.Found {
			b.entries.push(entry{Entry: e})
		}
		sp.Found = nil
		all = append(all, b)
	}
	return all
}

// doneWith notes that the chunk of the entry of that number is done.
func (sp *backlog) doneWith(seq uint64) {
	sp.entries.at(int(seq - sp.first)).done = true
	for sp.entries.len() > 0 && sp.entries.front().done {
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
	if !sp.reading && !sp.broken && sp.next < sp.entries.len() {
		sp.read(m)
	}
	return false
}

// over says that an adopted spill is empty, and has it removed.
func (sp *backlog) over(m *Mover) bool {
	if sp.broken {
		// Nothing more can be had of it now. It stays, for another time.
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
	m.remove(sp)
	return true
}

// read has the next chunks read.
func (sp *backlog) read(m *Mover) {
	sp.reading = true
	var want []journal.Position
	size := uint64(0)
	for i := sp.next; i < sp.entries.len() && (len(want) < leastAhead || len(want) < mostAhead && size < aheadBytes); i++ {
		e := sp.entries.at(i)
		want = append(want, e.Pos)
		size += e.Bytes
	}
	m.disk.do("reading "+sp.Dir, func() {
		chunks, err := sp.Fetch(want)
		m.post(func() { sp.fetched(m, want, chunks, err) })
	})
}

func (sp *backlog) fetched(m *Mover, want []journal.Position, chunks []*forward.Chunk, err error) {
	sp.reading = false
	for i, c := range chunks {
		e := sp.entries.at(sp.next)
		if e.Pos != want[i] {
			panic("mover: a spill's entries are not those that were read")
		}
		if c == nil {
			m.lose(e)
			seq := sp.first + uint64(sp.next)
			sp.next++
			sp.doneWith(seq)
			continue
		}
		f := m.newFlight()
		f.chunk, f.slot, f.from, f.pos = *c, -1, sp, e.Pos
		f.bytes, f.win, f.seq = e.Bytes, e.win, sp.first+uint64(sp.next)
		sp.next++
		sp.ahead = append(sp.ahead, f)
	}
	if err != nil && m.phase < stopped {
		m.report(fmt.Errorf("reading %s: %w", sp.Dir, err))
		sp.broken = !sp.own // which nobody else can read now: it is tried again and again
	}
}

// lose accounts for an entry that cannot be read.
func (m *Mover) lose(e *entry) {
	m.count.cut.sub(uint64(e.Events), e.Bytes)
	m.drop(Lost, uint64(e.Events))
	if e.win != nil {
		m.answerDropped(e.win, e.win.first, e.win.last)
	}
}

// advance has what is done committed, so that its segments are used again. A crash before that
// sends the same chunks again under the same ids.
func (sp *backlog) advance(m *Mover) {
	if sp.commits || sp.doneTo <= sp.tried {
		return
	}
	sp.commits = true
	to := sp.doneTo
	sp.tried = to
	m.disk.do("committing in "+sp.Dir, func() {
		err := sp.Commit(to, nil)
		m.post(func() {
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

// over says that Close waits for nothing any more.
func (m *Mover) over() bool {
	select {
	case <-m.gaveUp:
		return true
	default:
		return false
	}
}
