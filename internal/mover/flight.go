// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"cmp"
	"slices"

	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/journal"
)

// A flight is a chunk from the cut to what becomes of it. It comes from a ring (feed), or from a
// spill (from, with seq its entry). One of a ring may be in a spill as well (inSpill, with seq its
// entry), or may get there yet (inJob).
type flight struct {
	window.Marked
	feed    *feed
	span    *span
	from    *backlog
	inSpill *backlog
	seq     uint64
	pos     journal.Position
	inJob   **flight // its place in what the disk's goroutine has: a spillJob, or flights to be put aside
	flying  bool     // the destination has it, or gave it up
	at      int      // in delivery.out; givenUpAt: no longer
	aside   bool     // a spill of its own (inSpill) has it in place of the ring, while it flies
	res     output.Result
	kept    uint64              // events that the destination refuses, and that are dead letters
	landed  func(output.Result) // made once
}

// asCut sorts flights as they were cut from rings, the oldest of which is the first.
func asCut(flights []*flight, rings []*feed) {
	slices.SortStableFunc(flights, func(a, b *flight) int {
		return cmp.Or(cmp.Compare(slices.Index(rings, a.feed), slices.Index(rings, b.feed)),
			cmp.Compare(a.First, b.First), cmp.Compare(a.Lane, b.Lane))
	})
}

// marked are the chunks of flights as package window knows them.
func marked(flights []*flight) []*window.Marked {
	all := make([]*window.Marked, len(flights))
	for i, f := range flights {
		all[i] = &f.Marked
	}
	return all
}

// origin is that of the ring or spill that the chunk comes from.
func (f *flight) origin() *origin {
	if f.from != nil {
		return f.from.origin
	}
	return f.feed.origin
}

// leaveSpill ends what a flight has with a spill that got it, or may get it yet: it is delivered or
// dropped from memory.
func (f *flight) leaveSpill() {
	if f.inJob != nil {
		*f.inJob, f.inJob = nil, nil
	}
	if sp := f.inSpill; sp != nil {
		f.inSpill = nil
		sp.doneWith(f.seq)
	}
}

// A pool is flights to be used again, and the memory of their entries.
type pool struct {
	window.Buffers
	land  func(f *flight, r output.Result) // what the destination calls
	limit int                              // flights kept
	free  []*flight
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
	f.Release(&p.Buffers)
	fn := f.landed
	*f = flight{landed: fn}
	if len(p.free) < p.limit {
		p.free = append(p.free, f)
	}
}
