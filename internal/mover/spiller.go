// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/journal"
)

// A spiller puts chunks into the own spill, which is made when it is first needed, and keeps those
// that it does not take. It is the mover's goroutine's; what may hang in a disk is done by the
// shelf.
type spiller struct {
	*core
	pack    *packer
	states  *states
	shelf   *shelf
	relief  *relief
	retired func(*backlog) // told of an own spill that is used no more

	own      *backlog  // the spill; nil before it is needed
	writing  int       // windows that the disk's goroutine has
	underWay *spillJob // the one that may come back
	stuck    []*flight // chunks that the spill had no room for, or that it does not get while the disk hangs
	saved    []string  // spills that Close made
	unsaved  []*flight // chunks that these did not take
	saveEnd  chan struct{}

	hangs   bool      // the disk does
	refused bool      // it takes nothing now
	lasting bool      // and that is no room, not an error that may be over soon
	failing time.Time // since when there are errors
	room    <-chan struct{}
	againAt time.Time
	told    string // last: why nothing could be spilled
	toldAt  time.Time
}

const maxWriting = 1 // windows with the disk's goroutine: what one was refused must come before the next

// circumstances are those that cost nothing to see.
func (s *spiller) circumstances() circumstances {
	return circumstances{
		phase: s.phase, overflow: s.cfg.Overflow, dir: s.cfg.Dir != "", refused: s.hangs || s.refused && s.lasting,
		busy: s.writing >= maxWriting || len(s.stuck) > 0,
	}
}

// spill cuts a window of a ring and has it written.
func (s *spiller) spill(r *feed) bool {
	if !s.pack.cut(r) {
		return false
	}
	s.toDisk(s.pack.pack(r, nil, window.ToSpill))
	return true
}

// toDisk gives chunks that are cut and marked to the disk's goroutine.
func (s *spiller) toDisk(flights []*flight) {
	j := newSpillJob(flights, s.own)
	if len(flights) == 0 && j.unflushed == 0 {
		return
	}
	s.writing++
	s.underWay = j
	s.disk.do("writing to "+s.cfg.Dir, func() {
		sp, stored, err := s.shelf.put(j)
		all, some := s.shelf.removed(sp)
		if !s.mail.post(func() { s.spilled(j, sp, stored && !some, err, all, some) }) && !all {
			s.shelf.takeBack(j, sp)
		}
	})
}

// spilled takes note of what the disk's goroutine did: what is on the disk needs its mark no more.
func (s *spiller) spilled(j *spillJob, sp *spill.Spill, stored bool, err error, all, some bool) {
	s.writing--
	s.underWay = nil
	if sp != nil && s.own == nil {
		s.own = newBacklog(s.core, s.shelf, s.pack.pool, sp, s)
		s.own.own = true
	}
	if some {
		s.retire(all)
	} else if stored {
		s.own.flushed()
	}
	var done, left []*flight
	for i, f := range j.flights {
		appended := j.at[i] != 0 && !some
		if f != nil {
			f.inJob = nil
		}
		if appended && !j.known[i] {
			s.own.note(f, j, i, stored)
		}
		switch {
		case f == nil || f.flying:
		case appended && stored:
			done = append(done, f)
		default:
			left = append(left, f)
		}
	}
	if j.late {
		s.stuck = slices.DeleteFunc(s.stuck, func(f *flight) bool { return slices.Contains(done, f) })
	} else {
		window.Readdress(marked(left), window.ToSpill, s.divided)
		s.stuck = append(s.stuck, left...) // the next to go there, before anything else is cut
	}
	for _, f := range done {
		f.Unmark()
		s.cfg.fault("unmarked")
		s.own.rests(f)
		s.count.spilled.Add(uint64(f.Chunk.Events))
		s.pack.pool.release(f)
	}
	s.refuse(sp, err, some)
}

func (s *spiller) divided() { s.cfg.fault("divided") }

