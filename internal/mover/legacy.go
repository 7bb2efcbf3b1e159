// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/ring"
)

// A legacy is what dead processes left: a queue of rings, spills and chunks, which are shipped
// before what is this process's own.
type legacy struct {
	*core
	delivery *delivery
	spiller  *spiller
	states   *states
	shelf    *shelf

	discovered bool             // what they left is known
	adoptAt    time.Time        // look again then
	queue      []shipper        // in the order of shipping
	adopted    []*feed          // rings that are still open
	stranded   []*backlog       // spills that cannot be read now
	mixed      bool             // the own spill holds what was adopted
	behind     map[shipper]bool // those of queue that are younger than that
}

// begin has the states restored, and what lies in Dir found, before anything is submitted.
func (l *legacy) begin() {
	rings := l.adopt()
	l.adoptAt = time.Now().Add(l.cfg.adoptEvery)
	if l.resumer == nil && l.cfg.Dir == "" {
		l.found(rings, nil)
		return
	}
	l.adopted = rings
	l.disk.do("looking for spills", func() {
		l.report(l.shelf.folder.Unusable())
		spills := l.shelf.discover(rings)
		if err := l.states.resume(rings, spills); err != nil {
			l.report(fmt.Errorf("restoring what the destination was doing: %w", err))
		}
		if !l.mail.post(func() { l.found(rings, spills) }) {
			closeAll(spills)
		}
	})
}

// begun says that what they left is known, or would have to be read from a disk that hangs. A
// destination with states waits for that: it has to know what is written.
func (l *legacy) begun() bool { return l.discovered || l.spiller.hangs && l.resumer == nil }

// look looks for rings of processes that died since Open. Not so for a destination with states,
// which has to see them all before anything is submitted. Their spills come with them; spills
// without a ring wait for the next Open, since looking for them would touch the disk.
func (l *legacy) look() {
	now := time.Now()
	if !l.looks() || now.Before(l.adoptAt) {
		return
	}
	l.adoptAt = now.Add(l.cfg.adoptEvery)
	l.disk.do("looking for rings", func() {
		rings := l.adopt()
		var spills []*spill.Spill
		if len(rings) > 0 && l.cfg.Dir != "" {
			spills = l.shelf.discover(rings)
		}
		if !l.mail.post(func() { l.found(rings, spills) }) {
			for _, s := range rings {
				_ = s.close(true) // they are as they were
			}
			closeAll(spills)
		}
	})
}

func (l *legacy) looks() bool {
	return l.cfg.Shm != "" && l.resumer == nil && l.discovered && len(l.queue) == 0 && l.phase < sealed
}

// adopt takes over the rings that dead processes of the same identity left. They are read when
// their spills are known.
func (l *legacy) adopt() []*feed {
	if l.cfg.Shm == "" {
		return nil
	}
	mine := l.cfg.identity()
	rings, err := ring.Adopt(l.cfg.Shm, l.cfg.Name, func(o ring.Owner) bool { return bytes.Equal(o.Identity, mine) },
		l.cfg.Diagnostics)
	if err != nil {
		l.report(fmt.Errorf("looking for rings: %w", err))
	}
	var found []*feed
	for _, r := range rings {
		s := newFeed(r, false, &l.rings.origin)
		s.name = filepath.Base(r.Path())
		copy(s.stateID[:], r.State()) // before a state is stored, which goes behind it
		if l.byOrigin != nil {
			s.origin = &origin{ring: s}
		}
		found = append(found, s)
	}
	return found
}

