// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// Outcomes are what became of finished flights: counts, and what was refused, until it is a dead
// letter.
type outcomes struct {
	*core
	care    *care
	fetcher *fetcher

	letters     []Refused // up to finished, beyond committed
	letterBytes int64     // of them, since the last were passed on
}

// count adds a finished flight to what is beyond stop, and keeps what was refused of it.
func (u *outcomes) count(x *flight) {
	n := &u.counts
	if !x.part {
		n.Chunks++
	}
	events := int64(x.chunk.Events)
	if x.broken {
		n.Broken++
		n.Unreadable += events
		return
	}
	if x.deadly {
		u.refuseDeadly(x)
		return
	}
	n.Filtered += x.filtered
	n.Refused += x.refused
	for _, r := range x.failed {
		if u.cfg.Refuse != nil {
			u.letter(r)
		}
	}
	if x.idle {
		return
	}
	refused := u.refuse(x)
	n.Refused += refused
	events -= refused
	if x.result.HandedOver {
		n.HandedOver += events
	} else {
		n.Out += events
	}
	if x.result.MaybeRepeated {
		n.Repeated += events
	}
	n.Diverted += x.result.Diverted
	n.Restamped += x.result.Restamped
	n.Bytes += x.result.Bytes
	u.sent.bytes.Add(x.result.Bytes)
}

// refuse keeps the entries of a flight that were rejected, by reason, and returns how many.
func (u *outcomes) refuse(x *flight) (events int64) {
	var whole *forward.Chunk
	for _, r := range output.Refusals(x.result.Rejected, x.chunk.Events) {
		events += int64(len(r.Entries))
		if u.cfg.Refuse == nil || u.takesWhole { // refuseAt has it
			continue
		}
		if whole == nil {
			whole = u.fetcher.readable(x)
		}
		part := whole
		if x.long == nil {
			part = output.Only(whole, r.Entries)
		}
		for i := range r.Entries {
			r.Entries[i] += x.first
		}
		u.letter(Refused{Position: x.end, Time: time.Now(), Reason: r.Reason, Entries: r.Entries, Chunk: part})
	}
	return events
}

// letter keeps refused entries for the next commit, which is urgent when they take much memory.
func (u *outcomes) letter(r Refused) {
	u.letters = append(u.letters, r)
	u.letterBytes += int64(len(r.Chunk.Entries))
	u.soon = u.soon || u.letterBytes >= u.cfg.Bytes
}

// refuseUpTo makes the refused entries up to a position dead letters.
func (u *outcomes) refuseUpTo(ctx context.Context, p journal.Position) error {
	n := slices.IndexFunc(u.letters, func(r Refused) bool { return r.Position > p })
	if n < 0 {
		n = len(u.letters)
	}
	for n > 0 {
		err := u.cfg.Refuse(ctx, u.letters[:n])
		if err == nil {
			break
		}
		u.care.fail(fmt.Errorf("dead letters: %w", err), retryPause)
		if err := await.Pause(ctx, retryPause); err != nil {
			return err
		}
		if b := u.cfg.Behind; b != nil && b.Reason == "" && b.Over(u.committed) != nil {
			return errBehind // and these are given up with the rest
		}
	}
	u.letters, u.letterBytes = slices.Delete(u.letters, 0, n), 0
	return nil
}

// errDeadly is why a record is a dead letter on which the process has ended.
var errDeadly = errors.New("the process ended three times while nothing but this was in hand")

// refuseDeadly makes a record a dead letter.
func (u *outcomes) refuseDeadly(x *flight) {
	n := &u.counts
	u.soon = true
	n.Refused += int64(x.chunk.Events)
	if u.cfg.Refuse != nil {
		c := x.own
		u.letter(Refused{Position: x.end, Time: time.Now(), Reason: errDeadly.Error(), Chunk: &c})
	}
	x.result = output.Result{}
}

// forget drops what is not a dead letter yet.
func (u *outcomes) forget() {
	clear(u.letters)
	u.letters, u.letterBytes = u.letters[:0], 0
}
