// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// giveBytes is how much is given up between two commits, at least.
const giveBytes = 16 << 20

// A giver gives up what has waited longest for an output that is too far behind.
type giver struct {
	*core
	care      *care
	opened    *opened
	flights   *flights
	splitter  *splitter
	sieve     *sieve
	fetcher   *fetcher
	flow      *flow
	committer *committer
	closer    *closer

	looked time.Time
	not    time.Time // before which nothing is given up
	failed int       // tries in a row
}

// over says whether something is to be given up now, and how much.
func (v *giver) over(drain context.Context) (enough func(journal.Position) bool) {
	if v.cfg.Behind == nil || drain.Err() != nil { // at the end nothing comes any more
		return nil
	}
	now := time.Now()
	if now.Sub(v.looked) < lookEvery || now.Before(v.not) {
		return nil
	}
	v.looked = now
	return v.cfg.Behind.Over(v.committed)
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
func (v *giver) giveUpOldest(ctx context.Context) {
	if !v.rested(ctx) {
		if ctx.Err() != nil {
			return
		}
		v.closer.giveUp(ctx)
		v.opened.broken = errBehind
	}
	enough := v.cfg.Behind.Over(v.committed)
	if enough == nil {
		return
	}
	err := v.back()
	for more := true; more && err == nil && ctx.Err() == nil; {
		more, err = v.giveSome(ctx, enough)
	}
	if err == nil {
		v.failed = 0
		return
	}
	if ctx.Err() != nil {
		return
	}
	// The output may work again, so nothing waits here.
	wait := min(retryPause<<min(v.failed, 10), maxGivePause)
	v.failed++
	v.not = time.Now().Add(wait)
	v.care.fail(err, wait)
	if err := v.back(); err != nil && v.opened.broken == nil {
		v.opened.broken = err
	}
}

// rested reports whether the output is at rest, with all that it has done committed.
func (v *giver) rested(ctx context.Context) bool {
	wait, cancel := context.WithTimeout(ctx, givePatience)
	defer cancel()
	for v.opened.broken == nil && v.flights.inFlight > 0 {
		if wait.Err() != nil {
			return false
		}
		v.flow.await(wait, 0)
		v.flow.collect()
	}
	if v.opened.broken != nil || v.opened.out == nil {
		return false
	}
	if v.stop > v.committed {
		if err := v.committer.commit(wait); err != nil {
			return false
		}
	}
	return v.taken == v.committed
}

// giveSome gives up records behind the cursor until there is enough for a commit. more is false
// when nothing is left to give up.
func (v *giver) giveSome(ctx context.Context, enough func(journal.Position) bool) (more bool, err error) {
	var n Counts
	var all []Refused
	var volume, kept int64
	at, more := v.committed, true
	for volume < giveBytes && kept < v.cfg.Bytes && ctx.Err() == nil {
		if enough(at) {
			more = false
			break
		}
		rec, ok, err := v.cfg.Reader.TryNext()
		if err != nil {
			v.splitter.endSplit()
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
		var chunks []*forward.Chunk
		var filtered int64
		err = c.Parse(rec.Data)
		if err == nil {
			chunks, filtered, _, err = v.sieve.whole(rec.Pos, &c)
			v.settle()
		}
		events := int64(c.Events) - filtered
		switch {
		case err != nil:
			v.reportBroken(rec.Pos, err)
			n.Broken++
			n.Unreadable += int64(c.Events)
			continue
		case v.cfg.Behind.Reason == "" || v.cfg.Refuse == nil:
			n.Dropped += events
		default:
			n.Refused += events
			n.Aside += events
			before := 0
			for _, c := range chunks {
				r := v.setAside(rec.Pos, before, c)
				before += c.Events
				all = append(all, r)
				kept += int64(len(r.Chunk.Entries))
			}
		}
		n.Filtered += filtered
	}
	v.splitter.endSplit()
	if at == v.committed || ctx.Err() != nil {
		return false, ctx.Err()
	}
	if len(all) > 0 {
		if err := v.cfg.Refuse(ctx, all); err != nil {
			return false, fmt.Errorf("dead letters: %w", err)
		}
	}
	v.rewind(at)
	v.passing = n
	return more, v.committer.move(ctx)
}

// setAside makes a dead letter of a whole record, or of a chunk that steps made of it, before which
// so many events come.
func (v *giver) setAside(end journal.Position, before int, c *forward.Chunk) Refused {
	all := make([]int, c.Events)
	for i := range all {
		all[i] = before + i
	}
	return Refused{
		Position: end, Time: time.Now(), Reason: v.cfg.Behind.Reason, Entries: all,
		Chunk: output.Only(v.fetcher.inflated(c), all),
	}
}