// refuse notes whether the disk takes anything now.
func (s *spiller) refuse(sp *spill.Spill, err error, some bool) {
	now := time.Now()
	switch {
	case err == nil, some: // a new spill is begun, then
		s.told, s.failing = "", time.Time{}
		if !s.refused { // what was put aside may have found no room where this did
			s.why.Store(nil)
		}
		return
	}
	full := errors.Is(err, journal.ErrFull)
	if s.failing.IsZero() {
		s.failing = now
	}
	s.refused = true
	s.lasting = full || sp == nil || now.Sub(s.failing) >= s.cfg.diskPatience
	s.againAt = now.Add(againSoon)
	if s.lasting {
		s.againAt = now.Add(againAfter)
		s.noRoom(err)
	}
	if sp != nil && full && !errors.Is(err, spill.ErrBudget) {
		s.room = sp.Space()
	}
	// That the spill is full matters when the ring is full, too. Then a refused call tells of it
	// (core.full of package spillway), and of what is dropped the summary event.
	if !full && s.phase < stopped && (err.Error() != s.told || now.Sub(s.toldAt) >= remindEvery) {
		s.told, s.toldAt = err.Error(), now
		s.report(fmt.Errorf("spilling: %w", err))
	}
}

// again tries once more what the disk did not take, or did not give.
func (s *spiller) again(now time.Time) {
	s.watch()
	// Once the disk has been tried again, or need not be, errors no longer say why it took nothing.
	if s.why.Load() != nil && !s.hangs && !s.refused && s.writing == 0 && len(s.stuck) == 0 && !s.relief.working {
		s.why.Store(nil)
	}
	if s.refused && !now.Before(s.againAt) {
		s.refused, s.room = false, nil
	}
	if s.writing == 0 && !s.refused && s.phase != stopped {
		flights := s.stuck
		s.stuck = nil
		s.toDisk(flights)
	}
	if s.own != nil {
		s.own.again(now)
	}
	s.relief.again()
}

// watch looks whether the disk hangs. What it was given is stuck then, and so goes to the
// destination when it takes something.
func (s *spiller) watch() {
	job, since := s.disk.doing()
	hangs := job != "" && time.Since(since) >= s.cfg.diskPatience
	switch {
	case hangs && !s.hangs:
		err := fmt.Errorf("the disk hangs: %s, for %v", job, s.cfg.diskPatience)
		s.report(fmt.Errorf("%w; what is in memory goes to the destination meanwhile", err))
		s.noRoom(err)
	case !hangs && s.hangs:
		s.report(fmt.Errorf("the disk of %s no longer hangs", s.cfg.Dir))
	}
	s.hangs = hangs
	j := s.underWay
	if !hangs || j == nil || j.late {
		return
	}
	j.lag()
	s.stuck = append(slices.Clone(j.flights), s.stuck...)
}

// lookIn is how soon the disk is to be looked at, or limit.
func (s *spiller) lookIn(now time.Time, limit time.Duration) time.Duration {
	if s.refused && !s.againAt.IsZero() {
		limit = min(limit, s.againAt.Sub(now))
	}
	if job, since := s.disk.doing(); job != "" && !s.hangs {
		limit = min(limit, since.Add(s.cfg.diskPatience).Sub(now))
	}
	if s.own != nil && s.own.broken {
		limit = min(limit, s.own.againAt.Sub(now))
	}
	return limit
}

// next is what is to be shipped before the own ring: the spill, what is on its way into it, and
// what it did not take. nil: nothing. stands says that the destination takes nothing.
func (s *spiller) next(stands bool) shipper {
	switch sp := s.own; {
	case sp != nil && sp.ships(s.hangs) && (!sp.sent() || !stands):
		return sp
	case s.mustWait():
		return pending{}
	case len(s.stuck) > 0:
		return (*leftover)(s)
	}
	return nil
}

// mustWait says that the disk's goroutine has chunks which younger ones must not pass.
func (s *spiller) mustWait() bool {
	return s.writing > 0 && (s.underWay == nil || !s.underWay.late && len(s.underWay.flights) > 0)
}

// lastLook notes, before the rings are left, whether a successor will find in them what the disk's
// goroutine has. One that failed, or that somebody removed or cut short, is none that it can adopt.
func (s *spiller) lastLook() {
	j := s.underWay
	if j == nil {
		return
	}
	var rings []*feed
	for _, f := range j.flights {
		switch {
		case f == nil: // it has ended
		case !f.Covered():
			return
		case !slices.Contains(rings, f.feed):
			rings = append(rings, f.feed)
		}
	}
	j.covered = !slices.ContainsFunc(rings, func(r *feed) bool { return !r.whole() })
}

