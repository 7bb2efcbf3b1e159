// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"github.com/spillwaylog/spillway/forward"
)

// A packer cuts windows from rings, and makes flights of them.
type packer struct {
	*ground
	pool  *pool
	work  cutting
	batch int       // bytes of a window
	last  []*flight // that were taken from a source
}

func (p *packer) buffer() []byte      { return p.pool.buffer() }
func (p *packer) giveBuffer(b []byte) { p.pool.give(b) }

func newPacker(g *ground, pool *pool) *packer {
	p := &packer{ground: g, pool: pool}
	p.work.init(p)
	return p
}

// full says that the last window was cut before the ring's end.
func (p *packer) full() bool { return p.work.full }

// cut reads the next window, and says whether there was anything.
func (p *packer) cut(s *source) bool { return s.marks <= mostMarks && p.work.cut(s, p.batch) }

// take cuts a window for the destination.
func (s *source) take(p *packer) ([]*flight, bool) {
	if !p.cut(s) {
		return nil, false
	}
	p.last = p.pack(s, p.last[:0], toDestination)
	return p.last, true
}

// pack makes flights of what was cut from s, each with its mark in the ring, and only then moves
// the ring's cut.
func (p *packer) pack(s *source, flights []*flight, to byte) []*flight {
	w := &p.work
	sp := &span{s: s, first: w.first, last: w.last}
	events, bytes := uint64(0), uint64(0)
	at := 0
	for i := range w.n {
		part := &w.parts[i]
		entries := part.entries
		if part.events == 0 { // its first record could not be read
			if entries != nil {
				p.pool.give(entries)
			}
			part.entries = nil
			continue
		}
		if p.cfg.Ordered {
			entries = w.entries[at:part.end:part.end]
			at = part.end
		}
		f := p.pool.take()
		f.chunk = forward.Chunk{Tag: part.tag, ID: f.id[:], Entries: entries, Events: part.events, Own: true}
		f.src, f.span, f.bytes = s, sp, part.bytes
		f.first, f.last, f.lane = part.first, part.last, part.lane
		part.entries = nil
		sp.left++
		s.out++
		events += uint64(part.events)
		bytes += part.bytes
		flights = append(flights, f)
	}
	p.markAll(flights, to)
	p.cfg.fault("marked")
	p.count.untell(s, w.last, false)
	if s.own {
		s.spans.push(sp)
	}
	p.took(s, events, bytes)
	s.r.Cut(w.last)
	p.cfg.fault("cut")
	return flights
}

// markAll gives the chunks of a window, which are all flights, their ids and puts marks.
func (p *packer) markAll(flights []*flight, to byte) {
	if !p.cfg.Ordered {
		for _, f := range flights {
			forward.AppendID(f.id[:0])
			if !f.mark(to) {
				f.slot = -1
			}
		}
		return
	}
	if len(flights) == 0 {
		return
	}
	nameRuns(flights)
	cover(flights, nil, toRuns(to), &p.pool.buffers)
	flights[0].under.entries = p.work.entries
	p.work.entries = nil
}

// took accounts for what was cut from a source: so many events of it, with so many bytes, are in
// our hands now.
func (p *packer) took(s *source, events, bytes uint64) {
	w := &p.work
	p.count.cut.add(events, bytes)
	if w.bad > 0 {
		p.overwritten(s, w.bad)
	}
	s.taken.Add(w.taken)
	s.bytes.Add(w.bytes)
	if !s.own {
		p.count.waiting.sub(w.taken, w.bytes)
	}
	s.cutTo = w.last
}

// drop takes the oldest records that are in nobody's hands out of a ring.
func (p *packer) drop(s *source) bool {
	w := &p.work
	w.skip = true
	some := w.cut(s, int(s.r.Size()/16))
	w.skip = false
	if !some {
		return false
	}
	p.took(s, 0, 0)
	p.count.untell(s, w.last, true)
	p.count.drop(Oldest, w.taken-w.bad)
	s.r.Cut(w.last)
	s.answerTo(w.first, w.last, ErrDropped)
	return true
}
