// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"sync/atomic"

	"github.com/spillwaylog/spillway/internal/fifo"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/ring"
)

// A feed is a ring that is read: one of this process, or an adopted one. What is not atomic
// belongs to the mover's goroutine.
type feed struct {
	window.Feed
	waiters
	origin          *origin
	name            string                 // of the ring's folder; the spill that belongs to it has the same
	stateID         [idLen]byte            // id of the last chunk whose state was stored; states.mu
	counted         bool                   // of an own ring: those records that cannot be read are
	spans           fifo.Queue[*span]      // in order
	telling         []telling              // summary events not cut yet, with DropOldest
	rest, restBytes uint64                 // of an adopted ring: records beyond its owner's last cut
	final           atomic.Pointer[totals] // once the ring is closed
}

func newFeed(r *ring.Ring, own bool, o *origin) *feed {
	s := &feed{origin: o}
	s.Ring, s.Own = r, own
	s.Spoiled = func(key uint64) { s.answerTo(key, key, ErrDropped) }
	return s
}

// totals is what a ring that is closed had.
type totals struct {
	events, bytes uint64 // appended
	used, size    int64
	path          string
}

// A span is a window that was cut, as long as something of it is undone.
type span struct {
	s           *feed
	first, last uint64 // keys
	left        int    // chunks undone
}

// An origin is the processes whose chunks one state covers. If the destination is an
// output.ByOrigin, this process is one, and so is each dead one whose chunks it ships; otherwise
// all of them together are one. The rings and spills of an origin have a state each; for a file the
// greatest length counts.
type origin struct {
	index  int          // of the output.Origin
	ring   *feed        // of a dead process; nil if it left only a spill
	spill  *spill.Spill // the same; nil if it left none
	latest []byte       // with states.mu held
}

// telling is a summary event that has not been cut yet, with DropOldest.
type telling struct {
	key    uint64
	missed Missed
}

// missed takes a chunk off that will not be delivered. sp may be nil.
func (sp *span) missed(first, last uint64) {
	if sp == nil {
		return
	}
	sp.left--
	sp.s.answerTo(first, last, ErrDropped)
}

// close ends the ring: gone when all is done, left for another process otherwise.
func (s *feed) close(leave bool) error {
	t := s.totals()
	s.final.Store(&t)
	if leave {
		return s.Ring.Leave()
	}
	return s.Ring.Close()
}

// whole says that another process can adopt the ring as it is.
func (s *feed) whole() bool {
	path := s.Ring.Path()
	if path == "" || s.Ring.Failed() != nil {
		return false
	}
	all, err := ring.Inspect(path)
	return err == nil && len(all) == 1 && all[0].Err == nil
}

// settle moves doneTo.
func (s *feed) settle() {
	for s.spans.Len() > 0 && s.spans.Front().left == 0 {
		s.spans.Pop()
	}
	to := s.CutTo
	if s.spans.Len() > 0 {
		to = s.spans.Front().first - 1
	}
	if to > s.doneTo.Load() {
		s.doneTo.Store(to)
	}
}

// totals are those of the ring now.
func (s *feed) totals() totals {
	if t := s.final.Load(); t != nil {
		return *t
	}
	t := totals{used: s.Ring.Used(), size: s.Ring.Size(), path: s.Ring.Path()}
	t.events, t.bytes = s.Ring.Appended()
	return t
}

// through says that all records up to a horizon are done.
func (s *feed) through(h uint64) bool {
	return (s.spans.Len() == 0 || s.spans.Front().first > h) && s.Reached(h)
}

// sent says that nothing more is to be cut.
func (s *feed) sent() bool { return s.Over() }

const idLen = window.IDLen
