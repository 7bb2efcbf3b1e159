// SPDX-License-Identifier: Apache-2.0

package window

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
)

// IDLen is the length of a chunk's id, and of a mark's label.
const IDLen = 24

const (
	// MaxRuns is how many a window may have: each is a chunk.
	MaxRuns = 1024

	rawLen   = 16 // bytes of an id
	numberAt = 14 // of a run's number in them
)

// A mark's label is the chunk's id; its last byte, which is always '=' in an id, says where the
// chunk is to go. What goes to the spill is younger than what is there, and what goes to the
// destination older: a successor has to know. With the last two the mark is for all
// records of a window, and the id is that of its first run.
const (
	ToDestination     = '='
	ToSpill           = '>'
	RunsToDestination = 'D'
	RunsToSpill       = 'S'
)

// toRuns is what runs have in place of ToDestination and ToSpill.
func toRuns(to byte) byte {
	if to == ToSpill {
		return RunsToSpill
	}
	return RunsToDestination
}

// Runs are those of a window, all of them under one mark.
type Runs struct {
	To     byte // the mark's last character
	Left   int  // runs under the mark; the last ones
	Flying int  // of these, with the destination; the caller's

	of      *Feed
	slot    int    // of the mark; -1: none
	entries []byte // in which those of the runs lie; nil when each run has its own
	lent    bool   // another goroutine may read them for an unknown time
	mem     *Buffers
}

// nameRuns gives runs their ids: all have the same random bytes, and the number of the run in the
// window behind them.
func nameRuns(n int, id func(i int) *[IDLen]byte) {
	var raw [rawLen]byte
	rand.Read(raw[:numberAt]) // never fails
	var first [IDLen]byte
	RunID(&first, raw, 0)
	for i := range n {
		to := id(i)
		*to = first
		binary.BigEndian.PutUint16(raw[numberAt:], uint16(i))
		base64.StdEncoding.Encode(to[16:], raw[12:]) // the 16 characters before are of 12 bytes that do not change
	}
}

// RunID makes the id of a run of that number. raw is what the ids of its window begin with.
func RunID(id *[IDLen]byte, raw [rawLen]byte, number int) {
	binary.BigEndian.PutUint16(raw[numberAt:], uint16(number))
	base64.StdEncoding.Encode(id[:], raw[:])
}

// ParseRun takes the id of a run, or the label of a mark, apart. raw is without the number.
func ParseRun(id [IDLen]byte) (raw [rawLen]byte, number int, ok bool) {
	id[IDLen-1] = ToDestination
	var b [rawLen + 2]byte
	if n, err := base64.StdEncoding.Decode(b[:], id[:]); err != nil || n != rawLen {
		return raw, 0, false
	}
	copy(raw[:], b[:numberAt])
	return raw, int(binary.BigEndian.Uint16(b[numberAt:])), true
}

// uncover says that a run is no longer in its ring's care.
func (q *Runs) uncover() {
	if q.Left--; q.Left == 0 {
		q.lift()
	}
}

// lift takes away the mark of runs of which nothing is left, and its memory.
func (q *Runs) lift() {
	if q.slot >= 0 {
		q.of.Ring.Clear(q.slot)
		q.of.marks--
		q.slot = -1
	}
	if q.entries != nil && !q.lent {
		q.mem.give(q.entries)
	}
	q.entries = nil
}
