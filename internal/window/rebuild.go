// SPDX-License-Identifier: Apache-2.0

package window

import (
	"cmp"
	"slices"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/ring"
)

// Rebuilt is what was found in a ring that a dead process left.
type Rebuilt struct {
	Older   []*Marked // chunks that were on their way to the destination
	Younger []*Marked // and to the spill
	Rest    uint64    // records behind those of any chunk; they are to be cut
	Bytes   uint64    // of the payloads of these
	Bad     uint64    // records under a mark that are none any more
}

// Rebuild makes the chunks again that a dead owner had marked: the same records, in the same order,
// under the same ids. Those whose ids are in spilled are in a spill's care. done is the id of the
// chunk whose state was stored last: it is done, and so are all that were submitted before it,
// since a destination with states takes chunks in turn, and their marks go later.
func Rebuild(s *Feed, done [IDLen]byte, spilled map[[IDLen]byte]bool) Rebuilt {
	r := rebuilder{s: s, spilled: spilled}
	r.claim(done)
	damaged := r.read()
	r.restore(done, damaged)
	s.Ring.Rewind()
	s.Ended, s.CutTo = false, s.Ring.CutKey()
	return r.found
}

// maxRebuilt is how many runs a window has at most. No owner cuts so many: a window ends at
// MaxRuns, unless many lanes have written in the same nanosecond.
const maxRebuilt = 16 * MaxRuns

// A rebuilder is at work on one ring.
type rebuilder struct {
	s       *Feed
	spilled map[[IDLen]byte]bool
	claims  []*claim
	found   Rebuilt
}

// A claim is a mark that a dead owner left, and the chunks that are made again from the records
// under it: one, or the runs of a window.
type claim struct {
	ring.Mark
	kind   byte // the label's last character, which is that of an id now
	runs   bool
	raw    [rawLen]byte // of the runs' ids
	number int          // of the first run
	chunks []*Marked
}

func newClaim(k ring.Mark) *claim {
	c := &claim{Mark: k, kind: k.Label[IDLen-1]}
	c.Label[IDLen-1] = ToDestination
	c.runs = c.kind == RunsToDestination || c.kind == RunsToSpill
	if c.runs {
		c.raw, c.number, _ = ParseRun(c.Label)
	}
	return c
}

// partly says that of a claim's window the run of an id is done, and those before it.
func (c *claim) partly(id [IDLen]byte) bool {
	raw, _, ok := ParseRun(id)
	return ok && c.runs && c.raw == raw
}

// claim lists the marks under which something is undone, and clears the others.
func (r *rebuilder) claim(done [IDLen]byte) {
	var all []*claim
	for _, k := range r.s.Ring.Marks() {
		all = append(all, newClaim(k))
	}
	slices.SortFunc(all, func(a, b *claim) int { // as they were submitted
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Lane, b.Lane))
	})
	finished := -1
	for i, c := range all {
		if c.partly(done) || c.Label == done {
			finished = i
		}
	}
	for i, c := range all {
		if !c.partly(done) && (i <= finished || !c.runs && r.spilled[c.Label]) {
			r.s.Ring.Clear(c.Slot)
			continue
		}
		r.claims = append(r.claims, c)
	}
}

// read gives the records up to the owner's last cut to the claims, and counts those behind it.
// damaged: some cannot be read.
func (r *rebuilder) read() (damaged bool) {
	from := r.s.Ring
	cut := from.CutKey()
	from.Rewind()
	var buf []byte
	for {
		rec, ok, _ := from.Next() // what cannot be read is counted by Lost
		if !ok {
			break
		}
		if rec.Key > cut {
			r.found.Rest++
			r.found.Bytes += uint64(len(rec.Data))
			continue
		}
		var err error
		if buf, err = from.Copy(buf[:0], rec); err != nil {
			damaged = true
			continue
		}
		at, to := tagEnd(buf)
		if to == 0 || to-at > forward.MaxTag || !sound(buf[to:]) {
			if slices.ContainsFunc(r.claims, func(c *claim) bool { return c.First <= rec.Key && rec.Key <= c.Last }) {
				r.found.Bad++ // else it is done
			}
			damaged = true
			continue
		}
		if k := r.claimed(rec, buf[at:to]); k != nil {
			k.Chunk.Entries = appendEntry(k.Chunk.Entries, rec.Time, buf[to:])
			k.Chunk.Events++
			k.Bytes += uint64(len(buf))
			k.Last = max(k.Last, rec.Key)
		}
	}
	return damaged || from.Lost().Regions > 0
}

