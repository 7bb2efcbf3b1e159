// SPDX-License-Identifier: Apache-2.0

package collector

import "sync/atomic"

// A ledger is what became of the events for one output. It stays when the output is changed, when
// it is removed, and when it comes again.
type ledger struct {
	// What the cursor has passed, in events but for broken. The follower's goroutine writes them.
	out, filtered, twice, unreadable, refused, diverted, restamped, dropped, broken atomic.Int64

	aside atomic.Int64 // of refused: given up because too much waited

	retries   atomic.Int64 // tries that failed
	throttled atomic.Int64 // times that the other side held the output up

	// What follows changes with Collector.mu held.
	sent struct{ events, chunks, bytes atomic.Int64 } // by followers that have ended
	// Stored while the output had no place in the journal, before it got one.
	outside atomic.Int64
	givenUp atomic.Int64 // with its place, when the journal was full
	gone    atomic.Bool  // it has no place
	goneAt  atomic.Int64 // what was stored then
}

// done is how many events are done with.
func (l *ledger) done() int64 {
	return l.out.Load() + l.filtered.Load() + l.unreadable.Load() + l.refused.Load() + l.dropped.Load() +
		l.givenUp.Load()
}

// missed is how many of the events that were stored did not concern the output.
func (l *ledger) missed(stored int64) int64 {
	n := l.outside.Load()
	if l.gone.Load() {
		n += stored - l.goneAt.Load()
	}
	return n
}

// loseLocked notes that the place is given up, with so many events that waited there.
func (l *ledger) loseLocked(waiting, stored int64) {
	l.givenUp.Add(waiting)
	l.goneAt.Store(stored)
	l.gone.Store(true)
}

// comeLocked notes that the output begins behind what is stored.
func (l *ledger) comeLocked(stored int64) {
	l.outside.Store(l.missed(stored))
	l.gone.Store(false)
}
