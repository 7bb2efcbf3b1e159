// SPDX-License-Identifier: Apache-2.0

package window

import (
	"slices"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/ring"
)

// A part is what a window has of one tag, or with Ordered a run: what it has of one tag in a
// row.
type part struct {
	tag         string
	entries     []byte
	events      int
	end         int    // of the entries in Cutter.entries, with Ordered
	bytes       uint64 // of the payloads
	first, last uint64 // keys
	lane        uint16 // of the record first
}

// A Cutter cuts windows. What it says of one holds until the next is cut.
type Cutter struct {
	Ordered bool // chunks are runs
	First   uint64
	Last    uint64
	Taken   uint64 // records
	Bytes   uint64 // of their payloads
	Bad     uint64 // records that are no payload any more, or cannot be read
	Full    bool   // there may be more that could be taken

	mem     *Buffers
	s       *Feed
	limit   int
	parts   []part
	entries []byte            // of all parts, with Ordered
	tags    map[string]string // of parts, with Ordered: there are too many to make each anew
	n       int               // parts in use
	same    int               // the part of the last record
	size    int               // bytes of entries
	skip    bool              // nothing is kept of what is taken
	fn      func()            // s.copy, made once
}

// NewCutter returns one that takes its memory from mem.
func NewCutter(ordered bool, mem *Buffers) *Cutter {
	w := &Cutter{Ordered: ordered, mem: mem, parts: make([]part, maxTags+4), tags: map[string]string{}}
	w.fn = w.copy
	return w
}

// Cut reads the next window of a feed and says whether there was anything. limit is in bytes. A
// window ends only where the key changes, so that the keys of its first and last record say exactly
// what is in it. Take, Mark and Done follow.
func (w *Cutter) Cut(s *Feed, limit int) bool {
	if s.Crowded() {
		return false
	}
	w.cut(s, limit)
	if w.Bad > 0 {
		parts := slices.DeleteFunc(w.parts[:w.n], func(p part) bool {
			if p.events > 0 {
				return false
			}
			if p.entries != nil { // its first record could not be read
				w.mem.give(p.entries)
			}
			return true
		})
		w.n = len(parts)
	}
	return w.Taken > 0
}

// Pass is Cut of what is to be dropped: nothing of it is kept, and Done follows.
func (w *Cutter) Pass(s *Feed, limit int) bool {
	w.skip = true
	w.cut(s, limit)
	w.skip = false
	return w.Taken > 0
}

func (w *Cutter) cut(s *Feed, limit int) {
	w.s, w.limit = s, limit
	w.n, w.same, w.size, w.Taken, w.Bytes, w.Bad, w.Full = 0, 0, 0, 0, 0, 0, false
	if w.Ordered && w.entries == nil && !w.skip {
		n := 0
		if s.Own { // how much waits is not known of another
			n = int(min(s.Unread(), uint64(limit))) // which are likely to be in it
		}
		w.entries = w.mem.buffer(n + n/8)
	}
	w.entries = w.entries[:0]
	for !w.Full && s.Fill() {
		if w.Taken == 0 {
			w.First = s.ahead[s.pos].Key
		}
		if err := s.Ring.Guard(w.fn); err != nil {
			// The record at s.pos cannot be read in passing: now with care, one at a time. The ring
			// has failed by this; its reader says so.
			w.careful()
		}
	}
}

// Chunks is how many the window makes.
func (w *Cutter) Chunks() int { return w.n }

// Take makes k the i-th chunk.
func (w *Cutter) Take(i int, k *Marked) {
	p := &w.parts[i]
	entries := p.entries
	if w.Ordered {
		at := 0
		if i > 0 {
			at = w.parts[i-1].end
		}
		entries = w.entries[at:p.end:p.end]
	}
	*k = Marked{
		Chunk: forward.Chunk{Tag: p.tag, ID: k.ID[:], Entries: entries, Events: p.events, UniqueID: true},
		Bytes: p.bytes, First: p.first, Last: p.last, Lane: p.lane, of: w.s,
	}
	p.entries = nil
	w.s.Out++
}

// Mark gives the chunks, which are all of the window, their ids, and puts their marks. to is
// ToDestination or ToSpill.
func (w *Cutter) Mark(chunks []*Marked, to byte) {
	switch {
	case !w.Ordered:
		for _, k := range chunks {
			forward.AppendID(k.ID[:0])
			if !k.mark(to) {
				k.slot = -1
			}
		}
	case len(chunks) > 0:
		nameRuns(len(chunks), func(i int) *[IDLen]byte { return &chunks[i].ID })
		cover(chunks, nil, toRuns(to), w.mem)
		chunks[0].Runs.entries = w.entries
		w.entries = nil
	}
}

