// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"container/heap"
	"slices"
	"sync/atomic"
)

// rescue merges the records of segments to which nothing is appended any more, each checked. It is
// the reader of an adopted ring and of one that failed.
type rescue struct {
	notes   *notes
	sources []*segmentReader // a heap by the records found
	last    *segmentReader   // whose record was returned last and is still its first
	loss    Loss
	found   []*segment // of an adopted ring: in the order in which they were begun
}

func (q *rescue) Len() int { return len(q.sources) }
func (q *rescue) Less(i, j int) bool {
	a, b := &q.sources[i].rec, &q.sources[j].rec
	return a.Key < b.Key || a.Key == b.Key && a.Lane < b.Lane
}
func (q *rescue) Swap(i, j int) { q.sources[i], q.sources[j] = q.sources[j], q.sources[i] }
func (q *rescue) Push(x any)    { q.sources = append(q.sources, x.(*segmentReader)) }

func (q *rescue) Pop() any {
	n := len(q.sources) - 1
	s := q.sources[n]
	q.sources = q.sources[:n]
	return s
}

// start finds each segment's first record.
func (q *rescue) start() {
	keep := q.sources[:0]
	for _, s := range q.sources {
		if q.step(s) {
			keep = append(keep, s)
		}
	}
	q.sources = keep
	heap.Init(q)
}

// step finds a segment's next record that is not done.
func (q *rescue) step(s *segmentReader) bool {
	for s.next(q.notes) {
		if key := s.rec.Key; !q.notes.isDone(key, key) {
			return true
		}
	}
	q.loss.add(s.loss)
	return false
}

// settle moves on from the record that was returned last: not before, for a segmentReader may have
// to read over memory that is gone.
func (q *rescue) settle() {
	if q.last == nil {
		return
	}
	q.last = nil
	if q.step(q.sources[0]) {
		heap.Fix(q, 0)
	} else {
		heap.Pop(q)
	}
}

func (q *rescue) peek() (key uint64, ok bool) {
	q.settle()
	if len(q.sources) == 0 {
		return 0, false
	}
	return q.sources[0].rec.Key, true
}

func (q *rescue) next() (rec Record, ok bool) {
	if _, ok := q.peek(); !ok {
		return Record{}, false
	}
	q.last = q.sources[0]
	return q.last.rec, true
}

// left is the rescue of the segments that a dead owner left, of which there are so many.
func left(n *notes) (q *rescue, units int64) {
	q = &rescue{notes: n}
	for off := n.head.segments; off < int64(len(n.mem)); off += n.head.unit {
		s := &segmentReader{off: off}
		is, loss := n.parse(s)
		if !is {
			q.loss.add(loss)
			continue
		}
		size := int64(s.units) * n.head.unit
		s.pos, s.least = off+n.head.head, s.first
		if s.exact = s.filled != 0; s.exact {
			s.end = off + s.filled
		} else {
			s.end = n.backing.written(off, off+size)
		}
		q.sources = append(q.sources, s)
		units += int64(s.units)
		off += size - n.head.unit
	}
	q.found = q.segments()
	q.start()
	return q, units
}

// parse reads the facts of the segment at the reader's offset. If there is none, loss is what must
// have been there.
func (n *notes) parse(s *segmentReader) (is bool, loss Loss) {
	err := n.touch(func() {
		room := int64(len(n.mem)) - s.off
		if n.head.version == 1 {
			if is = s.parse1(&n.head, s.off, room, n.mem[s.off:], n.entry1(s.off)); !is {
				loss = n.lost1(s.off)
			}
			return
		}
		var free bool
		is, free = s.parse(&n.head, s.off, room, n.line(s.off))
		if !is && (!free || atomic.LoadUint32(firstWord(n.line(s.off))) == 0 && n.startsWithin(s.off)) {
			loss = Loss{Regions: 1, Bytes: uint64(n.head.unit)}
		}
	})
	if err != nil { // perhaps: what was there is unknown
		loss = Loss{Regions: 1, Bytes: uint64(n.head.unit)}
	}
	return is, loss
}

// startsWithin says that a record begins where the segment does, whose line is blank. Under touch.
func (n *notes) startsWithin(off int64) bool {
	return n.backing.written(off, off+recordHeader) > off && order.Uint64(n.mem[off:]) != 0
}

// lost1 is the loss of a segment of the first version whose head cannot be read. Under touch.
func (n *notes) lost1(off int64) Loss {
	b := n.entry1(off)
	word, first, last := order.Uint64(b), order.Uint64(b[8:]), order.Uint64(b[16:])
	closed := word&entryClosed1 != 0
	if word&entryUsed1 == 0 || closed && n.isDone(first, last) {
		return Loss{}
	}
	loss := Loss{Regions: 1, Bytes: (word >> 32 & 0xffff) * uint64(n.head.unit)}
	if closed {
		loss.Records = word & (1<<32 - 1)
	}
	return loss
}

// segments lists the segments in the order in which they were begun.
func (q *rescue) segments() []*segment {
	var all []*segment
	for _, s := range q.sources {
		all = append(all, &segment{segmentFacts: s.segmentFacts, off: s.off})
	}
	slices.SortFunc(all, func(a, b *segment) int { return cmp.Compare(a.seq, b.seq) })
	return all
}
