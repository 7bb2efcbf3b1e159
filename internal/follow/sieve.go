// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/journal"
)

// A sieve makes of a record, or of a piece of it, what Config.Sift leaves: a flight for each run of
// events with one tag.
//
//	piece       │ app app app │ drop │ err err │ app │
//	flights      part          idle   part      the last one ends where the record does
//
// Steps may make much of little. So they stop when it is two pieces, which ends a flight's chunk,
// and go on with the rest of the piece when that is needed. As with pieces, the cursor passes the
// record, and a state counts, only with the last. Of which nothing is left becomes an idle flight,
// which is done without the output.
type sieve struct {
	*core
	splitter *splitter
	inflater forward.Inflater
	out      step.Sifted

	// The record in hand.
	from, end journal.Position
	base      []byte // its id, if it has one of Spillway's own
	number    int    // of its next flight
	first     int    // which of its events that are left is the next

	// The piece in hand.
	run, at int // the next of out.Runs, and where it begins
	more    bool
	tag     string
	signal  int
	rest    []byte // entries of it that steps have not seen
	index   int    // of the first of these in the record
	todo    int    // how many events they are
}

// pending says that flights of the piece in hand are still to come.
func (v *sieve) pending() bool { return v.run < len(v.out.Runs) || len(v.rest) > 0 }

// keepsRuns is how many runs, and failures, memory is kept for: more than steps make of a piece.
const keepsRuns = 1 << 13

// shrink lets go of memory that a large piece took.
func (v *sieve) shrink() {
	if !v.pending() && int64(cap(v.out.Entries)) > 2*v.cfg.Piece {
		v.out.Entries = nil
	}
}

// drop forgets the piece in hand.
func (v *sieve) drop() {
	v.out.Runs, v.run, v.end, v.rest = v.out.Runs[:0], 0, 0, nil
	if cap(v.out.Runs) > keepsRuns {
		v.out.Runs = nil
	}
	if cap(v.out.Failed) > keepsRuns {
		v.out.Failed = nil
	}
	v.shrink()
}

// takes is Sift.Takes; without a Sift all is taken.
func (v *sieve) takes(tag string) step.Share {
	if v.cfg.Sift == nil {
		return step.All
	}
	return v.cfg.Sift.Takes(tag)
}

// sift runs the steps over a flight's chunk, and makes it the first of what they leave.
func (v *sieve) sift(x *flight) error {
	c := x.chunk
	if v.end != x.end {
		v.end, v.from, v.number, v.first = x.end, v.taken, 0, 0
		of := c
		if v.splitter.cutting {
			of = &v.splitter.split.chunk
		}
		if v.base = v.base[:0]; of.UniqueID {
			v.base = append(v.base, of.ID...)
		}
	}
	v.more, v.tag, v.signal, v.index, v.todo = x.part, c.Tag, c.Signal, x.first, c.Events
	v.rest = nil
	v.splitter.cutting = v.splitter.cutting && x.part
	v.out.Most = 0
	if !v.takesWhole {
		v.out.Most = int(2 * v.cfg.Piece)
	}
	if err := v.batch(x, c.Entries); err != nil {
		return err
	}
	if x.held != nil {
		x.held.Release()
		x.held = nil
	}
	v.next(x)
	return nil
}

// batch runs the steps over entries of the piece in hand, perhaps not over all, and says of a
// flight what becomes of those of which nothing is left.
func (v *sieve) batch(x *flight, entries []byte) error {
	v.run, v.at = 0, 0
	if err := v.cfg.Sift.Sift(&v.out, v.tag, entries, uint64(v.end), v.index); err != nil {
		v.fail(x)
		return err
	}
	n := v.todo
	if len(v.out.Rest) > 0 {
		n = v.out.Events
		if v.rest == nil { // the entries are a flight's or a reader's, or those of a recent chunk
			v.out.Rest = slices.Clone(v.out.Rest)
		}
	}
	v.rest = v.out.Rest
	v.todo -= n
	v.index += v.out.Events
	x.failed = v.failures(v.end, v.tag, v.signal)
	x.refused = int64(len(v.out.Failed))
	x.filtered = int64(n-left(v.out.Runs)) - x.refused
	clear(v.out.Failed) // it aliases the entries
	if len(v.out.Runs) == 1 {
		x.entries, v.out.Entries = v.out.Entries, x.entries
	}
	return nil
}

// fail makes a flight one of all that is left of the record, which is no chunk.
func (v *sieve) fail(x *flight) {
	x.end, x.chunk, x.part = v.end, &x.own, false
	x.own = forward.Chunk{Tag: v.tag, Events: v.todo}
	if v.more {
		p := &v.splitter.split
		x.own.Events += p.chunk.Events - p.taken
		v.splitter.cutting = false
		v.splitter.endSplit()
	}
	v.drop()
}

// left counts the events of runs.
func left(runs []step.Run) (n int) {
	for i := range runs {
		n += runs[i].Events
	}
	return n
}

