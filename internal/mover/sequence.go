// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"github.com/spillwaylog/spillway/ring"
)

// A sequence is the runs of a window, all of them under one mark (Config.Ordered). It belongs to
// the mover's goroutine.
type sequence struct {
	src     *source
	slot    int    // of the mark; -1: none
	to      byte   // the mark's last character
	left    int    // runs under the mark; the last ones
	flying  int    // of these, with the destination
	entries []byte // in which those of the runs lie; nil when each run has its own
	lent    bool   // a disk that hangs may read them
	mem     *buffers
}

const (
	mostRuns   = 1024         // of a window: each is a chunk
	mostFlying = 4 * mostRuns // chunks that may be with an ordered destination
	rawLen     = 16           // bytes of an id
	numberAt   = 14           // of a run's number in them
)

// nameRuns gives runs their ids: all have the same random bytes, and the number of the run in the
// window behind them.
func nameRuns(runs []*flight) {
	var raw [rawLen]byte
	rand.Read(raw[:numberAt]) // never fails
	var id [idLen]byte
	runID(&id, raw, 0)
	for i, f := range runs {
		f.id = id
		binary.BigEndian.PutUint16(raw[numberAt:], uint16(i))
		base64.StdEncoding.Encode(f.id[16:], raw[12:]) // the 16 characters before are of 12 bytes that do not change
	}
}

func runID(id *[idLen]byte, raw [rawLen]byte, number int) {
	binary.BigEndian.PutUint16(raw[numberAt:], uint16(number))
	base64.StdEncoding.Encode(id[:], raw[:])
}

// parseRun takes an id, or the label of a mark, apart. raw is without the number.
func parseRun(id [idLen]byte) (raw [rawLen]byte, number int, ok bool) {
	id[idLen-1] = toDestination
	var b [rawLen + 2]byte
	if n, err := base64.StdEncoding.Decode(b[:], id[:]); err != nil || n != rawLen {
		return raw, 0, false
	}
	copy(raw[:], b[:numberAt])
	return raw, int(binary.BigEndian.Uint16(b[numberAt:])), true
}

// cover puts runs of one window, which follow each other, under a mark of their own: its label is
// the id of the first. before is the sequence that they are the last of, nil if there is none. A
// later mark counts from its first run on, so no run is ever under none, or under two. false: there
// was no room for it, and they stay where they are.
func cover(runs []*flight, before *sequence, to byte, mem *buffers) bool {
	f := runs[0]
	label := f.id
	label[idLen-1] = to
	q := &sequence{src: f.src, to: to, left: len(runs), mem: mem}
	slot, ok := f.src.r.Put(ring.Mark{First: f.first, Last: runs[len(runs)-1].last, Lane: f.lane, Label: label})
	switch {
	case ok:
		f.src.marks++
		q.slot = slot
	case before != nil:
		return false
	default:
		q.slot = -1
	}
	for _, f := range runs {
		f.under = q
	}
	if before == nil {
		return true
	}
	// The entries of the runs lie in those of the sequence before.
	q.lent = before.lent
	if before.left -= len(runs); before.left == 0 {
		q.entries = before.entries
	}
	before.entries = nil
	if before.left == 0 {
		before.lift()
	}
	return true
}

// readdress changes the marks of chunks that did not fit into the spill. With toSpill those of a
// window that did fit stay under another mark: they will be delivered from the spill, which forgets
// their ids then, while these may wait, and whoever adopts both would take the whole window for
// undone. With toDestination they go there after all, the spill being empty, and what goes to the
// spill from now on is younger. divided is called when a window has got another mark.
func readdress(stuck []*flight, to byte, divided func()) {
	for len(stuck) > 0 {
		f, n := stuck[0], together(stuck)
		switch {
		case n > 0:
			if q := f.under; q.slot >= 0 && (q.to != toRuns(to) || n < q.left) && cover(stuck[:n], q, toRuns(to), q.mem) {
				divided()
			}
		case f.slot >= 0 && f.to != to:
			if old := f.slot; f.mark(to) {
				f.src.r.Clear(old)
				f.src.marks--
			}
		}
		stuck = stuck[max(n, 1):]
	}
}

// leaveRuns has the marks of windows that are done in part cover only the runs that are left: the
// next process does not deliver the others again. undone are the chunks that are left.
func leaveRuns(undone []*flight) {
	left := map[*sequence][]*flight{}
	for _, f := range undone {
		if q := f.under; q != nil && q.slot >= 0 {
			left[q] = append(left[q], f)
		}
	}
	for q, runs := range left {
		slices.SortFunc(runs, func(a, b *flight) int { return cmp.Compare(a.run(), b.run()) })
		first := runs[0].run()
		if first > 0 && len(runs) == q.left && runs[len(runs)-1].run()-first == len(runs)-1 {
			cover(runs, q, q.to, q.mem)
		}
	}
}

// run is a run's number in its window.
func (f *flight) run() int {
	_, n, _ := parseRun(f.id)
	return n
}

// together is how many of the first chunks are runs of one sequence.
func together(flights []*flight) (n int) {
	for n < len(flights) && flights[n].under != nil && flights[n].under == flights[0].under {
		n++
	}
	return n
}

// uncover says that a run is no longer in its ring's care.
func (q *sequence) uncover() {
	if q.left--; q.left == 0 {
		q.lift()
	}
}

// lift takes away the mark of a sequence of which nothing is left, and its memory.
func (q *sequence) lift() {
	if q.slot >= 0 {
		q.src.r.Clear(q.slot)
		q.src.marks--
		q.slot = -1
	}
	if q.entries != nil && !q.lent {
		q.mem.give(q.entries)
	}
	q.entries = nil
}