// found queues what dead processes left. Of each, first what was with its destination, then what it
// had spilled, which is younger, then what it was spilling, then the rest of its ring.
func (l *legacy) found(rings []*feed, all []*spill.Spill) {
	var spills []*backlog
	ids := map[[idLen]byte]bool{}
	for _, found := range all {
		sp := newBacklog(l.core, l.shelf, l.delivery.pool, found, l)
		sp.origin = cmp.Or(l.states.ofSpill[found], sp.origin)
		for id := range sp.IDs {
			ids[id] = true
		}
		sp.IDs = nil
		l.count.spillsFound.Add(1)
		for i := range sp.entries.Len() {
			e := sp.entries.At(i)
			l.count.adopted.add(uint64(e.Events), e.Bytes)
			l.count.inHand.add(uint64(e.Events), e.Bytes)
		}
		spills = append(spills, sp)
	}
	// Spills without a ring come in their turn, by age.
	lone := func(before *feed) {
		for len(spills) > 0 && (before == nil || spills[0].Made.Before(before.Ring.Owner().Made)) {
			l.queue = append(l.queue, spills[0])
			spills = spills[1:]
		}
	}
	with := map[string]*backlog{}
	for _, s := range rings {
		for i, sp := range spills {
			if filepath.Base(sp.Dir) == s.name {
				with[s.name] = sp
				spills = slices.Delete(spills, i, i+1)
				break
			}
		}
	}
	for _, s := range rings {
		lone(s)
		l.count.ringsFound.Add(1)
		l.count.inherit(s)
		older, younger := l.rebuild(s, ids)
		l.queue = append(l.queue, older)
		if sp := with[s.name]; sp != nil {
			older.before = sp
			l.queue = append(l.queue, sp)
		}
		l.queue = append(l.queue, younger, s)
	}
	lone(nil)
	for _, s := range rings {
		l.adopted = append(without(l.adopted, s), s) // begin may have noted it
	}
	l.discovered = true
}

// rebuild makes the chunks again that the owner of a ring had cut, and accounts for them.
func (l *legacy) rebuild(s *feed, ids map[[idLen]byte]bool) (older, younger *remnant) {
	found := window.Rebuild(&s.Feed, s.stateID, ids)
	if found.Bad > 0 {
		l.count.adopted.add(found.Bad, 0)
		l.overwritten(s, found.Bad)
	}
	flights := func(chunks []*window.Marked) (all []*flight) {
		for _, k := range chunks {
			f := l.delivery.pool.take()
			k.MoveTo(&f.Marked)
			f.feed = s
			n := uint64(f.Chunk.Events)
			l.count.adopted.add(n, f.Bytes)
			l.count.inHand.add(n, f.Bytes)
			all = append(all, f)
		}
		return all
	}
	older = &remnant{s: s, chunks: flights(found.Older)}
	younger = &remnant{s: s, chunks: flights(found.Younger)}
	s.rest, s.restBytes = found.Rest, found.Bytes
	l.count.adopted.add(s.rest, s.restBytes)
	l.count.waiting.add(s.rest, s.restBytes)
	return older, younger
}

// A remnant is chunks of an adopted ring that its owner had cut.
type remnant struct {
	s      *feed
	chunks []*flight
	before *backlog // holds what is younger
}

func (r *remnant) take(*packer) ([]*flight, bool) {
	if len(r.chunks) == 0 {
		return nil, false
	}
	first := r.chunks[:1]
	r.chunks = r.chunks[1:]
	return first, true
}

// sent: the next in the queue waits anyway until nothing is with the destination.
func (r *remnant) sent() bool { return len(r.chunks) == 0 }

// next is what is to be shipped of the queue now; nil: nothing.
func (l *legacy) next() shipper {
	l.unmix()
	for i := 0; i < len(l.queue) && !l.behind[l.queue[i]]; {
		q := l.queue[i]
		switch sp, ok := q.(*backlog); {
		case l.over(q):
			l.queue = slices.Delete(l.queue, i, i+1)
		case ok && l.spiller.hangs && len(sp.ahead) == 0:
			i++ // what is younger does not wait for a disk that hangs
		case q.sent() && l.delivery.stands():
			i++
		default:
			return q
		}
	}
	return nil
}

// over says that there is nothing more to come, and lets go of it.
func (l *legacy) over(q shipper) bool {
	switch q := q.(type) {
	case *backlog:
		return l.overSpill(q)
	case *feed:
		return l.overRing(q)
	}
	return q.sent()
}

func (l *legacy) overSpill(sp *backlog) bool {
	if sp.broken && len(sp.ahead) == 0 {
		// Nothing more can be had of it now. It comes back when something can.
		if len(l.delivery.out) > 0 && l.delivery.active == shipper(sp) {
			return false
		}
		l.stranded = append(l.stranded, sp)
		return true
	}
	if sp.entries.Len() > 0 {
		return false
	}
	l.states.spillGoes(sp.origin)
	if !sp.gone.Load() {
		sp.remove()
	}
	return true
}

