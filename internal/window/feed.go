// SPDX-License-Identifier: Apache-2.0

package window

import (
	"sync/atomic"

	"github.com/spillwaylog/spillway/ring"
)

const (
	maxTags   = 16               // of a window: each is a chunk and takes one of the ring's 64 marks
	maxMarks  = 64 - maxTags - 4 // that may be in use when a window is cut
	readAhead = 256              // records that are asked of the ring at once
)

// A Feed is a ring that windows are cut from: one of this process, or an adopted one. All but
// Taken and Bytes belongs to one goroutine.
type Feed struct {
	Ring    *ring.Ring
	Own     bool             // it is no adopted one
	Spoiled func(key uint64) // told of a record that is none any more, or cannot be read; nil: not told

	Taken atomic.Uint64 // records that were put into windows, passed over, or found spoiled
	Bytes atomic.Uint64 // of their payloads
	CutTo uint64        // key of the last one
	Ended bool          // there will be no more records; known once Fill has said no
	Out   int           // chunks that were cut here, and have not been unmarked

	marks int           // in use
	ahead []ring.Record // read, but not taken
	pos   int           // in ahead
}

// Fill makes sure that there is a record ahead, and says whether there is one.
func (s *Feed) Fill() bool {
	if s.pos < len(s.ahead) {
		return true
	}
	if s.Ended {
		return false
	}
	s.ahead, s.pos = s.ahead[:0], 0
	for len(s.ahead) < readAhead {
		rec, ok, _ := s.Ring.Next() // an error is told by Failed; what can be read still comes
		if !ok {
			s.Ended = s.Ring.Drained()
			break
		}
		if !s.Own && rec.Key <= s.CutTo {
			continue // it is in a chunk that was built, or done
		}
		s.ahead = append(s.ahead, rec)
	}
	return len(s.ahead) > 0
}

// Over says that all records have been taken that there will ever be.
func (s *Feed) Over() bool { return !s.Fill() && s.Ended }

// Crowded says that so many marks are in use that no window can be cut.
func (s *Feed) Crowded() bool { return s.marks > maxMarks }

// Marks is how many are in use.
func (s *Feed) Marks() int { return s.marks }

// Unread says how many bytes wait in the ring. To count them looks like an append to a ring that
// sleeps (ring.Sleep): it is not done for nothing.
func (s *Feed) Unread() uint64 {
	if !s.Fill() {
		return 0
	}
	_, n := s.Ring.Appended()
	return n - s.Bytes.Load()
}

// Reached says that every record with a key up to h, whose append has returned, has been taken.
func (s *Feed) Reached(h uint64) bool {
	if s.Fill() {
		return s.ahead[s.pos].Key > h
	}
	if s.Ended {
		return true
	}
	n, _ := s.Ring.Appended()
	return s.Taken.Load() >= n
}
