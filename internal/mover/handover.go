// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/journal"
)

// A handover is chunks that the disk's goroutine is to put into the own spill. Until they are known
// to be stored they stay flights, under their marks:
//
//	       stored               the flight ends, and its entry is read when its turn comes
//	hand ─────────────────────► spilled
//	 ▲ │   no room, or an error                   the flight is stuck: it is handed over again, or goes to
//	 │ ├───────────────────────► spilled          the destination when that has all that is older. If it was
//	 └─│───────────────────────────┘              appended, its entry is loose: maybe it is stored
//	   │   the disk hangs
//	   └───────────────────────► late             the same; what comes of it counts when the disk is back
//
// The disk's goroutine has copies of the chunks. So a flight can end at any time; but the memory of
// entries is not used again that a disk which hangs may read.
type handover struct {
	flights []*flight // nil: ended
	chunks  []forward.Chunk
	ids     [][idLen]byte
	to      *spill.Spill       // the own spill as the loop knew it; nil: none
	at      []journal.Position // in it; 0: not appended
	known   []bool             // an earlier handover appended it
	loose   journal.Position   // the end of what was appended before and may not be stored
	late    bool
}

// newHandover is one of flights to a spill, which may be nil.
func newHandover(flights []*flight, to *backlog) *handover {
	n := len(flights)
	h := &handover{
		flights: flights, chunks: make([]forward.Chunk, n), ids: make([][idLen]byte, n),
		at: make([]journal.Position, n), known: make([]bool, n),
	}
	for i, f := range flights {
		h.chunks[i], h.ids[i], h.at[i], h.known[i] = f.Chunk, f.ID, f.pos, f.twin != nil
		h.chunks[i].ID = h.ids[i][:]
		f.handed = &h.flights[i]
	}
	if to != nil {
		h.to, h.loose = to.Spill, to.looseTo()
	}
	return h
}

// afresh forgets what was appended before: the spill that it was appended to is gone.
func (h *handover) afresh() {
	clear(h.at)
	clear(h.known)
	h.loose = 0
}

// end is that of all that was appended to the spill, 0 if nothing was.
func (h *handover) end() journal.Position {
	to := h.loose
	for _, p := range h.at {
		to = max(to, p)
	}
	return to
}

// lag has what was handed over be nothing that others wait for: the disk hangs. It may yet read the
// entries.
func (h *handover) lag() {
	h.late = true
	for _, f := range h.flights {
		f.Lend()
	}
}