// claimed is the chunk that a record belongs to, nil when it is done. Of two marks of a window the
// later counts, from its first run on. A chunk of all that a window has of one tag has that of its
// first record; should this one be unreadable, that of the first record which no other chunk can
// claim.
func (r *rebuilder) claimed(rec ring.Record, tag []byte) *Marked {
	var open, runs *claim
	for _, c := range r.claims {
		if rec.Key < c.First || rec.Key > c.Last {
			continue
		}
		first := rec.Key == c.First && rec.Lane == c.Lane
		switch {
		case c.runs:
			if rec.Key > c.First || rec.Lane >= c.Lane {
				runs = c
			}
		case len(c.chunks) > 0:
			if c.chunks[0].Chunk.Tag == string(tag) {
				return c.chunks[0]
			}
		case first:
			return r.begin(c, rec, tag)
		case rec.Key > c.First && open == nil:
			open = c
		}
	}
	switch {
	case runs != nil:
		n := len(runs.chunks)
		if n > 0 && runs.chunks[n-1].Chunk.Tag == string(tag) {
			return runs.chunks[n-1]
		}
		if n >= maxRebuilt {
			r.found.Bad++
			return nil
		}
		return r.begin(runs, rec, tag)
	case open != nil:
		return r.begin(open, rec, tag)
	}
	return nil
}

// begin begins a chunk of a claim with a record.
func (r *rebuilder) begin(c *claim, rec ring.Record, tag []byte) *Marked {
	k := &Marked{ID: c.Label, First: c.First, Last: c.Last, Lane: c.Lane, of: r.s}
	if c.runs {
		RunID(&k.ID, c.raw, c.number+len(c.chunks))
		k.First, k.Last, k.Lane = rec.Key, rec.Key, rec.Lane
	}
	k.Chunk = forward.Chunk{Tag: string(tag), ID: k.ID[:], UniqueID: true}
	c.chunks = append(c.chunks, k)
	return k
}

// restore puts the chunks of the claims that are undone under the dead owner's marks.
func (r *rebuilder) restore(done [IDLen]byte, damaged bool) {
	_, number, _ := ParseRun(done)
	for _, c := range r.claims {
		all := len(c.chunks)
		if c.runs && !damaged { // or the runs may be others, and have other numbers: rather twice than never, then
			c.chunks = slices.DeleteFunc(c.chunks, func(k *Marked) bool {
				return r.spilled[k.ID] || c.partly(done) && k.run() <= number
			})
		}
		if len(c.chunks) == 0 {
			r.s.Ring.Clear(c.Slot) // nothing of it is left
			continue
		}
		r.s.marks++
		var under *Runs
		if c.runs {
			under = &Runs{of: r.s, slot: c.Slot, To: c.kind, Left: len(c.chunks)}
		}
		for _, k := range c.chunks {
			k.slot, k.to, k.Runs = c.Slot, c.kind, under
			r.s.Out++
		}
		if len(c.chunks) < all {
			LeaveRuns(c.chunks) // what is in a spill has no id there any more once it is delivered
		}
		if c.kind == ToSpill || c.kind == RunsToSpill {
			r.found.Younger = append(r.found.Younger, c.chunks...)
		} else {
			r.found.Older = append(r.found.Older, c.chunks...)
		}
	}
}
