// SPDX-License-Identifier: Apache-2.0

package mover

import "github.com/spillwaylog/spillway/internal/window"

// A packer cuts windows from rings, makes flights of them, and accounts for that.
type packer struct {
	*core
	pool   *pool
	work   *window.Cutter
	batch  int       // bytes of a window
	last   []*flight // that were taken from a feed
	chunks []*window.Marked
}

func newPacker(g *core, pool *pool) *packer {
	return &packer{core: g, pool: pool, work: window.NewCutter(g.cfg.Ordered, &pool.Buffers)}
}

// full says that the last window was cut before the ring's end.
func (p *packer) full() bool { return p.work.Full }

// cut reads the next window, and says whether there was anything.
func (p *packer) cut(s *feed) bool { return p.work.Cut(&s.Feed, p.batch) }

// take cuts a window for the destination.
func (s *feed) take(p *packer) ([]*flight, bool) {
	if !p.cut(s) {
		return nil, false
	}
	p.last = p.pack(s, p.last[:0], window.ToDestination)
	return p.last, true
}

// pack makes flights of what was cut from s, each with its mark in the ring, and only then moves
// the ring's cut.
func (p *packer) pack(s *feed, flights []*flight, to byte) []*flight {
	w := p.work
	sp := &span{s: s, first: w.First, last: w.Last, left: w.Chunks()}
	events, bytes := uint64(0), uint64(0)
	p.chunks = p.chunks[:0]
	for i := range w.Chunks() {
		f := p.pool.take()
		w.Take(i, &f.Marked)
		f.feed, f.span = s, sp
		events += uint64(f.Chunk.Events)
		bytes += f.Bytes
		flights = append(flights, f)
		p.chunks = append(p.chunks, &f.Marked)
	}
	w.Mark(p.chunks, to)
	p.cfg.fault("marked")
	p.count.untell(s, w.Last, false)
	if s.Own {
		s.spans.Push(sp)
	}
	p.took(s, events, bytes)
	p.cfg.fault("cut")
	return flights
}

// took accounts for what was cut from a feed: so many events of it, with so many bytes, are in
// hand now.
func (p *packer) took(s *feed, events, bytes uint64) {
	w := p.work
	p.count.inHand.add(events, bytes)
	if w.Bad > 0 {
		p.overwritten(s, w.Bad)
	}
	w.Done()
	if !s.Own {
		p.count.waiting.sub(w.Taken, w.Bytes)
	}
}

// drop takes the oldest records that are not cut yet out of a ring, for good.
func (p *packer) drop(s *feed) bool {
	w := p.work
	if !w.Pass(&s.Feed, int(s.Ring.Size()/16)) {
		return false
	}
	p.count.untell(s, w.Last, true)
	p.count.miss(Oldest, w.Taken-w.Bad)
	p.took(s, 0, 0)
	s.answerTo(w.First, w.Last, ErrDropped)
	return true
}