// empty says that nothing is in the spill, or on its way into it.
func (s *spiller) empty() bool {
	return s.writing == 0 && len(s.stuck) == 0 && (s.own == nil || s.own.entries.Len() == 0)
}

// holds says that events are in a spill of this process, or on their way into one.
func (s *spiller) holds() bool {
	return s.writing > 0 || s.own != nil && s.own.entries.Len() > 0 || len(s.saved) > 0 || len(s.relief.aside) > 0
}

// pending is what the disk's goroutine is writing: it has to be read again before anything younger.
type pending struct{}

func (pending) take(*packer) ([]*flight, bool) { return nil, false }
func (pending) sent() bool                     { return false }

// leftover is the chunks that the spill had no room for, once it is empty.
type leftover spiller

func (l *leftover) take(*packer) ([]*flight, bool) {
	if len(l.stuck) == 0 {
		return nil, false
	}
	if l.stuck[0].Younger() {
		window.Readdress(marked(l.stuck), window.ToDestination, (*spiller)(l).divided)
	}
	first := l.stuck[:1]
	l.stuck = l.stuck[1:]
	return first, true
}

func (l *leftover) sent() bool { return false }

// drop drops what the spill had no room for.
func (s *spiller) drop() bool {
	if len(s.stuck) == 0 || s.writing > 0 {
		return false
	}
	for _, f := range s.stuck {
		f.Unmark()
		f.leaveSpill()
		n := uint64(f.Chunk.Events)
		s.count.inHand.sub(n, f.Bytes)
		s.count.miss(Oldest, n)
		f.span.missed(f.First, f.Last)
		s.pack.pool.release(f)
	}
	s.stuck = nil
	return true
}

// retire takes the own spill out of use: its folder was removed, or the file that is written to.
// What can be read of it is shipped before all that is younger.
func (s *spiller) retire(all bool) {
	sp := s.own
	s.own = nil
	sp.detach()
	s.retired(sp)
	if all {
		sp.vanish()
		s.states.spillGoes(sp.origin)
	}
}

func (s *spiller) vanished(*backlog) { s.retire(true) }
func (s *spiller) readable(*backlog) {}

// save has chunks which the destination gave up put into the spill, and then all that is in memory.
// done is closed when no more can be.
func (s *spiller) save(givenUp []*flight, done chan struct{}) {
	s.enter(saving)
	s.saveEnd = done
	s.refused = false
	if len(givenUp) == 0 {
		return
	}
	// They are older than what has been spilled, or is being spilled: where there is such, they get
	// a spill of their own, dated before it.
	if s.writing > 0 || s.own != nil && s.own.entries.Len() > 0 {
		s.toDiskBefore(givenUp)
		return
	}
	givenUp = append(givenUp, s.stuck...)
	s.stuck = nil
	s.toDisk(givenUp)
}

// endSaving says when saving is done, or cannot go on.
func (s *spiller) endSaving() {
	if s.saveEnd == nil || s.writing > 0 {
		return
	}
	if s.refused && s.lasting || len(s.stuck) == 0 && s.rings.full() == nil {
		close(s.saveEnd)
		s.saveEnd = nil
	}
}

// toDiskBefore writes chunks to a spill that is read before the own one.
func (s *spiller) toDiskBefore(flights []*flight) {
	s.writing++
	chunks := make([]forward.Chunk, len(flights))
	for i, f := range flights {
		f.leaveSpill()
		chunks[i] = f.Chunk
	}
	s.disk.do("writing to "+s.cfg.Dir, func() {
		dir, n, err := s.shelf.putBefore(chunks)
		s.mail.post(func() {
			s.writing--
			s.report(err)
			for _, f := range flights[:n] {
				f.Unmark()
				s.count.spilled.Add(uint64(f.Chunk.Events))
			}
			s.unsaved = append(s.unsaved, flights[n:]...)
			if n > 0 {
				s.saved = append(s.saved, dir)
			}
		})
	})
}
