// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// How this file is organised. A record may end the process: its output, or what reads it, takes
// more memory than there is, or has a fault. After a restart it would do so again, for ever. So a
// follower notes how far it has come, at each half of a window. When a process did not end in good
// order, the next one takes up singly what the dead one may have had in hand, and notes each record
// before it does.
//
//	1st death   the record was among those in hand    → the next process takes these up singly
//	2nd death   it was alone in hand                  → the next one tries it before it does anything else
//	3rd to 5th  it was tried, and nothing else ran    → after three trials it is a dead letter
//
// A process that is killed from outside at any moment turns no record into a dead letter: nothing
// but deaths in the record's own trial count, one after the other. A trial is over in an instant.
// It does not go on while the record waits: its output is stalled, or all of it was sent and the
// ack is missing, or its lines are made and a busy disk has yet to take them. One trial was not
// enough: on a starved machine even an instant is long, and where both ends of a connection were
// killed again and again, a good record became a dead letter.

// Note is what a process that ended left of a follower.
type Note struct {
	Finished journal.Position // up to there all was done
	Alone    bool             // the record behind it was in hand, and no other
	Trials   int              // and nothing else ran: in so many processes, one after the other
}

// maxTrials is how many trials of a record may end the process. Then it is a dead letter.
const maxTrials = 3

// A Caution is what a follower keeps to.
type Caution struct {
	Died bool             // the process before did not end in good order
	Last Note             // what it left
	End  journal.Position // where the journal ended at the start
	Note func(Note)       // keeps what outlives this process; it must be quick
}

// excuseAfter is how long a record may be in hand before it is no longer suspected: it waits.
const excuseAfter = 10 * time.Second

// waitingEvery is how often a trial looks whether its record waits.
const waitingEvery = 2 * time.Millisecond

// care is what Run knows of its caution.
type care struct {
	noted   Note
	since   time.Time // of a record noted as alone
	singles int       // records taken up singly
	bytes   int64
	passed  int // records finished since the note
	volume  int64
	trials  int // Try runs: its number, from 1; else 0

	stumbled atomic.Bool // the output has failed since a record was noted; by whoever says so
}

// guilty says whether the record that comes next has ended the process often enough.
func (f *Follower) guilty() bool {
	c := f.cfg.Caution
	return c != nil && c.Died && c.Last.Alone && c.Last.Trials >= maxTrials && f.step.taken == c.Last.Finished && f.step.taken < c.End
}

// Suspects says whether a record is to be tried before anything else runs.
func (f *Follower) Suspects() bool {
	c := f.cfg.Caution
	return c != nil && c.Died && c.Last.Alone && c.Last.Trials < maxTrials && c.Last.Finished >= f.start && c.Last.Finished < c.End
}

// Try takes up what is suspected, and all before it, and returns when that is done, or waits for
// something. It comes before Run.
func (f *Follower) Try(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, excuseAfter)
	defer cancel()
	s := &f.step
	last := f.cfg.Caution.Last.Finished
	s.care.trials = f.cfg.Caution.Last.Trials + 1
	for ctx.Err() == nil && s.finished <= last && (!s.whole || s.taken <= last) && !s.failing && !s.care.stumbled.Load() && !f.waits() {
		f.round(ctx, context.Background())
	}
	s.care.trials = 0
	f.excuse()
}

// waits says that the record in a trial has left the process, which it cannot end any more.
func (f *Follower) waits() bool {
	s := &f.step
	w, ok := s.out.(output.Waiter)
	return ok && s.care.noted.Trials > 0 && w.Waiting()
}

// careful says whether the next record is to be taken up alone: it is one of those that the process
// before may have had in hand. A record further behind the note than a window ends one more
// process, whose note is closer.
func (f *Follower) careful() bool {
	c, s := f.cfg.Caution, &f.step
	return c != nil && c.Died && s.taken >= c.Last.Finished && s.taken < c.End &&
		s.care.singles < f.cfg.Chunks && s.care.bytes <= f.cfg.Bytes && !s.cutting
}

