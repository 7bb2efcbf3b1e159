// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A flight is a record from the journal until the cursor may pass it.
type flight struct {
	gen      int // of the output that has it
	end      journal.Position
	chunk    *forward.Chunk // own, or a recent one
	own      forward.Chunk
	data     []byte                 // the record
	entries  []byte                 // of own, if they were compressed
	id       []byte                 // of own, if it was made here
	held     interface{ Release() } // of a recent chunk
	bytes    int64
	result   output.Result
	done     bool
	broken   bool                // the record is no chunk, or what follows of it
	idle     bool                // the output gets nothing of it
	sifted   bool                // steps made its chunk
	filtered int64               // events that it would have without them
	refused  int64               // events that steps made dead letters
	failed   []Refused           // these, until they are
	learnt   uint64              // what steps call its record, if it is the end of it
	deadly   bool                // it was not submitted: the process died on it
	part     bool                // more of the record follows
	first    int                 // which entry of the record is the first
	number   int                 // which piece of the record
	long     *forward.Long       // the one event of chunk, which has no entries then; nil: it is an ordinary one
	turn     func()              // ends the turn of a large event
	land     func(output.Result) // what the output calls, made once
}

// size is what a flight's buffers take.
func (x *flight) size() int64 { return int64(cap(x.data) + cap(x.entries)) }

// endTurn lets other large events be in memory.
func (x *flight) endTurn() {
	if x.turn != nil {
		x.turn()
	}
}
