// SPDX-License-Identifier: Apache-2.0

package mover

import "time"

// A loop is the mover's goroutine: what only that touches, and all that there is to do, over and
// over.
type loop struct {
	*core
	delivery *delivery
	pack     *packer
	spiller  *spiller
	legacy   *legacy
	flushes  []*flush
	payload  []byte // of a summary event
	tellAt   time.Time
	timing
}

func newLoop(g *core, states *states, dead *dead) *loop {
	pool := &pool{limit: 64}
	if g.cfg.Ordered {
		pool.limit = maxInDelivery
	}
	delivery := &delivery{core: g, pool: pool, states: states, dead: dead}
	pool.land = delivery.land
	pack := newPacker(g, pool)
	shelf := newShelf(g)
	spiller := &spiller{core: g, pack: pack, states: states, shelf: shelf}
	spiller.relief = &relief{
		core: g, pool: pool, shelf: shelf,
		failed: func(err error) { spiller.refuse(nil, err, false) },
	}
	legacy := &legacy{core: g, delivery: delivery, spiller: spiller, states: states, shelf: shelf}
	spiller.retired = legacy.retired
	l := &loop{core: g, delivery: delivery, pack: pack, spiller: spiller, legacy: legacy}
	l.timer = time.NewTimer(time.Hour)
	l.anchorAt = time.Now().Add(anchorEvery)
	l.measure()
	return l
}

// run goes over all there is to do, and rests until something happens.
func (l *loop) run() {
	for {
		l.collect()
		if l.phase == leaving {
			return
		}
		l.measure()
		l.ship()
		now := time.Now()
		l.spiller.again(now)
		l.legacy.again(now)
		l.overflow()
		l.legacy.spillAdopted()
		l.spiller.endSaving()
		l.legacy.look()
		l.tell()
		l.note()
		l.hopeless.Store((l.cfg.Dir == "" || l.why.Load() != nil) && !l.able())
		l.answer()
		l.rest()
	}
}

// measure says how large windows may be, and how much the destination may have: parts of the ring,
// which is smaller while there is no memory for all of it.
func (l *loop) measure() {
	size := l.rings.cur.Load().Ring.Size()
	batch := min(int64(l.cfg.BatchBytes), max(size/16, 16<<10))
	if l.cfg.Dir != "" {
		batch = min(batch, l.cfg.MaxDisk/8) // a journal takes nothing that is larger than itself
	}
	l.pack.batch = int(batch)
	l.delivery.maxBytes = max(size/4, batch)
}

// collect does what others asked for, and takes back chunks that the destination is done with.
func (l *loop) collect() {
	calls := l.mail.fetch() // before the chunks: what had landed before a call is seen
	l.delivery.collect()
	for i, fn := range calls {
		fn()
		calls[i] = nil
	}
}

// ship hands chunks to the destination as long as it may have more.
func (l *loop) ship() {
	if !l.legacy.begun() || l.phase >= stopped {
		return
	}
	for l.delivery.roomy() {
		q := l.next()
		if q != l.delivery.active {
			// One shipper after the other, wholly: what a destination stores with its chunks then
			// needs no merging.
			if len(l.delivery.out) > 0 && !l.delivery.stands() {
				return
			}
			l.delivery.active = q
		}
		s, isRing := q.(*feed)
		if isRing && !l.due(s) {
			return
		}
		flights, ok := q.take(l.pack)
		if !ok {
			return
		}
		if isRing && !l.pack.full() {
			l.gatherTo = time.Time{} // what comes now waits for others anew
		}
		for _, f := range flights {
			l.delivery.submit(f)
		}
	}
}

// next is what is to be shipped from: what dead processes left, then the own spill, then the own
// ring.
func (l *loop) next() shipper {
	if q := l.legacy.next(); q != nil {
		return q
	}
	if q := l.spiller.next(l.delivery.stands()); q != nil {
		return q
	}
	return l.oldest()
}

// note notes what others are told of the disk.
func (l *loop) note() {
	l.count.spilling.Store(l.holds())
	disk := int64(0)
	for _, sp := range append(l.spills(), l.spiller.relief.aside...) {
		if !sp.gone.Load() {
			disk += sp.Bytes()
		}
	}
	l.count.disk.Store(disk)
}

// spills are all that are open, but for those of what is put aside.
func (l *loop) spills() []*backlog {
	all := l.legacy.spills()
	if sp := l.spiller.own; sp != nil {
		all = append(all, sp)
	}
	return all
}

// holds says that events are in a spill, or on their way into one.
func (l *loop) holds() bool { return l.spiller.holds() || l.legacy.holds() }
