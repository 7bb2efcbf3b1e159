// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

const idLen = 24 // of a chunk id of ours, and of a mark's label

// A flight is a chunk from the cut to what becomes of it. It comes from a ring (src, with slot the
// mark that covers it), or from a spill (from, with seq its entry). One of a ring may be in the own
// spill as well (twin, with seq its entry), or may get there yet (handed).
type flight struct {
	chunk  forward.Chunk
	id     [idLen]byte
	bytes  uint64 // of the payloads
	src    *source
	slot   int  // -1: no mark
	to     byte // the mark's last character
	first  uint64
	last   uint64
	lane   uint16
	under  *sequence // whose mark covers it in place of one of its own
	span   *span
	from   *backlog
	twin   *backlog
	seq    uint64
	pos    journal.Position
	handed **flight // its place in a handover
	flying bool     // the destination has it, or gave it up
	lent   bool     // a disk that hangs may read its entries
	res    output.Result
	kept   uint64              // events that the destination refuses, and that are dead letters
	landed func(output.Result) // made once
}

// origin is the process whose chunk it is.
func (f *flight) origin() *origin {
	if f.from != nil {
		return f.from.origin
	}
	return f.src.origin
}

// leaveSpill ends what a flight has with a spill that got it, or may get it yet: it is delivered or
// dropped from memory.
func (f *flight) leaveSpill() {
	if f.handed != nil {
		*f.handed, f.handed = nil, nil
	}
	if sp := f.twin; sp != nil {
		f.twin = nil
		sp.doneWith(f.seq)
	}
}

// A pool is flights to be used again, and the memory of their entries.
type pool struct {
	buffers
	land func(f *flight, r output.Result) // what the destination calls
	most int                              // flights kept
	free []*flight
}

func (p *pool) take() *flight {
	if n := len(p.free); n > 0 {
		f := p.free[n-1]
		p.free = p.free[:n-1]
		return f
	}
	f := &flight{}
	f.landed = func(r output.Result) { p.land(f, r) }
	return f
}

// release gives a flight's memory back.
func (p *pool) release(f *flight) {
	if f.under == nil && !f.lent {
		p.give(f.chunk.Entries)
	}
	fn := f.landed
	*f = flight{landed: fn}
	if len(p.free) < p.most {
		p.free = append(p.free, f)
	}
}

// A mark's label is the chunk's id; its last byte, which is always '=' in an id, says where the
// chunk is to go. What goes to the spill is younger than what is there, and what goes to the
// destination older: whoever adopts the ring has to know. With the last two the mark is for all
// records of a window, and the id is that of its first run.
const (
	toDestination     = '='
	toSpill           = '>'
	runsToDestination = 'D'
	runsToSpill       = 'S'
)

// toRuns is what a sequence has in place of toDestination and toSpill.
func toRuns(to byte) byte {
	if to == toSpill {
		return runsToSpill
	}
	return runsToDestination
}

// mark covers a chunk's records in the ring it came from. The table has room for all that may be
// cut (mostMarks); should more than four lanes have written in the same nanosecond, under seventeen
// tags and more, the last ones go without: a crash loses them.
func (f *flight) mark(to byte) bool {
	label := f.id
	label[idLen-1] = to
	slot, ok := f.src.r.Put(ring.Mark{First: f.first, Last: f.last, Lane: f.lane, Label: label})
	if ok {
		f.slot, f.to = slot, to
		f.src.marks++
	}
	return ok
}

// younger says that the mark of a chunk has it behind what is in the spill.
func (f *flight) younger() bool {
	if f.under != nil {
		return f.under.to == runsToSpill
	}
	return f.to == toSpill
}

// unmark says that a chunk is no longer in its ring's care.
func (f *flight) unmark() {
	if f.src == nil {
		return
	}
	f.src.out--
	switch {
	case f.under != nil:
		f.under.uncover()
	case f.slot >= 0:
		f.src.r.Clear(f.slot)
		f.src.marks--
		f.slot = -1
	}
}
