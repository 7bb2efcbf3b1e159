// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"

	"github.com/spillwaylog/spillway/ring"
)

// A sequence is the runs of a window, all of them under one mark (Config.Ordered). It belongs to the mover's goroutine.
type sequence struct {
	src     *source
	slot    int    // of the mark; -1: none
	to      byte   // the mark's last character
	last    uint64 // key of the last record
	left    int    // runs under the mark
	flying  int    // of these, with the destination
	entries []byte // in which those of the runs lie; nil when each run has its own
}

const (
	mostRuns   = 1024         // of a window: each is a chunk
	mostFlying = 4 * mostRuns // chunks that may be with an ordered destination
	rawLen     = 16           // bytes of an id
	numberAt   = 14           // of a run's number in them
)

// nameRuns gives runs their ids: all have the same random bytes, and the number of the run in the window behind them.
func nameRuns(runs []*flight) {
	var raw [rawLen]byte
	rand.Read(raw[:numberAt]) // never fails
	for i, f := range runs {
		runID(&f.id, raw, i)
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

// cover puts runs of one window, which follow each other, under one mark: its label is the id of the first.
func (m *Mover) cover(runs []*flight, last uint64, to byte) *sequence {
	f := runs[0]
	q := &sequence{src: f.src, slot: -1, to: to, last: last, left: len(runs)}
	label := f.id
	label[idLen-1] = to
	if slot, ok := f.src.r.Put(ring.Mark{First: f.first, Last: last, Lane: f.lane, Label: label}); ok {
		q.slot = slot
		f.src.marks++
	}
	for _, f := range runs {
		f.under = q
	}
	return q
}

// divide puts the runs that the spill had no room for under a mark of their own. Those before them will be delivered from the spill, which forgets their ids then, while
// these may wait: whoever adopts both would take the whole window for undone. A later mark counts from its first run on, so no run is ever under none, or under two.
func (m *Mover) divide(stuck []*flight) bool {
	if len(stuck) == 0 || stuck[0].under == nil {
		return false
	}
	q := stuck[0].under
	n := 1
	for n < len(stuck) && stuck[n].under == q {
		n++
	}
	if n == q.left || q.slot < 0 {
		return false
	}
	q.left -= n
	q.entries = nil // they lie in it, so it cannot be used again
	m.cover(stuck[:n], q.last, q.to)
	return true
}

// uncover says that a run is no longer in its ring's care.
func (m *Mover) uncover(q *sequence) {
	if q.left--; q.left > 0 {
		return
	}
	if q.slot >= 0 {
		q.src.r.Clear(q.slot)
		q.src.marks--
		q.slot = -1
	}
	if q.entries != nil {
		m.giveBuffer(q.entries)
		q.entries = nil
	}
}
