// SPDX-License-Identifier: Apache-2.0

package mover

import "sync/atomic"

// load is events and the bytes of their payloads.
type load struct{ events, bytes atomic.Uint64 }

func (l *load) add(events, bytes uint64) {
	l.events.Add(events)
	l.bytes.Add(bytes)
}

func (l *load) sub(events, bytes uint64) {
	l.events.Add(-events)
	l.bytes.Add(-bytes)
}

// counters are written by the mover's goroutine, but for drops.
type counters struct {
	cut        load // taken out of a ring or found in a spill, and not done
	adopted    load // found in what dead processes left
	waiting    load // of adopted rings, not taken yet
	delivered  atomic.Uint64
	handedOver atomic.Uint64
	repeated   atomic.Uint64
	spilled    atomic.Uint64
	rings      atomic.Uint64 // adopted
	spills     atomic.Uint64
	inFlight   atomic.Int64
	disk       atomic.Int64 // bytes of this process's open spills
	spilling   atomic.Bool
	drops      [reasons]atomic.Uint64
	told       [reasons]atomic.Uint64
	inherited  [reasons]atomic.Uint64 // drops of dead processes that they had not told
	untold     atomic.Bool            // there may be drops that no summary has told
}

// The ring's counters: drops by reason, those before Closed, and from here on what summaries have
// told of them.
const toldCounters = 8

// drop counts events that are not delivered, in the ring as well, so that whoever adopts it can
// tell of them.
func (m *Mover) drop(r Reason, n uint64) {
	m.count.drops[r].Add(n)
	m.cur.Load().r.Count(int(r), n)
	if !m.count.untold.Load() && m.count.untold.CompareAndSwap(false, true) {
		m.wake()
	}
}

// Drop counts events that the caller itself left out, for the next summary event to tell.
func (m *Mover) Drop(r Reason, n uint64) {
	if r < reasons && !m.closed.Load() {
		m.drop(r, n)
	}
}

// Stats returns a picture of the Mover.
func (m *Mover) Stats() Stats {
	c := &m.count
	s := Stats{Counts: Counts{
		Delivered:     c.delivered.Load(),
		HandedOver:    c.handedOver.Load(),
		MaybeRepeated: c.repeated.Load(),
		Spilled:       c.spilled.Load(),
		Adopted:       Adopted{Rings: c.rings.Load(), Spills: c.spills.Load(), Events: c.adopted.events.Load()},
		InFlight:      int(c.inFlight.Load()),
		DiskUsed:      c.disk.Load(),
		Spilling:      c.spilling.Load(),
		DeadLettered:  m.dead.kept.Load(),
		LettersLost:   m.dead.dropped.Load(),
	}}
	for i := range reasons {
		s.Drops[i], s.Told[i] = c.drops[i].Load(), c.told[i].Load()
	}
	s.Sort(s.Drops)
	m.swap.Lock()
	defer m.swap.Unlock()
	s.Accepted = s.Adopted.Events + m.gone.events
	s.Held = c.cut.events.Load() + c.waiting.events.Load()
	s.HeldBytes = int64(c.cut.bytes.Load() + c.waiting.bytes.Load())
	for _, src := range *m.own.Load() {
		t := src.totals()
		s.Accepted += t.events
		s.Held += t.events - src.taken.Load()
		s.HeldBytes += int64(t.bytes - src.bytes.Load())
		s.RingUsed, s.RingSize, s.InMemory = t.used, t.size, t.path == ""
	}
	return s
}

func (s *source) totals() totals {
	if t := s.final.Load(); t != nil {
		return *t
	}
	t := totals{used: s.r.Used(), size: s.r.Size(), path: s.r.Path()}
	t.events, t.bytes = s.r.Appended()
	return t
}
