// SPDX-License-Identifier: Apache-2.0

package window

import (
	"cmp"
	"slices"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/ring"
)

// A Marked is a chunk under its mark in the ring that it was cut from. One that comes from
// elsewhere has none: see Foreign.
type Marked struct {
	Chunk forward.Chunk
	ID    [IDLen]byte
	Bytes uint64 // of the payloads
	First uint64 // key of its first record
	Last  uint64
	Lane  uint16 // of the first record
	Runs  *Runs  // whose mark covers it in place of one of its own

	of   *Feed
	slot int  // -1: no mark
	to   byte // the mark's last character
	lent bool // another goroutine may read the entries for an unknown time
}

// Foreign makes k a chunk that has no mark.
func (k *Marked) Foreign(c *forward.Chunk, bytes uint64) {
	*k = Marked{Chunk: *c, Bytes: bytes, slot: -1}
}

// MoveTo makes to what k was.
func (k *Marked) MoveTo(to *Marked) {
	*to = *k
	to.Chunk.ID = to.ID[:]
}

// mark covers a chunk's records in the ring it came from. The table has room for all that may be
// cut (maxMarks); should more than four lanes have written in the same nanosecond, under seventeen
// tags and more, the last ones go without: a crash loses them.
func (k *Marked) mark(to byte) bool {
	label := k.ID
	label[IDLen-1] = to
	slot, ok := k.of.Ring.Put(ring.Mark{First: k.First, Last: k.Last, Lane: k.Lane, Label: label})
	if ok {
		k.slot, k.to = slot, to
		k.of.marks++
	}
	return ok
}

// Covered says that a mark in the ring has the chunk in its care.
func (k *Marked) Covered() bool {
	if k.Runs != nil {
		return k.Runs.slot >= 0
	}
	return k.of != nil && k.slot >= 0
}

// Younger says that the mark of a chunk has it behind what is in the spill.
func (k *Marked) Younger() bool {
	if k.Runs != nil {
		return k.Runs.To == RunsToSpill
	}
	return k.to == ToSpill
}

// Unmark says that a chunk is no longer in its ring's care. A second time it does nothing.
func (k *Marked) Unmark() {
	if k.of == nil {
		return
	}
	k.of.Out--
	switch {
	case k.Runs != nil:
		k.Runs.uncover()
	case k.slot >= 0:
		k.of.Ring.Clear(k.slot)
		k.of.marks--
		k.slot = -1
	}
	k.of = nil
}

// Lend says that another goroutine may read the entries for an unknown time: their memory is not
// used again.
func (k *Marked) Lend() {
	k.lent = true
	if k.Runs != nil {
		k.Runs.lent = true
	}
}

// Release gives the memory of the entries back.
func (k *Marked) Release(mem *Buffers) {
	if k.Runs == nil && !k.lent {
		mem.give(k.Chunk.Entries)
	}
}

// cover puts runs of one window, which follow each other, under a mark of their own: its label is
// the id of the first. before are those that they are the last of, nil if there is none. A
// later mark counts from its first run on, so no run is ever under none, or under two. false: there
// was no room for it, and they stay where they are.
func cover(runs []*Marked, before *Runs, to byte, mem *Buffers) bool {
	k := runs[0]
	label := k.ID
	label[IDLen-1] = to
	q := &Runs{of: k.of, To: to, Left: len(runs), mem: mem}
	slot, ok := k.of.Ring.Put(ring.Mark{First: k.First, Last: runs[len(runs)-1].Last, Lane: k.Lane, Label: label})
	switch {
	case ok:
		k.of.marks++
		q.slot = slot
	case before != nil:
		return false
	default:
		q.slot = -1
	}
	for _, k := range runs {
		k.Runs = q
	}
	if before == nil {
		return true
	}
	// The entries of the runs lie in those that they were under before.
	q.lent = before.lent
	if before.Left -= len(runs); before.Left == 0 {
		q.entries = before.entries
	}
	before.entries = nil
	if before.Left == 0 {
		before.lift()
	}
	return true
}

// Readdress changes the marks of chunks that did not fit into the spill. With ToSpill those of a
// window that did fit stay under another mark: they will be delivered from the spill, which forgets
// their ids then, while these may wait, and a successor of both would take the whole window for
// undone. With ToDestination they go there after all, the spill being empty, and what goes to the
// spill from now on is younger. divided is called when a window has got another mark.
func Readdress(stuck []*Marked, to byte, divided func()) {
	for len(stuck) > 0 {
		k, n := stuck[0], together(stuck)
		switch {
		case n > 0:
			if q := k.Runs; q.slot >= 0 && (q.To != toRuns(to) || n < q.Left) &&
				cover(stuck[:n], q, toRuns(to), q.mem) {
				divided()
			}
		case k.slot >= 0 && k.to != to:
			if old := k.slot; k.mark(to) {
				k.of.Ring.Clear(old)
				k.of.marks--
			}
		}
		stuck = stuck[max(n, 1):]
	}
}

// LeaveRuns has the marks of windows that are done in part cover only the runs that are left: the
// next process does not deliver the others again. undone are the chunks that are left.
func LeaveRuns(undone []*Marked) {
	left := map[*Runs][]*Marked{}
	for _, k := range undone {
		if q := k.Runs; q != nil && q.slot >= 0 {
			left[q] = append(left[q], k)
		}
	}
	for q, runs := range left {
		slices.SortFunc(runs, func(a, b *Marked) int { return cmp.Compare(a.run(), b.run()) })
		first := runs[0].run()
		if first > 0 && len(runs) == q.Left && runs[len(runs)-1].run()-first == len(runs)-1 {
			cover(runs, q, q.To, q.mem)
		}
	}
}

// run is a run's number in its window.
func (k *Marked) run() int {
	_, n, _ := ParseRun(k.ID)
	return n
}

// together is how many of the first chunks are runs under one mark.
func together(all []*Marked) (n int) {
	for n < len(all) && all[n].Runs != nil && all[n].Runs == all[0].Runs {
		n++
	}
	return n
}
