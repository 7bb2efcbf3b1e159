// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/fifo"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/journal"
)

const (
	minAhead   = 4 // chunks read ahead of the destination,
	maxAhead   = window.MaxRuns
	aheadBytes = 256 << 10 // or as many as have so many bytes
)

// A backlog is a spill as the loop sees it: a list of what is in it, to be shipped from its
// beginning. This process's own is appended to as well. Reading and writing is done by the disk's
// goroutine.
type backlog struct {
	*spill.Spill
	*core
	shelf   *shelf
	pool    *pool
	keeper  keeper
	own     bool
	origin  *origin
	entries fifo.Queue[entry] // all that is not known to be done, in the order of positions
	first   uint64            // number of the first of entries
	// Of entries: those before it are with the destination, done, in ahead, or flights of their
	// own.
	next    int
	live    int       // of entries: neither done nor a flight of their own
	ahead   []*flight // read, to be submitted
	reading bool
	commits bool // a commit is under way
	doneTo  journal.Position
	tried   journal.Position // of the last commit begun
	gone    atomic.Bool      // its folder was removed: what was not read is lost
	keeping atomic.Bool      // a destination's state is being stored

	broken  bool      // it cannot be read now, and what is younger does not wait for it
	failing time.Time // since when
	againAt time.Time
	told    string // last: why it could not be read
	toldAt  time.Time
}

// A keeper has backlogs, and is told what reading them shows: the spiller of the own one, the
// legacy of others.
type keeper interface {
	vanished(sp *backlog) // its folder was removed
	readable(sp *backlog) // it can be read, perhaps again
}

// An entry is a chunk in a spill.
type entry struct {
	spill.Entry
	span      *span // that it was cut in, nil for an adopted one
	done      bool
	unflushed bool    // appended, and not known to be stored
	f         *flight // that is in memory as well, and counts
}

func newBacklog(g *core, shelf *shelf, pool *pool, sp *spill.Spill, k keeper) *backlog {
	b := &backlog{Spill: sp, core: g, shelf: shelf, pool: pool, keeper: k, origin: &g.rings.origin}
	for _, e := range sp.Found {
		b.push(entry{Entry: e})
	}
	sp.Found = nil
	return b
}

func (sp *backlog) push(e entry) {
	if !e.done && e.f == nil {
		sp.live++
	}
	sp.entries.Push(e)
}

// note adds what a spillJob appended. f is nil if its flight has ended meanwhile.
func (sp *backlog) note(f *flight, j *spillJob, i int, stored bool) {
	c := &j.chunks[i]
	e := entry{
		Entry: spill.Entry{Pos: j.at[i], Bytes: uint64(len(c.Entries)), Events: uint32(c.Events)},
		done:  f == nil, unflushed: !stored, f: f,
	}
	if f != nil {
		e.Bytes, e.span = f.Bytes, f.span
		f.inSpill, f.pos, f.seq = sp, j.at[i], sp.first+uint64(sp.entries.Len())
	}
	sp.push(e)
}

// rests says that a flight is over and its entry counts.
func (sp *backlog) rests(f *flight) {
	sp.entries.At(int(f.seq - sp.first)).f = nil
	sp.live++
}

// unflushedTo is the end of what was appended and may not be stored, 0 if there is no such.
func (sp *backlog) unflushedTo() journal.Position {
	if n := sp.entries.Len(); n > 0 && sp.entries.At(n-1).unflushed {
		return sp.entries.At(n - 1).Pos
	}
	return 0
}

// flushed says that all that was appended is stored.
func (sp *backlog) flushed() {
	for i := sp.entries.Len() - 1; i >= 0 && sp.entries.At(i).unflushed; i-- {
		sp.entries.At(i).unflushed = false
	}
}

// doneWith notes that the chunk of the entry of that number is done.
func (sp *backlog) doneWith(seq uint64) {
	e := sp.entries.At(int(seq - sp.first))
	if e.f == nil {
		sp.live--
	}
	e.f, e.done = nil, true
	sp.pop()
}

// pop forgets entries that are done, once the reader has passed them.
func (sp *backlog) pop() {
	for sp.next > 0 && sp.entries.Len() > 0 && sp.entries.Front().done {
		sp.doneTo = sp.entries.Front().Pos
		sp.entries.Pop()
		sp.first++
		sp.next--
	}
}

// take returns the next chunk, or sees to it that there will be one.
func (sp *backlog) take(*packer) ([]*flight, bool) {
	sp.advance()
	if len(sp.ahead) > 0 {
		first := sp.ahead[:1]
		sp.ahead = sp.ahead[1:]
		return first, true
	}
	if !sp.broken {
		sp.read()
	}
	return nil, false
}

// ships says that the own spill has something that is older than what is in memory, and can be had.
func (sp *backlog) ships(hangs bool) bool {
	return sp.live > 0 && (len(sp.ahead) > 0 || !sp.broken && !hangs)
}

func (sp *backlog) sent() bool { return len(sp.ahead) == 0 && sp.next == sp.entries.Len() }

// empty says that nothing in the spill matters any more.
func (sp *backlog) empty() bool {
	for i := range sp.entries.Len() {
		if !sp.entries.At(i).done {
			return false
		}
	}
	return true
}

// again reads what could not be read before, and goes over what need not be.
func (sp *backlog) again(now time.Time) {
	if sp.broken && now.Before(sp.againAt) || !sp.broken && (sp.live > 0 || sp.entries.Len() == 0) ||
		sp.phase >= stopped {
		return
	}
	sp.againAt = now.Add(againAfter)
	sp.advance()
	sp.read()
}

