// SPDX-License-Identifier: Apache-2.0

package output

import (
	"slices"

	"github.com/spillwaylog/spillway/forward"
)

// A Refusal is the entries of one chunk that are refused for good for one reason.
type Refusal struct {
	Reason  string
	Entries []int // their indices in the chunk, ascending
}

// Refusals sorts what a Result says of a chunk with so many events by reason, in the order in which
// the reasons come. An entry is refused once; what is no entry of the chunk is left out.
func Refusals(rejected []Rejected, events int) []Refusal {
	if len(rejected) == 0 {
		return nil
	}
	byReason := map[string][]int{}
	var reasons []string
	for _, r := range rejected {
		reason := "refused"
		if r.Err != nil {
			reason = r.Err.Error()
		}
		if _, known := byReason[reason]; !known {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], r.Entry)
	}
	var all []Refusal
	taken := map[int]bool{}
	for _, reason := range reasons {
		entries := byReason[reason]
		if slices.Contains(entries, AllEntries) {
			entries = nil
			for i := range events {
				entries = append(entries, i)
			}
		}
		entries = slices.DeleteFunc(entries, func(i int) bool {
			twice := taken[i] || i < 0 || i >= events
			taken[i] = true
			return twice
		})
		if len(entries) > 0 {
			slices.Sort(entries)
			all = append(all, Refusal{Reason: reason, Entries: entries})
		}
	}
	return all
}

// Only is a copy of a chunk, which is not compressed, with some of its entries: their indices are
// ascending.
func Only(c *forward.Chunk, entries []int) *forward.Chunk {
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
