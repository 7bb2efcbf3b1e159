// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/journal"
)

// A spillJob is chunks that the disk's goroutine is to put into the own spill. Until they are known
// to be stored they stay flights, under their marks:
//
//	       stored               the flight ends, and its entry is read when its turn comes
//	toDisk ───────────────────► spilled
//	 ▲ │   no room, or an error                   the flight is stuck: it is given to the disk again, or goes to
//	 │ ├───────────────────────► spilled          the destination when that has all that is older. If it was
//	 └─│───────────────────────────┘              appended, its entry is unflushed: maybe it is stored
//	   │   the disk hangs
//	   └───────────────────────► late             the same; what comes of it counts when the disk is back
//
// The disk's goroutine has copies of the chunks. So a flight can end at any time; but the memory of
// entries is not used again that a disk which hangs may read.
type spillJob struct {
	flights   []*flight // nil: ended
	chunks    []forward.Chunk
	ids       [][idLen]byte
	to        *spill.Spill       // the own spill as the loop knew it; nil: none
	at        []journal.Position // in it; 0: not appended
	known     []bool             // an earlier spillJob appended it
	unflushed journal.Position   // the end of what was appended before and may not be stored
	late      bool
	covered   bool // a successor finds all of it in rings; known once the mover ends
}

// newSpillJob makes one of flights. to is the own spill, nil if there is none yet.
func newSpillJob(flights []*flight, to *backlog) *spillJob {
	n := len(flights)
	j := &spillJob{
		flights: flights, chunks: make([]forward.Chunk, n), ids: make([][idLen]byte, n),
		at: make([]journal.Position, n), known: make([]bool, n),
	}
	for i, f := range flights {
		j.chunks[i], j.ids[i], j.at[i], j.known[i] = f.Chunk, f.ID, f.pos, f.inSpill != nil
		j.chunks[i].ID = j.ids[i][:]
		f.inJob = &j.flights[i]
	}
	if to != nil {
		j.to, j.unflushed = to.Spill, to.unflushedTo()
	}
	return j
}

// afresh forgets what was appended before: the spill that it was appended to is gone.
func (j *spillJob) afresh() {
	clear(j.at)
	clear(j.known)
	j.unflushed = 0
}

// end is that of all that was appended to the spill, 0 if nothing was.
func (j *spillJob) end() journal.Position {
	to := j.unflushed
	for _, p := range j.at {
		to = max(to, p)
	}
	return to
}

// lag notes that the disk hangs: nothing waits for this job any more. The disk may yet read the
// entries.
func (j *spillJob) lag() {
	j.late = true
	for _, f := range j.flights {
		f.Lend()
	}
}
