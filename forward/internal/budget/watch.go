// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync/atomic"
	"time"
)

const (
	stalls     = 10          // a StallTimeout is so many times the longest patience
	stallShare = 64 * stalls // so a StallTimeout is for one part in 64 of what is held
	lessons    = 10          // the longest patience is so many times the shortest
	looks      = 8           // in the patience, and more in a long one; a pause of less is none
	pauses     = 3           // that a connection has made before are within the patience with it

	maxInterval = 25 * time.Millisecond // between two looks

	// LookLeast is the shortest time between two looks: a look is for all that wait meanwhile.
	LookLeast = 2 * time.Millisecond
)

// A Watch is how long there is patience with connections that hold memory and do not go on, while
// others wait for it. Durations are in nanoseconds.
//
// It learns how long patience is of use. It begins with the longest. While connections are cut and
// hardly any goes on after a pause, nothing comes of waiting: the patience is halved, down to the
// shortest. It doubles where they do go on, and while none is cut. With a connection that has gone
// on after a pause there is patience for several such pauses, up to the longest.
//
// An honest peer may be slow because the machine is. So only time counts in which somebody waited
// and the watcher looked on: that is what Now tells.
type Watch struct {
	longest  int64        // patience
	patience atomic.Int64 // by the watcher, as all that follows but for the last
	looked   atomic.Int64 // for how long it has looked on, and one
	learnt   int64        // looked, when it last thought about the patience
	cuts     int64        // since then
	cutAt    int64        // by the clock, when a connection was last cut or the patience grew without
	resumed  atomic.Int64 // pauses since learnt that peers ended by themselves; by readers
}

// Begin makes a blank watch one for which a sender may take so long for one part in 64 of what it
// holds.
func (w *Watch) Begin(stall time.Duration) {
	w.longest = max(int64(stall)/stalls, lessons*int64(LookLeast))
	w.patience.Store(w.longest)
	w.looked.Store(1)
}

// Now is for how long the watcher has looked on. It is never 0.
func (w *Watch) Now() int64 { return w.looked.Load() }

// Patience is how long it is at present.
func (w *Watch) Patience() time.Duration { return time.Duration(w.patience.Load()) }

// Every is the time between two looks, if nobody begins to wait meanwhile.
func (w *Watch) Every() time.Duration {
	return min(max(time.Duration(w.patience.Load()/looks), LookLeast), maxInterval)
}

// Look counts the time since the last look. A watcher that gets no turn counts next to none.
func (w *Watch) Look(since time.Duration) { w.looked.Add(int64(min(since, 2*maxInterval))) }

// Learn thinks about the patience, when as much time is over since it last did. clock is a time
// that only grows; so many were cut at the last look.
func (w *Watch) Learn(cut int, clock int64) {
	patience, now := w.patience.Load(), w.looked.Load()
	if w.cuts += int64(cut); cut > 0 {
		w.cutAt = clock
	}
	switch {
	case clock-w.cutAt > w.longest:
		patience *= 2
		w.cutAt += w.longest
	case now-w.learnt < patience || w.cuts == 0:
		return
	case w.cuts > w.resumed.Load():
		patience /= 2
	default:
		patience *= 2
	}
	w.patience.Store(min(max(patience, w.longest/lessons), w.longest))
	w.learnt, w.cuts = now, 0
	w.resumed.Store(0)
}

// completed notes that a message is complete, whose peer has paused for so long at most.
func (w *Watch) completed(paused int64) {
	if paused >= w.patience.Load()/looks {
		w.resumed.Add(1)
	}
}

// with is the patience with a peer that has gone on after such a pause.
func (w *Watch) with(pause int64) int64 {
	patience := min(max(w.patience.Load(), pauses*pause), w.longest)
	return patience + patience/looks // what is between two looks may be shorter
}
