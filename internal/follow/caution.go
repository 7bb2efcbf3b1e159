// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/await"
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

// maxTrials is how many trials of a record may end the process. Then it is a dead letter.
const maxTrials = 3

// care is what Run knows of its caution.
type care struct {
	*core
	noted   Note
	since   time.Time // of a record noted as alone
	singles int       // records taken up singly
	bytes   int64
	passed  int // records finished since the note
	volume  int64
	trials  int  // Try runs: its number, from 1; else 0
	failing bool // Failed was told last

	outputFailed atomic.Bool // the output has failed since a record was noted; NoteFailure writes it
}

// deadly says whether the record that comes next has ended the process often enough.
func (c *care) deadly() bool {
	k := c.cfg.Caution
	return k != nil && k.Died && k.Last.Alone && k.Last.Trials >= maxTrials && c.taken == k.Last.Finished &&
		c.taken < k.End
}

// needsTrial says whether a record is to be tried before anything else runs.
func (c *care) needsTrial() bool {
	k := c.cfg.Caution
	return k != nil && k.Died && k.Last.Alone && k.Last.Trials < maxTrials && k.Last.Finished >= c.start &&
		k.Last.Finished < k.End
}

// careful says whether the next record is to be taken up alone: it is one of those that the process
// before may have had in hand. A record further behind the note than a window ends one more
// process, whose note is closer.
func (c *care) careful() bool {
	k := c.cfg.Caution
	return k != nil && k.Died && c.taken >= k.Last.Finished && c.taken < k.End &&
		c.singles < c.cfg.Chunks && c.bytes <= c.cfg.Bytes
}

// alone notes that the next record is in hand, if nothing else is; else it reports false. What
// gathers for a transaction is not in hand: see Follower.made.
func (c *care) alone(gathers bool, inHand int) bool {
	if gathers {
		n := Note{Finished: c.taken, Alone: true}
		if c.taken == c.cfg.Caution.Last.Finished {
			n.Trials = c.trials
		}
		c.note(n)
		return true
	}
	if inHand > 0 {
		if c.noted.Alone && (c.outputFailed.Load() || time.Since(c.since) > suspectedFor) {
			c.clearAlone()
		}
		return false
	}
	if c.noted.Alone && c.noted.Finished == c.finished {
		return true
	}
	c.since = time.Now()
	c.outputFailed.Store(false)
	n := Note{Finished: c.finished, Alone: true}
	if c.finished == c.cfg.Caution.Last.Finished {
		n.Trials = c.trials
	}
	c.note(n)
	return true
}

// clearAlone takes back the note that a record is alone in hand: that it is there says nothing.
func (c *care) clearAlone() {
	if c.noted.Alone {
		c.note(Note{Finished: c.noted.Finished})
	}
}

// progress notes how far the follower has come, if that is half a window further than the last note
// says: a note takes a system call.
func (c *care) progress(records int, bytes int64) {
	k := c.cfg.Caution
	if k == nil || c.finished <= max(c.noted.Finished, k.Last.Finished) {
		return
	}
	c.passed += records
	c.volume += bytes
	if c.passed >= c.cfg.Chunks/2 || c.volume >= c.cfg.Bytes/2 || c.noted.Alone {
		c.note(Note{Finished: c.finished})
	}
}

func (c *care) note(n Note) {
	c.noted, c.passed, c.volume = n, 0, 0
	c.cfg.Caution.Note(n)
}

// fail tells of a step that failed.
func (c *care) fail(err error, wait time.Duration) {
	c.clearAlone()
	c.failing = true
	c.cfg.Failed(err, wait)
}

// works tells that steps work again, if one has failed.
func (c *care) works() {
	if c.failing {
		c.failing = false
		c.cfg.Worked()
	}
}

// pauseAfter tells of a failed step, and waits before the next try.
func (c *care) pauseAfter(ctx context.Context, err error) {
	c.fail(err, retryPause)
	_ = await.Pause(ctx, retryPause)
}
