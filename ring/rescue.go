// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync/atomic"
)

// Loss is what was appended and cannot be read.
type Loss struct {
	Records uint64 // as far as their number is known; exact for a ring that failed under this process
	Bytes   uint64 // of the regions, headers and padding included
	Regions uint64 // places where records must have been
}

func (l *Loss) add(m Loss) {
	l.Records += m.Records
	l.Bytes += m.Bytes
	l.Regions += m.Regions
}

// rescue merges the records of segments to which nobody appends any more, each checked. It is the
// reader of an adopted ring and of one that failed.
type rescue struct {
	ring    *Ring
	sources []*source // a heap by the records found
	last    *source   // whose record was returned last and is still its first
	loss    Loss
}

func (q *rescue) Len() int { return len(q.sources) }
func (q *rescue) Less(i, j int) bool {
	a, b := &q.sources[i].rec, &q.sources[j].rec
	return a.Key < b.Key || a.Key == b.Key && a.Lane < b.Lane
}
func (q *rescue) Swap(i, j int) { q.sources[i], q.sources[j] = q.sources[j], q.sources[i] }
func (q *rescue) Push(x any)    { q.sources = append(q.sources, x.(*source)) }

func (q *rescue) Pop() any {
	n := len(q.sources) - 1
	s := q.sources[n]
	q.sources = q.sources[:n]
	return s
}

// start finds each source's first record.
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

// step finds a source's next record that is not done.
func (q *rescue) step(s *source) bool {
	for s.next(q.ring) {
		if q.ring.wanted(s.rec.Key) {
			return true
		}
	}
	q.loss.add(s.loss)
	return false
}

// settle moves on from the record that was returned last: not before, for a source may have to read
// over memory that is gone.
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

// wanted says that records of a key are not all done.
func (r *Ring) wanted(key uint64) bool { return !r.isDone(key, key) }

// isDone is done for those who do not have mu.
func (r *Ring) isDone(first, last uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done(first, last)
}

// startRescue ends appending and lets Next go on with what was not yet read, checking everything.
func (r *Ring) startRescue() {
	r.seal()
	q := &rescue{ring: r}
	r.mu.Lock()
	for i, n := uint32(reserved), r.active.Load(); i < n; i++ {
		f, tail := &r.follow[i], int64(r.lanes[i].state.Load()>>1)
		s := f.seg
		if s == nil {
			s = r.segment(r.lanes[i].first.Load())
		}
		for ; s != nil; s = s.next {
			end := s.off
			if s.closed.Load() {
				end = s.off + s.filled
			} else if tail > s.off && tail <= s.limit {
				end = tail
			}
			src := &source{segmentFacts: s.segmentFacts, off: s.off, pos: s.off, end: end}
			src.last = math.MaxUint64
			if s == f.seg {
				src.pos, src.least = f.pos, f.least
			}
			q.sources = append(q.sources, src)
		}
	}
	r.mu.Unlock()
	r.rescue = q
	q.start()
}

// startAdopted lets Next read the segments that the dead owner left.
func (r *Ring) startAdopted() {
	q := &rescue{ring: r}
	for off := r.head.segments; off < int64(len(r.mem)); off += r.head.unit {
		s := &source{off: off}
		is, loss := r.parse(s)
		if !is {
			q.loss.add(loss)
			continue
		}
		size := int64(s.units) * r.head.unit
		s.pos, s.least = off+r.head.head, s.first
		if s.exact = s.filled != 0; s.exact {
			s.end = off + s.filled
		} else {
			s.end = r.home.written(off, off+size)
		}
		q.sources = append(q.sources, s)
		r.left.Add(int64(s.units))
		off += size - r.head.unit
	}
	r.found = q.segments()
	r.rescue = q
	q.start()
}

// parse reads the facts of the segment at the source's offset. If there is none, loss is what must
// have been there.
func (r *Ring) parse(s *source) (is bool, loss Loss) {
	err := r.touch(func() {
		room := int64(len(r.mem)) - s.off
		if r.head.version == 1 {
			if is = s.parse1(&r.head, s.off, room, r.mem[s.off:], r.entry1(s.off)); !is {
				loss = r.lost1(s.off)
			}
			return
		}
		var free bool
		is, free = s.parse(&r.head, s.off, room, r.line(s.off))
		if !is && (!free || atomic.LoadUint32(firstWord(r.line(s.off))) == 0 && r.startsWithin(s.off)) {
			loss = Loss{Regions: 1, Bytes: uint64(r.head.unit)}
		}
	})
	if err != nil { // perhaps: nobody can tell what was there
		loss = Loss{Regions: 1, Bytes: uint64(r.head.unit)}
	}
	return is, loss
}

// startsWithin says that a record begins where the segment does, whose line is blank. Under touch.
func (r *Ring) startsWithin(off int64) bool {
	return r.home.written(off, off+recordHeader) > off && order.Uint64(r.mem[off:]) != 0
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

// Drained says that Next has returned all there will ever be.
func (r *Ring) Drained() bool {
	if r.rescue == nil && r.over.Load() == overFailed {
		r.startRescue()
	}
	if r.rescue == nil {
		return false
	}
	_, more := r.rescue.peek()
	return !more
}

// Lost is what was found to be unreadable: of an adopted ring, so far; of a ring that failed under
// this process, once Next has come to the end.
func (r *Ring) Lost() Loss {
	if r.rescue == nil {
		return Loss{}
	}
	loss := r.rescue.loss
	if !r.adopted {
		if !r.Drained() {
			return Loss{}
		}
		loss = r.rescue.loss
		records, bytes := r.Appended()
		loss.Records, loss.Bytes = records-r.returned, bytes-r.returnedBytes
	}
	return loss
}

// Rewind starts Next of an adopted ring over from the oldest record that is not done. Other rings
// it leaves alone.
func (r *Ring) Rewind() {
	if r.adopted && r.mem != nil {
		r.left.Store(0)
		r.startAdopted()
	}
}
