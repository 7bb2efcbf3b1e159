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
	n.Bytes += x.result.Bytes
	f.sent.bytes.Add(x.result.Bytes)
}

// refuse keeps the entries of a flight that were rejected, by reason, and returns how many.
func (f *Follower) refuse(x *flight) (events int64) {
	if len(x.result.Rejected) == 0 {
		return 0
	}
	byReason := map[string][]int{}
	var reasons []string
	for _, r := range x.result.Rejected {
		reason := "refused"
		if r.Err != nil {
			reason = r.Err.Error()
		}
		if _, known := byReason[reason]; !known {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], r.Entry)
	}
	var whole *forward.Chunk
	taken := map[int]bool{} // an entry is refused once
	for _, reason := range reasons {
		entries := byReason[reason]
		if slices.Contains(entries, output.All) {
			entries = nil
			for i := range x.chunk.Events {
				entries = append(entries, i)
			}
		}
		entries = slices.DeleteFunc(entries, func(i int) bool {
			twice := taken[i] || i < 0 || i >= x.chunk.Events
			taken[i] = true
			return twice
		})
		if len(entries) == 0 {
			continue
		}
		slices.Sort(entries)
		events += int64(len(entries))
		if f.cfg.Refuse == nil {
			continue
		}
		if whole == nil {
			whole = f.readable(x)
		}
		part := whole
		if x.long == nil {
			part = only(whole, entries)
		}
		for i := range entries {
			entries[i] += x.first
		}
		f.letter(Refused{Position: x.end, Time: time.Now(), Reason: reason, Entries: entries, Chunk: part})
	}
	return events
}

// letter keeps refused entries for the next commit, which is urgent when they take much memory.
func (f *Follower) letter(r Refused) {
	s := &f.step
	s.letters = append(s.letters, r)
	s.letterBytes += int64(len(r.Chunk.Entries))
	s.soon = s.soon || s.letterBytes >= f.cfg.Bytes
}

// readable returns the chunk of a flight with its entries uncompressed, unless it is a long event: the chunk
// itself, if the output has not had it as it came. The entries are valid until the next call.
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

// only is a copy of a chunk with some of its entries, uncompressed.
func only(c *forward.Chunk, entries []int) *forward.Chunk {
	part := &forward.Chunk{Tag: c.Tag, Signal: c.Signal, Events: len(entries)}
	if len(entries) == c.Events {
		part.Entries = slices.Clone(c.Entries)
		return part
	}
	r := forward.ReadEntries(c.Entries)
	for i := 0; len(entries) > 0; i++ {
		e, ok := r.Next()
		if !ok {
			break
		}
		if i == entries[0] {
			part.Entries = append(part.Entries, e.Raw...)
			entries = entries[1:]
		}
	}
	part.Events -= len(entries) // these cannot be read
	return part
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
