// SPDX-License-Identifier: Apache-2.0

package follow

import (
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
	Entries  []int          // their indices in the record; nil: all
	Chunk    *forward.Chunk // these entries alone; it shares no bytes
}

// count adds a finished flight to what is beyond stop, and keeps what was refused of it.
func (f *Follower) count(x *flight) {
	s := &f.step
	n := &s.counts
	n.Chunks++
	events := int64(x.chunk.Events)
	if x.broken {
		n.Broken++
		n.Unreadable += events
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
		f.step.letters = append(f.step.letters, Refused{
			Position: x.end, Time: time.Now(), Reason: reason, Entries: entries, Chunk: only(x.chunk, entries),
		})
	}
	return events
}

// only is a copy of a chunk with some of its entries.
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
	return part
}
