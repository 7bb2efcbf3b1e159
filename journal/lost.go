// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
)

// Files that others deleted or cut leave no bytes that a reader could meet and report. What tells
// of them:
//
//   - each segment's header says where the records before it end, so those of a missing one lie
//     between
//   - only what all cursors have passed is freed: a segment that some cursor has yet to pass was
//     not freed by the journal
//   - the last segment with records is kept; where it had to be freed, the reserve says that it was
//     passed
//   - a tail says up to where its segment was synced
//
// What is told is told at each Open until the cursors have passed it.

var (
	errGone  = errors.New("the file is gone")
	errZeros = errors.New("the file holds nothing but zeros")
	errShort = errors.New("it was synced, and cannot be read any more")
)

// lost tells what cursors have yet to read and no file holds. Only Open calls it, once segments and
// cursors are known. files are the numbers that segment files have, whatever they hold.
func (v *recovery) lost(live []recovered, files map[uint32]bool) {
	low, high := Position(1<<64-1), Position(0)
	slow, fast := "", ""
	for name, c := range v.cursors.named {
		if c.file == nil { // it was set aside: nobody knows where it stood
			continue
		}
		p := Position(c.at.Load())
		if p < low {
			low, slow = p, name
		}
		if p >= high {
			high, fast = p, name
		}
	}
	if slow == "" {
		return
	}
	before := Position(0) // where the records of the segment before end
	for i, s := range live {
		from := max(low, before)
		switch prev := s.h.prev; {
		case s.rebuilt || prev <= from || v.padded(from, s.h):
		case i > 0 && prev.seq() <= live[i-1].seq:
		case i > 0 && files[prev.seq()]: // never written to before the power went off, while the next one was
		default:
			v.tellLost(slow, low, from, prev)
		}
		before = at(s.seq, s.end.Load())
	}
	v.lostBehind(fast, high, files)
}

// padded says whether nothing but padding may lie between from and where the records before a
// segment end.
func (v *recovery) padded(from Position, h segmentHeader) bool {
	if h.pad > 0 {
		return from >= h.prev-Position(h.pad-1)
	}
	return from.seq() == h.prev.seq() && h.prev.off()%pageSize == 0 && pageUp(from.off()) == h.prev.off()
}

// lostBehind looks for the segment that the cursor furthest ahead stands in.
func (v *recovery) lostBehind(name string, p Position, files map[uint32]bool) {
	if p.off() <= dataStart {
		return // nothing of that segment was ever seen
	}
	for _, s := range v.segs {
		if s.seq >= p.seq() {
			return
		}
	}
	highest := uint32(0)
	for seq := range files {
		highest = max(highest, seq)
	}
	switch {
	case highest < p.seq(), v.reserve.known && v.reserve.passed < p:
		v.tellLost(name, p, p, p)
	}
	if v.opt.Reserve > 0 {
		v.reserve.emptied = max(v.reserve.emptied, p) // told once
	}
}

// tellLost reports that what lies between from and to, as far as that is known, is missing; a
// cursor stands at p.
func (v *recovery) tellLost(cursor string, p, from, to Position) {
	e := &CorruptError{
		Path: v.path(segmentName(to.seq())), Offset: dataStart,
		Err: fmt.Errorf("%w; cursor %s, at %v, had yet to read what was stored between %v and %v", errGone, cursor, p,
			from, to),
	}
	if to.seq() == from.seq() {
		e.Offset = max(e.Offset, from.off())
	}
	e.Length = max(0, to.off()-e.Offset)
	if from == to {
		e.Length = 0
		e.Err = fmt.Errorf("%w; cursor %s stands in it, at %v, and what was stored behind that is not known", errGone,
			cursor, p)
	}
	v.tellHole(e)
}

// wasDurable is a position up to which everything was durable once, as headers, tails and cursors
// say.
func (v *recovery) wasDurable(live []recovered) (p Position) {
	for _, s := range live {
		p = max(p, s.h.synced)
		if s.tailed > 0 {
			p = max(p, at(s.seq, s.tailed))
		}
	}
	for _, c := range v.cursors.named {
		p = max(p, Position(c.at.Load()))
	}
	return p
}

// lostTail tells what a segment lacks at its end, where recovery found its last whole record to
// end, of what was durable. No reader will meet it. known says that a later header tells where its
// records end.
func (v *recovery) lostTail(s *segment, end int64, known bool, durable Position) {
	to := durable
	if known {
		to = min(to, at(s.seq, s.end.Load()))
	}
	if s.tailed > 0 {
		to = max(to, at(s.seq, s.tailed))
	}
	low := v.cursors.lowestLocked()
	if from := at(s.seq, end); to.seq() == s.seq && to > from && low < to && to.off()-end >= recordHeader &&
		(to.off()%pageSize != 0 || pageUp(end) != to.off()) {
		v.hole(s.seq, s.nonce, s.path, s.file, end, to.off(), errShort)
	}
}
