// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"slices"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/journal"
)

// A relief puts chunks that are with the destination into a spill as well, so that the rings of
// this process need not keep them: they may be all that a small ring has room for. The destination
// goes on with them; only a successor reads that spill:
//
//	on its way, under its mark ──► and stored: set aside, without a mark ──► done: its entry is, too
//	                                                                   └───► given up by Close: its entry is left
//
// What is spilled already is younger. So it is not the own spill, but one that a successor reads
// before that. Not so where the destination has states: the one in a ring's header says how far the
// chunks under marks are done, and cannot say it of these.
type relief struct {
	*core
	pool    *pool
	shelf   *shelf
	failed  func(error) // told why the disk took nothing
	working bool        // the disk's goroutine has some
	aside   []*backlog  // the spills
}

// begin has chunks put aside.
func (r *relief) begin(flights []*flight) {
	if len(flights) == 0 || r.resumer != nil || r.working {
		return
	}
	r.working = true
	chunks := make([]forward.Chunk, len(flights))
	ids := make([][idLen]byte, len(flights))
	at := make([]journal.Position, len(flights))
	for i, f := range flights {
		f.Lend() // it may land while the disk reads it
		chunks[i], ids[i] = f.Chunk, f.ID
		chunks[i].ID = ids[i][:]
		f.inJob = &flights[i]
	}
	r.disk.do("writing to "+r.cfg.Dir, func() {
		sp, n, err := r.shelf.putAside(chunks, at)
		if !r.mail.post(func() { r.done(sp, flights, at[:n], err) }) && sp != nil {
			r.report(sp.Discard()) // what is undone of it is under marks still; the rest would come twice
		}
	})
}

// done takes note of what is stored.
func (r *relief) done(sp *spill.Spill, flights []*flight, at []journal.Position, err error) {
	r.working = false
	if err != nil {
		r.failed(err)
	}
	var b *backlog
	if sp != nil {
		b = newBacklog(r.core, r.shelf, r.pool, sp, nil)
		r.aside = append(r.aside, b)
	}
	for i, f := range flights {
		if f == nil {
			f = &flight{} // it has landed
		} else if f.inJob == &flights[i] {
			f.inJob = nil
		}
		if i < len(at) {
			b.putAside(f, at[i])
		}
	}
}

// putAside adds a chunk that is in memory as well. A flight that has ended, or that the destination
// has given up meanwhile, is in the care of its ring. What the destination just says of one is not
// looked at: that is for delivery.landing.
func (sp *backlog) putAside(f *flight, at journal.Position) {
	e := entry{Entry: spill.Entry{Pos: at, Bytes: f.Bytes, Events: uint32(f.Chunk.Events)}, span: f.span, done: true}
	if f.flying && f.at != givenUpAt {
		f.inSpill, f.pos, f.seq, f.aside = sp, at, sp.first+uint64(sp.entries.Len()), true
		e.f, e.done = f, false
		sp.count.spilled.Add(uint64(f.Chunk.Events))
		f.Unmark()
		sp.cfg.fault("put aside")
	}
	sp.push(e)
	sp.next++ // it is not to be read
	sp.pop()
}

// again lets go of the spills in which nothing is left, and notes how far others are done.
func (r *relief) again() {
	r.aside = slices.DeleteFunc(r.aside, func(sp *backlog) bool {
		if sp.entries.Len() > 0 {
			sp.advance()
			return false
		}
		sp.remove()
		return true
	})
}

// leave lets go of all that is left after again, for successors to take over.
func (r *relief) leave() (dirs []string) {
	for _, sp := range r.aside {
		dirs = append(dirs, sp.Dir)
		sp.leave()
	}
	return dirs
}
