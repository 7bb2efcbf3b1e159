// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"sync/atomic"

	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/ring"
)

// mostTags is how many tags a window may have: each is a chunk and takes one of the ring's 64
// marks.
const mostTags = 16

// mostMarks is with how many marks in use a window may still be cut.
const mostMarks = 64 - mostTags - 4

// readAhead is how many records are asked of the ring at once.
const readAhead = 256

// A source is a ring that is read: one of this process, or an adopted one. What is not atomic
// belongs to the mover's goroutine.
type source struct {
	r               *ring.Ring
	own             bool
	origin          *origin
	name            string                 // of the ring's folder; the spill that belongs to it has the same
	label           [idLen]byte            // id of the last chunk whose state was stored; states.mu
	taken           atomic.Uint64          // records that were put into windows, dropped, or found unusable
	bytes           atomic.Uint64          // of these
	ahead           []ring.Record          // read, but not taken
	pos             int                    // in ahead
	ended           bool                   // there will be no more records
	counted         bool                   // of an own ring: those that cannot be read are
	marks           int                    // in use
	out             int                    // chunks that were cut here and are with the destination, or with the disk's goroutine
	cutTo           uint64                 // key of the last record taken
	spans           queue[*span]           // in order
	telling         []telling              // summary events not cut yet, with DropOldest
	rest, restBytes uint64                 // of an adopted ring: records beyond its owner's last cut
	final           atomic.Pointer[totals] // once the ring is closed

	waiters
}

// totals is what a ring that is closed had.
type totals struct {
	events, bytes uint64 // appended
	used, size    int64
	path          string
}

// A span is a window that was cut, as long as something of it is undone.
type span struct {
	s           *source
	first, last uint64 // keys
	left        int    // chunks undone
}

// An origin is whose chunks a state speaks of: this process and, unless the destination is an
// output.Sourced, all that died and whose chunks it ships; else each of these is one. Its rings and
// spills have a state each; of a file the greatest length counts.
type origin struct {
	index  int          // of the output.Source
	ring   *source      // of a dead process; nil if it left only a spill
	spill  *spill.Spill // the same; nil if it left none
	latest []byte       // with states.mu held
}

// telling is a summary event that has not been cut yet, with DropOldest.
type telling struct {
	key   uint64
	drops Drops
}

// dropped takes a chunk off that will not be delivered. sp may be nil.
func (sp *span) dropped(first, last uint64) {
	if sp == nil {
		return
	}
	sp.left--
	sp.s.answerTo(first, last, ErrDropped)
}

// unread says how many bytes wait in the ring. To count them looks like an append to a ring that we
// sleep on: it is not done for nothing.
func (s *source) unread() uint64 {
	if !s.fill() {
		return 0
	}
	_, n := s.r.Appended()
	return n - s.bytes.Load()
}

// close ends the ring: gone when all is done, left for another process otherwise.
func (s *source) close(leave bool) error {
	t := s.totals()
	s.final.Store(&t)
	if leave {
		return s.r.Leave()
	}
	return s.r.Close()
}

// fill makes sure that there is a record ahead, and says whether there is one.
func (s *source) fill() bool {
	if s.pos < len(s.ahead) {
		return true
	}
	if s.ended {
		return false
	}
	s.ahead, s.pos = s.ahead[:0], 0
	for len(s.ahead) < readAhead {
		rec, ok, _ := s.r.Next() // an error is told by Failed; what can be read still comes
		if !ok {
			s.ended = s.r.Drained()
			break
		}
		if !s.own && rec.Key <= s.cutTo {
			continue // it is in a chunk that was built, or done
		}
		s.ahead = append(s.ahead, rec)
	}
	return len(s.ahead) > 0
}

// reached says that every record with a key up to h, whose append has returned, has been taken.
func (s *source) reached(h uint64) bool {
	if s.fill() {
		return s.ahead[s.pos].Key > h
	}
	if s.ended {
		return true
	}
	n, _ := s.r.Appended()
	return s.taken.Load() >= n
}

// settle moves doneTo.
func (s *source) settle() {
	for s.spans.len() > 0 && s.spans.front().left == 0 {
		s.spans.pop()
	}
	to := s.cutTo
	if s.spans.len() > 0 {
		to = s.spans.front().first - 1
	}
	if to > s.doneTo.Load() {
		s.doneTo.Store(to)
	}
}

// totals are those of the ring now.
func (s *source) totals() totals {
	if t := s.final.Load(); t != nil {
		return *t
	}
	t := totals{used: s.r.Used(), size: s.r.Size(), path: s.r.Path()}
	t.events, t.bytes = s.r.Appended()
	return t
}

// through says that all records up to a horizon are done.
func (s *source) through(h uint64) bool {
	return (s.spans.len() == 0 || s.spans.front().first > h) && s.reached(h)
}

func (s *source) sent() bool { return !s.fill() && s.ended }