// fill makes the next flight of the piece in hand.
func (v *sieve) fill(x *flight) error {
	if v.run == len(v.out.Runs) {
		if err := v.batch(x, v.rest); err != nil {
			return err
		}
	}
	v.next(x)
	return nil
}

// next makes a flight of the next run; an idle one where there is none.
func (v *sieve) next(x *flight) {
	x.end, x.chunk, x.first, x.number, x.sifted = v.end, &x.own, v.first, v.number, true
	x.own = forward.Chunk{Tag: x.own.Tag}
	if v.run == len(v.out.Runs) {
		x.idle, x.part, x.bytes = true, v.more || v.pending(), 0
		return
	}
	r := &v.out.Runs[v.run]
	if len(v.out.Runs) > 1 {
		x.entries = append(x.entries[:0], v.out.Entries[v.at:r.End]...)
	}
	v.at = r.End
	v.run++
	v.number++
	v.first += r.Events
	x.part = v.more || v.pending()
	v.shrink()
	x.own = forward.Chunk{Tag: r.Tag, Signal: v.signal, Entries: x.entries, Events: r.Events}
	x.bytes = int64(len(x.entries))
}

// identify appends the id of a flight: of the record's, where that is known wherever it comes, and
// else of where it stands. Other steps make other chunks, so these have other ids.
func (v *sieve) identify(dst []byte, x *flight) []byte {
	var room [192]byte
	id := append(room[:0], v.base...)
	if len(v.base) == 0 {
		id = v.cfg.Identify(id, v.from, v.end)
	}
	id = append(id, 1) // no piece
	id = binary.BigEndian.AppendUint32(id, uint32(x.number))
	id = append(id, v.cfg.Sift.Mark()...)
	sum := sha256.Sum256(id)
	return base64.StdEncoding.AppendEncode(dst, sum[:16])
}

// failures are the events that steps make dead letters, as they came, by reason.
func (v *sieve) failures(end journal.Position, tag string, signal int) (all []Refused) {
	for _, f := range v.out.Failed {
		i := slices.IndexFunc(all, func(r Refused) bool { return r.Reason == f.Reason })
		if i < 0 {
			i = len(all)
			all = append(all, Refused{
				Position: end, Time: time.Now(), Reason: f.Reason, Chunk: &forward.Chunk{Tag: tag, Signal: signal},
			})
		}
		r := &all[i]
		r.Entries = append(r.Entries, f.Index)
		r.Chunk.Entries = append(r.Chunk.Entries, f.Entry...)
		r.Chunk.Events++
	}
	return all
}

// whole says what the output would get of a whole record: chunks that share no bytes, the last of
// them of events that steps refuse, and how many events these are, and how many it would not get.
func (v *sieve) whole(end journal.Position, c *forward.Chunk) (chunks []*forward.Chunk, filtered, refused int64,
	err error,
) {
	switch v.takes(c.Tag) {
	case step.None:
		return nil, int64(c.Events), 0, nil
	case step.All:
		return []*forward.Chunk{c}, 0, 0, nil
	}
	if c.Compressed != nil && c.Entries == nil {
		inflated := *c
		if err := v.inflater.Inflate(&inflated); err != nil {
			return nil, 0, 0, err
		}
		c = &inflated
	}
	defer v.drop()
	v.out.Most = 0
	if err := v.cfg.Sift.Sift(&v.out, c.Tag, c.Entries, uint64(end), 0); err != nil {
		return nil, 0, 0, err
	}
	at := 0
	for _, r := range v.out.Runs {
		chunks = append(chunks, &forward.Chunk{
			Tag: r.Tag, Signal: c.Signal,
			Entries: slices.Clone(v.out.Entries[at:r.End]), Events: r.Events,
		})
		at = r.End
	}
	failed := v.failures(end, c.Tag, c.Signal)
	clear(v.out.Failed)
	for _, r := range failed { // given up as they came
		chunks = append(chunks, r.Chunk)
		refused += int64(r.Chunk.Events)
	}
	return chunks, int64(c.Events-left(v.out.Runs)) - refused, refused, nil
}

// refuseNow makes what steps refused dead letters, for an output that commits the position behind
// it by itself. It fails only when ctx ends.
func (u *outcomes) refuseNow(ctx context.Context, x *flight) error {
	for len(x.failed) > 0 && u.cfg.Refuse != nil {
		err := u.cfg.Refuse(ctx, x.failed)
		if err == nil {
			break
		}
		u.care.fail(fmt.Errorf("dead letters: %w", err), retryPause)
		if err := await.Pause(ctx, retryPause); err != nil {
			return err
		}
	}
	x.failed = nil
	return nil
}

// errRetags says why an output that keeps its position itself cannot have a step tag.
var errRetags = fmt.Errorf("the step tag may make several chunks of one: an output that keeps its position itself takes whole ones")
