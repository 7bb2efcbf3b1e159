// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"sync/atomic"

	"github.com/spillwaylog/spillway/ring"
)

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

// accounts say what has become of events. They are written by the mover's goroutine, but for missed
// events and letters.
type accounts struct {
	rings *rings
	wake  func()

	inHand      load // cut from a ring or found in a spill, and not done
	adopted     load // found in what dead processes left
	waiting     load // of adopted rings, not taken yet
	delivered   atomic.Uint64
	handedOver  atomic.Uint64
	repeated    atomic.Uint64
	torn        atomic.Uint64
	spilled     atomic.Uint64
	ringsFound  atomic.Uint64 // of dead processes
	spillsFound atomic.Uint64
	inFlight    atomic.Int64
	disk        atomic.Int64 // bytes of this process's open spills
	spilling    atomic.Bool
	letters     atomic.Uint64 // events that are dead letters
	lettersLost atomic.Uint64 // events of letters, also of other processes, that gave way to new ones
	missed      [reasons]atomic.Uint64
	told        [reasons]atomic.Uint64
	inherited   [reasons]atomic.Uint64 // missed events of dead processes that these had not told
	untold      atomic.Bool            // there may be missed events that no summary has told
}

// The ring's counters: missed events by reason, those before Closed, and from here on what
// summaries have told of them. One reason more would count where another is told.
const (
	toldCounters = 8
	_            = uint(toldCounters - Closed)
	_            = uint(ring.Counters - toldCounters - Closed)
)

// miss counts events that are not delivered, in the ring as well, so that a successor can tell of
// them.
func (a *accounts) miss(r Reason, n uint64) {
	a.missed[r].Add(n)
	a.rings.cur.Load().Ring.Count(int(r), n)
	if !a.untold.Load() && a.untold.CompareAndSwap(false, true) {
		a.wake()
	}
}

// inherit takes over the missed events that a dead process had not told of.
func (a *accounts) inherit(s *feed) {
	for i := range int(Closed) {
		n := s.Ring.Counter(i) - s.Ring.Counter(toldCounters+i)
		if n == 0 || n > s.Ring.Counter(i) {
			continue
		}
		a.inherited[i].Add(n)
		a.rings.cur.Load().Ring.Count(i, n)
		s.Ring.Count(toldCounters+i, n)
		a.untold.Store(true)
	}
}

// owed are the missed events that no summary has told.
func (a *accounts) owed() (missed Missed) {
	for i := range missed[:Closed] { // there may be no summary after those
		missed[i] = a.missed[i].Load() + a.inherited[i].Load() - a.told[i].Load()
	}
	return missed
}

// tell notes that a summary in a ring tells of missed events.
func (a *accounts) tell(s *feed, missed *Missed) {
	for i, n := range missed[:Closed] {
		a.told[i].Add(n)
		s.Ring.Count(toldCounters+i, n)
	}
}

// untell takes back what the summary events up to a key have told, for they were dropped
// themselves; with dropped=false they are on their way, and only forgotten.
func (a *accounts) untell(s *feed, to uint64, dropped bool) {
	for len(s.telling) > 0 && s.telling[0].key <= to {
		if dropped {
			for i, n := range s.telling[0].missed[:Closed] {
				a.told[i].Add(-n)
				s.Ring.Count(toldCounters+i, -n)
			}
			a.untold.Store(true)
		}
		s.telling = s.telling[1:]
	}
}

// stats is a picture of all.
func (a *accounts) stats() Stats {
	s := Stats{Counts: Counts{
		Delivered:     a.delivered.Load(),
		HandedOver:    a.handedOver.Load(),
		MaybeRepeated: a.repeated.Load(),
		Torn:          a.torn.Load(),
		Spilled:       a.spilled.Load(),
		Adopted: Adopted{
			Rings: a.ringsFound.Load(), Spills: a.spillsFound.Load(),
			Events: a.adopted.events.Load(),
		},
		InFlight:     int(a.inFlight.Load()),
		DiskUsed:     a.disk.Load(),
		Spilling:     a.spilling.Load(),
		DeadLettered: a.letters.Load(),
		LettersLost:  a.lettersLost.Load(),
	}}
	for i := range reasons {
		s.Missed[i], s.Told[i] = a.missed[i].Load(), a.told[i].Load()
	}
	s.Missed.Count(&s.Counts)
	a.rings.mu.Lock()
	defer a.rings.mu.Unlock()
	s.Accepted = s.Adopted.Events + a.rings.gone
	s.Held = a.inHand.events.Load() + a.waiting.events.Load()
	s.HeldBytes = int64(a.inHand.bytes.Load() + a.waiting.bytes.Load())
	for _, r := range *a.rings.all.Load() {
		t := r.totals()
		s.Accepted += t.events
		s.Held += t.events - r.Taken.Load()
		s.HeldBytes += int64(t.bytes - r.Bytes.Load())
		s.RingUsed, s.RingSize, s.InMemory = t.used, t.size, t.path == ""
	}
	return s
}