// alone notes that the next record is in hand, if nothing else is; else it reports false.
func (f *Follower) alone() bool {
	s := &f.step
	if s.whole { // see made
		n := Note{Finished: s.taken, Alone: true}
		if s.taken == f.cfg.Caution.Last.Finished {
			n.Trials = s.care.trials
		}
		f.note(n)
		return true
	}
	if s.window.len() > 0 {
		if s.care.noted.Alone && (s.care.stumbled.Load() || time.Since(s.care.since) > excuseAfter) {
			f.excuse()
		}
		return false
	}
	if s.care.noted.Alone && s.care.noted.Finished == s.finished {
		return true
	}
	s.care.since = time.Now()
	s.care.stumbled.Store(false)
	n := Note{Finished: s.finished, Alone: true}
	if s.finished == f.cfg.Caution.Last.Finished {
		n.Trials = s.care.trials
	}
	f.note(n)
	return true
}

// Stumble says that the output fails: that a record stays in hand says nothing then. It may be
// called at any time.
func (f *Follower) Stumble() { f.step.care.stumbled.Store(true) }

// made says that the output has made of a record what it sends. One that gathers records for a
// transaction does so before Submit returns: nothing of what waits for the transaction is in hand,
// and a careful start need not wait for it.
func (f *Follower) made() {
	if f.step.whole {
		f.excuse()
	}
}

// excuse takes back that a record is alone in hand: that it is there says nothing.
func (f *Follower) excuse() {
	if f.step.care.noted.Alone {
		f.note(Note{Finished: f.step.care.noted.Finished})
	}
}

// progress notes how far the follower has come, if that is half a window further than the last note
// says: a note takes a system call.
func (f *Follower) progress(records int, bytes int64) {
	s := &f.step
	c := f.cfg.Caution
	if c == nil || s.finished <= max(s.care.noted.Finished, c.Last.Finished) {
		return
	}
	s.care.passed += records
	s.care.volume += bytes
	if s.care.passed >= f.cfg.Chunks/2 || s.care.volume >= f.cfg.Bytes/2 || s.care.noted.Alone {
		f.note(Note{Finished: s.finished})
	}
}

func (f *Follower) note(n Note) {
	care := &f.step.care
	care.noted, care.passed, care.volume = n, 0, 0
	f.cfg.Caution.Note(n)
}

// condemn fills a flight with the next record, which is not submitted.
func (f *Follower) condemn(x *flight) (ok bool, err error) {
	defer f.endSplit()
	rec, ok, err := f.cfg.Reader.TryNext()
	if err != nil || !ok {
		return false, err
	}
	x.end, x.chunk, x.condemned = rec.Pos, &x.own, true
	x.own = forward.Chunk{}
	if err := x.own.Parse(rec.Data); err != nil {
		f.filled(x, x.size(), err)
		return true, nil
	}
	body := &x.own.Entries
	if x.own.Compressed != nil {
		body = &x.own.Compressed
	}
	*body = bytes.Clone(*body)
	x.own.ID = nil
	f.cfg.Report(fmt.Errorf("the process ended three times while nothing but the record that ends at %v was in hand: it is a dead letter", rec.Pos))
	return true, nil
}

// errDeadly is why a record is a dead letter on which the process has ended.
var errDeadly = errors.New("the process ended three times while nothing but this was in hand")

// sentence makes a record a dead letter.
func (f *Follower) sentence(x *flight) {
	n := &f.step.counts
	f.step.soon = true
	n.Refused += int64(x.chunk.Events)
	if f.cfg.Refuse != nil {
		c := x.own
		f.letter(Refused{Position: x.end, Time: time.Now(), Reason: errDeadly.Error(), Chunk: &c})
	}
	x.result = output.Result{}
}
