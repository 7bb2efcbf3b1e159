// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// Refused are entries of one record that an output refused for good, all for one reason.
type Refused struct {
	Position journal.Position // the end of the record
	Time     time.Time        // of the refusal
	Reason   string
	Entries  []int          // their indices in the record
	Chunk    *forward.Chunk // these entries alone, uncompressed; it shares no bytes
}

// count adds a finished flight to what is beyond stop, and keeps what was refused of it.
func (f *Follower) count(x *flight) {
	s := &f.step
	n := &s.counts
	if !x.part {
		n.Chunks++
	}
	events := int64(x.chunk.Events)
	if x.broken {
		n.Broken++
		n.Unreadable += events
		return
	}
	if x.condemned {
		f.sentence(x)
		return
	}
	refused := f.refuse(x)
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
	f.sent.bytes.Add(x.result.Bytes)
}

// refuse keeps the entries of a flight that were rejected, by reason, and returns how many.
func (f *Follower) refuse(x *flight) (events int64) {
	var whole *forward.Chunk
	for _, r := range output.Refusals(x.result.Rejected, x.chunk.Events) {
		events += int64(len(r.Entries))
		if f.cfg.Refuse == nil || f.step.whole { // refuseAt has it
			continue
		}
		if whole == nil {
			whole = f.readable(x)
		}
		part := whole
		if x.long == nil {
			part = output.Only(whole, r.Entries)
		}
		for i := range r.Entries {
			r.Entries[i] += x.first
		}
		f.letter(Refused{Position: x.end, Time: time.Now(), Reason: r.Reason, Entries: r.Entries, Chunk: part})
	}
	return events
}

// refuseAt makes entries of a chunk dead letters at once, for an output that commits the position
// behind them itself. The output calls it from a goroutine of its own.
func (f *Follower) refuseAt(ctx context.Context, gen int, token []byte, c *forward.Chunk, rejected []output.Rejected) error {
	p, err := positionOf(token)
	switch {
	case err != nil:
		return err
	case !f.inbox.counts(gen):
		return output.ErrClosed
	case f.cfg.Refuse == nil:
		return nil
	}
	var all []Refused
	for _, r := range output.Refusals(rejected, c.Events) {
		all = append(all, Refused{Position: p, Time: time.Now(), Reason: r.Reason, Entries: r.Entries, Chunk: output.Only(c, r.Entries)})
	}
	return f.cfg.Refuse(ctx, all)
}

// letter keeps refused entries for the next commit, which is urgent when they take much memory.
func (f *Follower) letter(r Refused) {
	s := &f.step
	s.letters = append(s.letters, r)
	s.letterBytes += int64(len(r.Chunk.Entries))
	s.soon = s.soon || s.letterBytes >= f.cfg.Bytes
}

// readable returns the chunk of a flight with its entries uncompressed, unless it is a long event:
// the chunk itself, if the output has not had it as it came. The entries are valid until the next
// call.
func (f *Follower) readable(x *flight) *forward.Chunk {
	if x.long == nil {
		return f.inflated(x.chunk)
	}
	c, err := x.long.Packed()
	if err != nil {
		f.cfg.Report(fmt.Errorf("a refused entry cannot be read: %w", err))
		c = &forward.Chunk{Tag: x.chunk.Tag}
	}
	return c
}

// inflated returns a chunk with its entries uncompressed.
func (f *Follower) inflated(c *forward.Chunk) *forward.Chunk {
	if c.Compressed == nil || c.Entries != nil {
		return c
	}
	inflated := *c
	if err := f.step.inflater.Inflate(&inflated); err != nil {
		f.cfg.Report(fmt.Errorf("refused entries cannot be read: %w", err))
	}
	return &inflated
}

// refuseUpTo makes the refused entries up to a position dead letters.
func (f *Follower) refuseUpTo(ctx context.Context, p journal.Position) error {
	s := &f.step
	n := slices.IndexFunc(s.letters, func(r Refused) bool { return r.Position > p })
	if n < 0 {
		n = len(s.letters)
	}
	for n > 0 {
		err := f.cfg.Refuse(ctx, s.letters[:n])
		if err == nil {
			break
		}
		f.fail(fmt.Errorf("dead letters: %w", err), retryPause)
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
		if b := f.cfg.Behind; b != nil && b.Reason == "" && b.Over(s.committed) != nil {
			return errBehind // and these are given up with the rest
		}
	}
	s.letters, s.letterBytes = slices.Delete(s.letters, 0, n), 0
	return nil
}
