// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/ring"
)

// A part is what a window has of one tag, or with Config.Ordered a run: what it has of one tag in a
// row.
type part struct {
	tag         string
	entries     []byte
	events      int
	end         int    // of the entries in cutting.entries, with Ordered
	bytes       uint64 // of the payloads
	first, last uint64 // keys
	lane        uint16 // of the record first
}

// cutting is a window while it is cut. Its memory is used again and again.
type cutting struct {
	m       *packer
	s       *source
	limit   int
	parts   []part
	entries []byte            // of all parts, with Ordered
	tags    map[string]string // of parts, with Ordered: there are too many to make each anew
	n       int               // parts in use
	same    int               // the part of the last record
	size    int               // bytes of entries
	first   uint64
	last    uint64
	taken   uint64 // records
	bytes   uint64 // of their payloads
	bad     uint64 // records that are no payload any more, or cannot be read
	full    bool
	skip    bool   // nothing is kept of what is taken: it is to be dropped
	fn      func() // s.copy, made once
}

func (w *cutting) init(m *packer) {
	w.m = m
	w.parts = make([]part, mostTags+4)
	w.tags = map[string]string{}
	w.fn = w.copy
}

// cut reads the next window of s into w.parts[:w.n] and says whether there was anything. A window
// ends only where the key changes, so that the keys of its first and last record say exactly what
// is in it.
func (w *cutting) cut(s *source, limit int) bool {
	w.s, w.limit = s, limit
	w.n, w.same, w.size, w.taken, w.bytes, w.bad, w.full = 0, 0, 0, 0, 0, 0, false
	if w.m.cfg.Ordered && w.entries == nil {
		w.entries = w.m.buffer()
	}
	w.entries = w.entries[:0]
	for !w.full && s.fill() {
		if w.taken == 0 {
			w.first = s.ahead[s.pos].Key
		}
		if err := s.r.Guard(w.fn); err != nil {
			// The record at s.pos cannot be read in passing: now with care, one at a time. The ring
			// has failed by this; its reader says so.
			w.careful()
		}
	}
	return w.taken > 0
}

// copy takes what lies ahead, within Guard: a fault in it leaves s.pos at the record that could not
// be read, and the part without it.
func (w *cutting) copy() {
	s := w.s
	for s.pos < len(s.ahead) {
		rec := &s.ahead[s.pos]
		if w.size >= w.limit && rec.Key != w.last {
			w.full = true
			return
		}
		if !w.add(rec, rec.Data) {
			return
		}
		s.pos++
	}
}

// careful takes one record, or counts it as lost.
func (w *cutting) careful() {
	s := w.s
	rec := &s.ahead[s.pos]
	data, err := s.r.Copy(nil, *rec)
	if err != nil {
		w.pass(rec, len(rec.Data))
		w.spoiled(rec)
	} else if !w.add(rec, data) {
		return
	}
	s.pos++
}

func (w *cutting) pass(rec *ring.Record, n int) {
	w.last = rec.Key
	w.taken++
	w.bytes += uint64(n)
}

// spoiled counts a record that is none any more.
func (w *cutting) spoiled(rec *ring.Record) {
	w.bad++
	w.s.answerTo(rec.Key, rec.Key, ErrDropped)
}

// add puts a record into the part of its tag. false: the window has to end before it.
func (w *cutting) add(rec *ring.Record, data []byte) bool {
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
			w.full = true
			return false
		}
	}
	p := &w.parts[w.same]
	all := &p.entries
	if w.m.cfg.Ordered {
		all = &w.entries
	}
	before := len(*all)
	*all = appendEntry(*all, rec.Time, data[to:])
	w.pass(rec, len(data))
	// What was copied is checked, for nobody can change that any more.
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
func (w *cutting) leaveOut() {
	p := &w.parts[w.n-1]
	if p.events > 0 {
		return
	}
	if p.entries != nil {
		w.m.giveBuffer(p.entries)
		p.entries = nil
	}
	w.n--
	w.same = max(w.n-1, 0)
}

// find makes w.same the part of the tag.
func (w *cutting) find(rec *ring.Record, tag []byte) bool {
	if w.m.cfg.Ordered {
		return w.begin(rec, tag)
	}
	for i := range w.n {
		if w.parts[i].tag == string(tag) {
			w.same = i
			return true
		}
	}
	if w.n >= mostTags && rec.Key != w.last {
		return false
	}
	if w.n == len(w.parts) {
		w.parts = append(w.parts, part{})
	}
	p := &w.parts[w.n]
	if p.tag != string(tag) {
		p.tag = string(tag)
	}
	*p = part{tag: p.tag, entries: w.m.buffer(), first: rec.Key, lane: rec.Lane}
	w.same = w.n
	w.n++
	return true
}

// begin makes w.same a new run.
func (w *cutting) begin(rec *ring.Record, tag []byte) bool {
	if w.n >= mostRuns && rec.Key != w.last {
		return false
	}
	if w.n == len(w.parts) {
		w.parts = append(w.parts, part{})
	}
	name, ok := w.tags[string(tag)]
	if !ok {
		if len(w.tags) >= mostRuns {
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