// Done moves the feed over the window, and then the ring's cut.
func (w *Cutter) Done() {
	w.s.Taken.Add(w.Taken)
	w.s.Bytes.Add(w.Bytes)
	w.s.CutTo = w.Last
	w.s.Ring.Cut(w.Last)
}

// copy takes what lies ahead, within Guard: a fault in it leaves s.pos at the record that could not
// be read, and the part without it.
func (w *Cutter) copy() {
	s := w.s
	for s.pos < len(s.ahead) {
		rec := &s.ahead[s.pos]
		if w.size >= w.limit && rec.Key != w.Last {
			w.Full = true
			return
		}
		if !w.add(rec, rec.Data) {
			return
		}
		s.pos++
	}
}

// careful takes one record, or counts it as lost.
func (w *Cutter) careful() {
	s := w.s
	rec := &s.ahead[s.pos]
	data, err := s.Ring.Copy(nil, *rec)
	if err != nil {
		w.pass(rec, len(rec.Data))
		w.spoiled(rec)
	} else if !w.add(rec, data) {
		return
	}
	s.pos++
}

func (w *Cutter) pass(rec *ring.Record, n int) {
	w.Last = rec.Key
	w.Taken++
	w.Bytes += uint64(n)
}

// spoiled counts a record that is none any more.
func (w *Cutter) spoiled(rec *ring.Record) {
	w.Bad++
	if w.s.Spoiled != nil {
		w.s.Spoiled(rec.Key)
	}
}

// add puts a record into the part of its tag. false: the window has to end before it.
func (w *Cutter) add(rec *ring.Record, data []byte) bool {
	if w.skip {
		w.size += len(data)
		w.pass(rec, len(data))
		return true
	}
	from, to := tagEnd(data)
	if to == 0 || to-from > forward.MaxTag {
		w.pass(rec, len(data))
		w.spoiled(rec)
		return true
	}
	tag := data[from:to]
	if w.n == 0 || w.parts[w.same].tag != string(tag) {
		if !w.find(rec, tag) {
			w.Full = true
			return false
		}
	}
	p := &w.parts[w.same]
	all := &p.entries
	if w.Ordered {
		all = &w.entries
	}
	before := len(*all)
	if n := entryHead + len(data) - to; cap(*all)-before < n {
		*all = grow(*all, n, w.limit+w.limit/8)
	}
	*all = appendEntry(*all, rec.Time, data[to:])
	w.pass(rec, len(data))
	// The copy is checked, not the ring: nothing else can change it any more.
	if !sound((*all)[before+entryHead:]) {
		*all = (*all)[:before]
		w.leaveOut()
		w.spoiled(rec)
		return true
	}
	p.end = len(*all)
	w.size += p.end - before
	p.events++
	p.bytes += uint64(len(data))
	p.last = rec.Key
	return true
}

// leaveOut takes the last part away again if it was begun for a record that is none.
func (w *Cutter) leaveOut() {
	p := &w.parts[w.n-1]
	if p.events > 0 {
		return
	}
	if p.entries != nil {
		w.mem.give(p.entries)
		p.entries = nil
	}
	w.n--
	w.same = max(w.n-1, 0)
}

// find makes w.same the part of the tag.
func (w *Cutter) find(rec *ring.Record, tag []byte) bool {
	if w.Ordered {
		return w.begin(rec, tag)
	}
	for i := range w.n {
		if w.parts[i].tag == string(tag) {
			w.same = i
			return true
		}
	}
	if w.n >= maxTags && rec.Key != w.Last {
		return false
	}
	if w.n == len(w.parts) {
		w.parts = append(w.parts, part{})
	}
	p := &w.parts[w.n]
	if p.tag != string(tag) {
		p.tag = string(tag)
	}
	*p = part{tag: p.tag, entries: w.mem.buffer(0), first: rec.Key, lane: rec.Lane}
	w.same = w.n
	w.n++
	return true
}

// begin makes w.same a new run.
func (w *Cutter) begin(rec *ring.Record, tag []byte) bool {
	if w.n >= MaxRuns && rec.Key != w.Last {
		return false
	}
	if w.n == len(w.parts) {
		w.parts = append(w.parts, part{})
	}
	name, ok := w.tags[string(tag)]
	if !ok {
		if len(w.tags) >= MaxRuns {
			clear(w.tags)
		}
		name = string(tag)
		w.tags[name] = name
	}
	w.parts[w.n] = part{tag: name, first: rec.Key, lane: rec.Lane}
	w.same = w.n
	w.n++
	return true
}
