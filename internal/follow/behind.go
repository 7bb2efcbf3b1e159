// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// Behind says when an output is so far behind that what has waited longest is given up.
type Behind struct {
	// Over says whether too much waits behind a position. If so it returns what says from which
	// position on it is little enough again.
	Over func(at journal.Position) (enough func(at journal.Position) bool)
	// Reason makes dead letters of what is given up, by Config.Refuse; empty drops it.
	Reason string
}

const (
	// lookEvery is how often a follower looks whether its output is too far behind.
	lookEvery = 200 * time.Millisecond
	// givePatience is how long an output has to finish what is on its way before it is closed. One
	// that is only slow does so, and need not be opened again.
	givePatience = time.Second
	// giveBytes is how much is given up between two commits, at least.
	giveBytes = 16 << 20
	// givePauseMost is the longest pause after a try to give something up that failed.
	givePauseMost = 30 * time.Second
)

// errBehind says why an output was closed.
var errBehind = errors.New("it was closed, for it did not finish what it had, and too much waits for it")

// giving is what a follower knows of giving up.
type giving struct {
	looked time.Time
	not    time.Time // before which nothing is given up
	failed int       // tries in a row
}

// over says whether something is to be given up now, and how much.
func (f *Follower) over(drain context.Context) (enough func(journal.Position) bool) {
	s := &f.step
	if f.cfg.Behind == nil || drain.Err() != nil { // at the end nothing comes any more
		return nil
	}
	now := time.Now()
	if now.Sub(s.looked) < lookEvery || now.Before(s.not) {
		return nil
	}
	s.looked = now
	return f.cfg.Behind.Over(s.committed)
}

// giveUpOldest gives up what has waited longest. What is on its way comes first:
//
//	cursor ──► on its way ──► not read yet ──► enough ──► end
//	│ wait until it is done, or close the output │
//	│ commit what is done                        │
//	└───────── read, count, dead letters, commit ┘
//
// An output may have done something of what it was closed with: that is given up as well, so it
// does not come twice.
func (f *Follower) giveUpOldest(ctx context.Context) {
	s := &f.step
	if !f.rested(ctx) {
		if ctx.Err() != nil {
			return
		}
		f.giveUp(ctx)
		s.broken = errBehind
	}
	enough := f.cfg.Behind.Over(s.committed)
	if enough == nil {
		return
	}
	err := f.cfg.Reader.SkipTo(s.committed)
	for more := true; more && err == nil && ctx.Err() == nil; {
		more, err = f.giveSome(ctx, enough)
	}
	if err == nil {
		s.failed = 0
		return
	}
	if ctx.Err() != nil {
		return
	}
	// The output may work again, so nothing waits here.
	wait := min(retryPause<<min(s.failed, 10), givePauseMost)
	s.failed++
	s.not = time.Now().Add(wait)
	f.fail(err, wait)
	if err := f.cfg.Reader.SkipTo(s.committed); err != nil && s.broken == nil {
		s.broken = err
	}
}

// rested reports whether the output is at rest, with all that it has done committed.
func (f *Follower) rested(ctx context.Context) bool {
	s := &f.step
	wait, cancel := context.WithTimeout(ctx, givePatience)
	defer cancel()
	for s.broken == nil && s.inFlight > 0 {
		if wait.Err() != nil {
			return false
		}
		f.await(wait, 0)
		f.collect()
	}
	if s.broken != nil || s.out == nil {
		return false
	}
	if s.stop > s.committed {
		if err := f.commit(wait); err != nil {
			return false
		}
	}
	return s.taken == s.committed
}

// giveSome gives up records behind the cursor until there is enough for a commit. more is false
// when nothing is left to give up.
func (f *Follower) giveSome(ctx context.Context, enough func(journal.Position) bool) (more bool, err error) {
	s := &f.step
	var n Counts
	var all []Refused
	var volume, kept int64
	at, more := s.committed, true
	for volume < giveBytes && kept < f.cfg.Bytes && ctx.Err() == nil {
		if enough(at) {
			more = false
			break
		}
		rec, ok, err := f.cfg.Reader.TryNext()
		if err != nil {
			f.endSplit()
			return false, err
		}
		if !ok {
			more = false
			break
		}
		at = rec.Pos
		volume += int64(len(rec.Data)) + 1
		n.Chunks++
		var c forward.Chunk
		switch err := c.Parse(rec.Data); {
		case err != nil:
			f.reportBroken(rec.Pos, err)
			n.Broken++
			n.Unreadable += int64(c.Events)
		case f.cfg.Behind.Reason == "" || f.cfg.Refuse == nil:
			n.Dropped += int64(c.Events)
		default:
			n.Refused += int64(c.Events)
			n.Aside += int64(c.Events)
			r := f.setAside(rec.Pos, &c)
			all = append(all, r)
			kept += int64(len(r.Chunk.Entries))
		}
	}
	f.endSplit()
	if at == s.committed || ctx.Err() != nil {
		return false, ctx.Err()
	}
	if len(all) > 0 {
		if err := f.cfg.Refuse(ctx, all); err != nil {
			return false, fmt.Errorf("dead letters: %w", err)
		}
	}
	s.rewind(at)
	s.passing = n
	return more, f.move(ctx)
}

// setAside makes a dead letter of a whole record.
func (f *Follower) setAside(end journal.Position, c *forward.Chunk) Refused {
	all := make([]int, c.Events)
	for i := range all {
		all[i] = i
	}
	return Refused{Position: end, Time: time.Now(), Reason: f.cfg.Behind.Reason, Entries: all, Chunk: output.Only(f.inflated(c), all)}
}

// flush has the output flushed, which may hang: one that is too far behind meanwhile is not waited
// for any longer.
func (f *Follower) flush(ctx context.Context) error {
	f.moved.Store(time.Now().UnixNano())
	defer f.moved.Store(0)
	if f.cfg.Behind == nil {
		return f.step.out.Flush(ctx)
	}
	for {
		wait, cancel := context.WithTimeout(ctx, givePatience)
		err := f.step.out.Flush(wait)
		late := wait.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil || f.cfg.Behind.Over(f.step.committed) != nil {
			return err
		}
	}
}