func (l *legacy) overRing(s *feed) bool {
	if s.Fill() || !s.Ended || s.Out > 0 {
		return false
	}
	l.states.ringGoes(s.origin)
	// What was counted when the ring was found and could not be read later, and what was unreadable
	// from the beginning, as far as that can be counted.
	if loss := s.Ring.Lost(); loss.Regions > 0 {
		n := max(loss.Regions, loss.Records)
		l.report(fmt.Errorf("of the adopted ring %s %d bytes in %d places cannot be read: at least %d events are lost",
			s.name, loss.Bytes, loss.Regions, n))
		l.count.adopted.add(n, 0)
		l.count.miss(Lost, n)
	}
	if n := s.rest - s.Taken.Load(); n > 0 {
		l.count.waiting.sub(n, s.restBytes-s.Bytes.Load())
		l.count.miss(Lost, n)
	}
	if err := s.close(false); err != nil {
		l.report(fmt.Errorf("removing an adopted ring: %w", err))
	}
	l.adopted = without(l.adopted, s)
	return true
}

// spillAdopted moves what dead processes left in memory to the own spill while the destination
// takes nothing, so that processes that are started and die again and again do not fill the memory.
// What is with the destination stays, and what has to come before a spill that cannot be moved. So
// does all that is for files of each process: their lines have no ids. Of what is in a ring and in
// the spill of another process, because this one was killed in between, two successors would each
// write the lines that they find.
func (l *legacy) spillAdopted() {
	if len(l.queue) == 0 || l.cfg.Dir == "" || l.byOrigin != nil || !l.delivery.stalled() ||
		!l.spiller.circumstances().spillable() {
		return
	}
	for i, q := range l.queue {
		switch q := q.(type) {
		case *remnant:
			if len(q.chunks) > 0 && (q.before == nil || q.before.entries.Len() == 0) {
				chunks := q.chunks
				q.chunks = nil
				l.follow(i)
				l.spiller.toDisk(chunks)
				return
			}
		case *feed:
			if l.spiller.spill(q) {
				l.follow(i)
				return
			}
		case *backlog:
			if l.behind[q] {
				return // what follows must not pass it
			}
		}
	}
	l.queue = slices.DeleteFunc(l.queue, l.over)
}

// follow notes that of the queue's i-th something is in the own spill now: what is younger has to
// wait for that.
func (l *legacy) follow(i int) {
	if !l.mixed {
		l.mixed, l.behind = true, map[shipper]bool{}
	}
	for _, q := range l.queue[i:] {
		l.behind[q] = true
	}
}

// unmix forgets that once the own spill is empty.
func (l *legacy) unmix() {
	if l.spiller.empty() {
		l.mixed, l.behind = false, nil
	}
}

// retired queues a spill of this process that was removed, or a file of it.
func (l *legacy) retired(sp *backlog) {
	sp.keeper = l
	at := slices.IndexFunc(l.queue, func(q shipper) bool { return l.behind[q] })
	if at < 0 {
		at = len(l.queue)
	}
	l.queue = slices.Insert(l.queue, at, shipper(sp))
}

func (l *legacy) vanished(sp *backlog) {
	sp.vanish()
	l.states.spillGoes(sp.origin)
	l.readable(sp)
}

func (l *legacy) readable(sp *backlog) {
	if i := slices.Index(l.stranded, sp); i >= 0 {
		l.stranded = slices.Delete(l.stranded, i, i+1)
		l.queue = slices.Insert(l.queue, 0, shipper(sp))
	}
}

// again tries once more what could not be read.
func (l *legacy) again(now time.Time) {
	for _, sp := range l.stranded {
		sp.again(now)
	}
}

// lookIn is how soon the disk is to be looked at, or limit.
func (l *legacy) lookIn(now time.Time, limit time.Duration) time.Duration {
	for _, sp := range l.stranded {
		limit = min(limit, sp.againAt.Sub(now))
	}
	return limit
}

// spills are those that are open.
func (l *legacy) spills() []*backlog {
	var all []*backlog
	for _, q := range l.queue {
		if sp, ok := q.(*backlog); ok {
			all = append(all, sp)
		}
	}
	return append(all, l.stranded...)
}

// holds says that events are in a spill.
func (l *legacy) holds() bool {
	return len(l.stranded) > 0 || slices.ContainsFunc(l.spills(),
		func(sp *backlog) bool { return sp.entries.Len() > 0 })
}