// read has the next chunks read.
func (sp *backlog) read() {
	var want []journal.Position
	size := uint64(0)
	for i := sp.next; i < sp.entries.Len() &&
		(len(want) < minAhead || len(want) < maxAhead && size < aheadBytes); i++ {
		e := sp.entries.At(i)
		if e.unflushed {
			break
		}
		want = append(want, e.Pos)
		size += e.Bytes
	}
	if sp.reading || len(want) == 0 {
		return
	}
	sp.reading = true
	sp.disk.do("reading "+sp.Dir, func() {
		chunks, err := sp.Fetch(want)
		all := false
		if err != nil || slices.Contains(chunks, nil) {
			all, _ = sp.Removed()
		}
		if all {
			sp.shelf.removed(sp.Spill)
		}
		sp.mail.post(func() { sp.fetched(want, chunks, err, all) })
	})
}

func (sp *backlog) fetched(want []journal.Position, chunks []*forward.Chunk, err error, all bool) {
	sp.reading = false
	if sp.gone.Load() {
		return
	}
	for i, c := range chunks {
		e := sp.entries.At(sp.next)
		if e.Pos != want[i] {
			panic("mover: a spill's entries are not those that were read")
		}
		seq := sp.first + uint64(sp.next)
		sp.next++
		switch {
		case e.done, e.f != nil: // it was, or will be, dealt with from memory
			sp.pop()
		case c == nil:
			sp.lose(e)
			sp.doneWith(seq)
		default:
			f := sp.pool.take()
			f.Foreign(c, e.Bytes)
			f.from, f.pos, f.span, f.seq = sp, e.Pos, e.span, seq
			sp.ahead = append(sp.ahead, f)
		}
	}
	switch {
	case all:
		sp.keeper.vanished(sp)
	case err != nil:
		sp.fails(err)
	default:
		sp.failing, sp.told = time.Time{}, ""
		sp.broken = false
		sp.keeper.readable(sp)
	}
}

// fails notes that a spill cannot be read. After a while, at once if it is an adopted one, what is
// younger goes past it.
func (sp *backlog) fails(err error) {
	now := time.Now()
	if sp.failing.IsZero() {
		sp.failing = now
	}
	sp.againAt = now.Add(againAfter)
	sp.broken = sp.broken || !sp.own || now.Sub(sp.failing) >= sp.cfg.diskPatience
	if sp.phase < stopped && (err.Error() != sp.told || now.Sub(sp.toldAt) >= remindEvery) {
		sp.told, sp.toldAt = err.Error(), now
		sp.report(fmt.Errorf("reading %s: %w", sp.Dir, err))
	}
}

// vanish gives up what was not read of a spill whose folder was removed.
func (sp *backlog) vanish() {
	lost := sp.giveUp(sp.next)
	sp.next = sp.entries.Len()
	sp.gone.Store(true)
	sp.broken = false
	sp.pop()
	if lost > 0 {
		sp.report(fmt.Errorf("somebody removed %s: %d events that were in it are lost", sp.Dir, lost))
	}
}

// giveUp counts what is not done of the entries from the i-th on as lost.
func (sp *backlog) giveUp(i int) (events uint64) {
	for ; i < sp.entries.Len(); i++ {
		if e := sp.entries.At(i); !e.done {
			events += uint64(e.Events)
			sp.lose(e)
			e.done = true
			sp.live--
		}
	}
	return events
}

// advance has what is done committed, so that its segments are used again. A crash before that
// sends the same chunks again under the same ids.
func (sp *backlog) advance() {
	if sp.commits || sp.doneTo <= sp.tried || sp.gone.Load() {
		return
	}
	sp.commits = true
	to := sp.doneTo
	sp.tried = to
	sp.disk.do("committing in "+sp.Dir, func() {
		err := sp.Pass(to) // a spill of what was put aside is not read
		if err == nil {
			err = sp.Commit(to, nil)
		}
		sp.mail.post(func() {
			sp.commits = false
			if err != nil && sp.phase < stopped {
				sp.report(fmt.Errorf("%s: %w", sp.Dir, err))
			}
		})
	})
}

// lose accounts for an entry that cannot be read.
func (sp *backlog) lose(e *entry) {
	sp.count.inHand.sub(uint64(e.Events), e.Bytes)
	sp.count.miss(Lost, uint64(e.Events))
	if e.span != nil {
		e.span.missed(e.span.first, e.span.last)
	}
}

// detach has an own spill be used no more, and forgets what may not be stored in it.
func (sp *backlog) detach() {
	sp.own = false
	for i := range sp.entries.Len() {
		e := sp.entries.At(i)
		if e.f != nil {
			e.f.inSpill, e.f.pos = nil, 0
			e.f, e.done = nil, true
		}
		e.unflushed = false
	}
}

// remove takes away a spill in which nothing is left.
func (sp *backlog) remove() {
	sp.disk.do("removing "+sp.Dir, func() { sp.report(sp.Discard()) })
}

// leave lets go of a spill, for the next process to take over.
func (sp *backlog) leave() {
	sp.advance()
	sp.disk.do("closing "+sp.Dir, func() {
		if err := sp.Close(); err != nil {
			sp.report(fmt.Errorf("closing a spill: %w", err))
		}
	})
}

// keep makes a state durable with the position of a chunk. A destination waits for that, but no
// longer than other parts wait for the disk. After a crash the successor then finds an older state,
// and the chunk once more.
func (sp *backlog) keep(p journal.Position, state []byte) error {
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
	timer := time.NewTimer(sp.cfg.diskPatience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("%s: the disk hangs", sp.Dir)
	}
}

// How soon the disk is tried again: an error may be over soon; what lasts is no room.
const (
	againSoon  = 100 * time.Millisecond
	againAfter = time.Second
)

// remindEvery is how often it is told that nothing can be spilled, or read, for one reason.
const remindEvery = time.Minute
