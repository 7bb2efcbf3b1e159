// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"cmp"
	"slices"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/ring"
)

// A claim is a mark that a dead owner left, and the chunks that are made again from the records
// under it: one, or the runs of a window.
type claim struct {
	ring.Mark
	to     *remnant
	kind   byte // the label's last character, which is that of an id now
	runs   bool
	raw    [rawLen]byte // of the runs' ids
	number int          // of the first run
	chunks []*flight
}

func newClaim(k ring.Mark, older, younger *remnant) *claim {
	c := &claim{Mark: k, kind: k.Label[idLen-1], to: older}
	c.Label[idLen-1] = toDestination
	c.runs = c.kind == runsToDestination || c.kind == runsToSpill
	if c.runs {
		c.raw, c.number, _ = parseRun(c.Label)
	}
	if c.kind == toSpill || c.kind == runsToSpill {
		c.to = younger
	}
	return c
}

// rebuild makes the chunks again that the dead owner had marked: the same records, in the same
// order, under the same ids. Those that a spill has are in its care. The one whose state was stored
// is done, and so are all that were submitted before it: a destination with states takes chunks in
// turn, and their marks go later.
func (l *legacy) rebuild(s *source, ids map[[idLen]byte]bool) (older, younger *remnant) {
	older, younger = &remnant{s: s, shown: true}, &remnant{s: s}
	copy(s.label[:], s.r.State())
	raw, number, isRun := parseRun(s.label)
	var all []*claim
	finished := -1
	for _, k := range s.r.Marks() {
		all = append(all, newClaim(k, older, younger))
	}
	slices.SortFunc(all, func(a, b *claim) int { // as they were submitted
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Lane, b.Lane))
	})
	partly := func(c *claim) bool { return isRun && c.runs && c.raw == raw }
	for i, c := range all {
		if partly(c) || c.Label == s.label {
			finished = i
		}
	}
	left := all[:0]
	for i, c := range all {
		if !partly(c) && (i <= finished || !c.runs && ids[c.Label]) {
			s.r.Clear(c.Slot)
			continue
		}
		left = append(left, c)
	}
	cut, damaged := l.reread(s, left)
	for _, c := range left {
		if c.runs && !damaged { // or the runs may be others, and have other numbers: rather twice than never, then
			c.chunks = slices.DeleteFunc(c.chunks, func(f *flight) bool {
				_, n, _ := parseRun(f.id)
				return ids[f.id] || partly(c) && n <= number
			})
		}
		l.restore(s, c)
	}
	s.r.Rewind()
	s.ended, s.cutTo = false, cut
	l.count.adopted.add(s.rest, s.restBytes)
	l.count.waiting.add(s.rest, s.restBytes)
	return older, younger
}

// restore queues the chunks of a claim, under the dead owner's mark.
func (l *legacy) restore(s *source, c *claim) {
	if len(c.chunks) == 0 {
		s.r.Clear(c.Slot) // nothing of it is left
		return
	}
	s.marks++
	var under *sequence
	if c.runs {
		under = &sequence{src: s, slot: c.Slot, to: c.kind, left: len(c.chunks)}
	}
	for _, f := range c.chunks {
		f.slot, f.to, f.under = c.Slot, c.kind, under
		n := uint64(f.chunk.Events)
		l.count.adopted.add(n, f.bytes)
		l.count.cut.add(n, f.bytes)
		s.out++
	}
	c.to.chunks = append(c.to.chunks, c.chunks...)
}

// reread gives the records up to the owner's last cut to the claims, and counts those behind it.
// damaged: some cannot be read.
func (l *legacy) reread(s *source, all []*claim) (cut uint64, damaged bool) {
	cut = s.r.CutKey()
	s.r.Rewind()
	var buf []byte
	for {
		rec, ok, _ := s.r.Next() // what cannot be read is counted by Lost
		if !ok {
			break
		}
		if rec.Key > cut {
			s.rest++
			s.restBytes += uint64(len(rec.Data))
			continue
		}
		var err error
		if buf, err = s.r.Copy(buf[:0], rec); err != nil {
			damaged = true
			continue
		}
		from, to := tagEnd(buf)
		if to == 0 || to-from > forward.MaxTag || !sound(buf[to:]) {
			l.unsound(s, all, rec)
			damaged = true
			continue
		}
		if f := l.claimed(s, all, rec, buf[from:to]); f != nil {
			f.chunk.Entries = appendEntry(f.chunk.Entries, rec.Time, buf[to:])
			f.chunk.Events++
			f.bytes += uint64(len(buf))
			f.last = max(f.last, rec.Key)
		}
	}
	return cut, damaged || s.r.Lost().Regions > 0
}

// unsound counts a record that is none any more as lost, if a mark covers it: else it is done.
func (l *legacy) unsound(s *source, all []*claim, rec ring.Record) {
	if slices.ContainsFunc(all, func(c *claim) bool { return c.First <= rec.Key && rec.Key <= c.Last }) {
		l.count.adopted.add(1, 0)
		l.overwritten(s, 1)
	}
}

// claimed is the chunk that a record belongs to, nil when it is done. Of two marks of a window the
// later counts, from its first run on. A chunk of all that a window has of one tag has that of its
// first record; should this one be unreadable, that of the first record which no other chunk can
// claim.
func (l *legacy) claimed(s *source, all []*claim, rec ring.Record, tag []byte) *flight {
	var open, runs *claim
	for _, c := range all {
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
			if c.chunks[0].chunk.Tag == string(tag) {
				return c.chunks[0]
			}
		case first:
			return l.claim(s, c, rec, tag)
		case rec.Key > c.First && open == nil:
			open = c
		}
	}
	switch {
	case runs != nil:
		if n := len(runs.chunks); n > 0 && runs.chunks[n-1].chunk.Tag == string(tag) {
			return runs.chunks[n-1]
		}
		return l.claim(s, runs, rec, tag)
	case open != nil:
		return l.claim(s, open, rec, tag)
	}
	return nil
}

// claim begins a chunk with a record.
func (l *legacy) claim(s *source, c *claim, rec ring.Record, tag []byte) *flight {
	f := l.air.pool.take()
	f.id, f.first, f.last, f.lane = c.Label, c.First, c.Last, c.Lane
	if c.runs {
		runID(&f.id, c.raw, c.number+len(c.chunks))
		f.first, f.last, f.lane = rec.Key, rec.Key, rec.Lane
	}
	f.src = s
	f.chunk = forward.Chunk{Tag: string(tag), ID: f.id[:], Own: true}
	c.chunks = append(c.chunks, f)
	return f
}
