// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"time"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// How this file is organised. A group is what one connection hands on together: the messages that
// were complete after one read. It is taken from a pool when a connection has something to decode,
// and goes back when the connection waits for its peer.
//
// Chunks stay where they are in the read buffer. Events of Message mode, one a message, are
// gathered by tag into one chunk where none of them asks for an ack: add only notes where the event
// lies (a ref), seal copies the events of each tag together. Events of one tag keep their order: a
// chunk that stands by itself ends what is being gathered under its tag.

// maxGather is the largest event that is worth copying, maxScratch the bytes that one group
// gathers.
const (
	maxGather  = 16 << 10
	maxScratch = budget.Base
)

// ref is one event of Message mode: time (or time and metadata) and record lie at off of the read
// buffer.
type ref struct {
	off, size int32
	next      int32 // of the same tag; -1: the last
	anew      int32 // its place in group.shapes if it is to be written anew; -1: it stays as it is
}

// gathering is one chunk that events are being gathered for.
type gathering struct {
	chunk       *Chunk
	first, last int32 // refs
	size        int   // of its entries
	open        bool  // more may come
}

// group is described above.
type group struct {
	slots    []*slot  // the first used are in use
	chunks   []*Chunk // of the slots
	used     int
	refs     []ref
	shapes   []wire.Shape // of some refs
	gathers  []gathering
	gathered int  // bytes
	timeless bool // some ref is
	scratch  *budget.Buffer
	extra    []*budget.Buffer // decompressed or rewritten entries
	extraLen int64
	acks     []byte
	ackCount int
	starts   []start // of the chunks
}

// slot is the memory of a chunk.
type slot struct {
	chunk Chunk
	sent  Sent
}

// start is where the acks stood when a chunk began.
type start struct{ acks, count int }

// maxGathers bounds the tags that are gathered at the same time.
const maxGathers = 16

// empty tells whether there is nothing to hand on.
func (g *group) empty() bool { return g.used == 0 && len(g.acks) == 0 }

// reset forgets the chunks; the caller has taken buffers and acks.
func (g *group) reset() {
	clear(g.extra)
	for _, s := range g.slots[:g.used] { // for the next group, and so that nothing keeps a large buffer from going
		if s.chunk.Sent != nil {
			s.sent = Sent{}
		}
		s.chunk = Chunk{}
	}
	g.timeless = false
	g.used, g.gathered, g.extraLen, g.ackCount = 0, 0, 0, 0
	g.refs, g.shapes, g.gathers, g.extra, g.acks, g.starts =
		g.refs[:0], g.shapes[:0], g.gathers[:0], g.extra[:0], g.acks[:0], g.starts[:0]
}

// chunk returns the next chunk, blank.
func (g *group) chunk() *Chunk {
	if g.used == len(g.chunks) {
		s := new(slot)
		g.slots, g.chunks = append(g.slots, s), append(g.chunks, &s.chunk)
	}
	c := g.chunks[g.used]
	g.used++
	g.starts = append(g.starts, start{len(g.acks), g.ackCount})
	return c
}

// sent is how the chunk that was made last was sent; it is blank at first.
func (g *group) sent() *Sent {
	s := g.slots[g.used-1]
	s.chunk.Sent = &s.sent
	return &s.sent
}

// close ends what is being gathered under a tag.
func (g *group) close(tag string) {
	for i := range g.gathers {
		if g.gathers[i].open && g.gathers[i].chunk.Tag == tag {
			g.gathers[i].open = false
			return
		}
	}
}

// gather returns the chunk for one more event of Message mode under a tag.
func (g *group) gather(tag string) *gathering {
	open := 0
	for i := len(g.gathers) - 1; i >= 0; i-- {
		if a := &g.gathers[i]; a.open {
			if a.chunk.Tag == tag {
				return a
			}
			open++
		}
	}
	if open == maxGathers {
		for i := range g.gathers {
			g.gathers[i].open = false
		}
	}
	c := g.chunk()
	c.Tag = tag
	g.gathers = append(g.gathers, gathering{chunk: c, first: -1, last: -1, open: true})
	return &g.gathers[len(g.gathers)-1]
}

// next adds an event to what was begun last, if that has the same tag and there is room.
func (g *group) next(tag []byte, r ref) bool {
	n := len(g.gathers)
	if n == 0 || r.size > maxGather || g.gathered+int(r.size)+11 > maxScratch {
		return false
	}
	a := &g.gathers[n-1]
	if !a.open || a.chunk.Tag != string(tag) {
		return false
	}
	g.add(a, r, 0, false)
	return true
}

// add notes an event for a gathering, and what its stamp takes at most.
func (g *group) add(a *gathering, r ref, stamp int, timeless bool) {
	n := int32(len(g.refs))
	g.refs = append(g.refs, r)
	if a.first < 0 {
		a.first = n
	} else {
		g.refs[a.last].next = n
	}
	a.last = n
	g.timeless = g.timeless || timeless
	room := 1 + int(r.size) + stamp // 92 time record
	if timeless {
		room += 10 // what a time of 0 takes less than an EventTime
	}
	a.size += room
	g.gathered += room
	a.chunk.Events++
}

// inPlace puts the array's header before a time in the read buffer, where the message's tag ends:
// it has been read.
func inPlace(buf []byte, off int) { buf[off-1] = wire.CodeArray2 }

// seal makes the entries of all that was gathered. buf is the read buffer that the refs mean,
// scratch has room for g.gathered. stamp is added to every record, nil for nothing.
func (g *group) seal(buf []byte, now time.Time, stamp *wire.Stamp) {
	var scratch []byte
	if g.scratch != nil {
		scratch = g.scratch.B[:0]
	}
	for i := range g.gathers {
		a := &g.gathers[i]
		if a.first < 0 {
			continue
		}
		if one := &g.refs[a.first]; one.next < 0 && one.anew < 0 {
			inPlace(buf, int(one.off))
			a.chunk.Entries = buf[one.off-1 : one.off+one.size : one.off+one.size]
			continue
		}
		start := len(scratch)
		for at := a.first; at >= 0; {
			r := &g.refs[at]
			event := buf[r.off : r.off+r.size]
			if r.anew >= 0 {
				scratch, _ = wire.AppendAnew(scratch, event, 0, &g.shapes[r.anew], now, stamp)
			} else {
				scratch = append(scratch, wire.CodeArray2)
				scratch = append(scratch, event...)
			}
			at = r.next
		}
		a.chunk.Entries = scratch[start:len(scratch):len(scratch)]
	}
}

// needsScratch tells whether seal will copy.
func (g *group) needsScratch() bool {
	for i := range g.gathers {
		a := &g.gathers[i]
		if a.first >= 0 && (a.first != a.last || g.refs[a.first].anew >= 0) {
			return true
		}
	}
	return false
}
