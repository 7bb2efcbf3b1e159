// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"sync"
	"sync/atomic"
)

// space is shared by appenders that found no room and the goroutines that make some. Segments are
// given back before mu is taken to wake others. An appender that was refused says so under mu and
// then looks once more: so one of the two sees the other.
type space struct {
	full   atomic.Bool   // not one segment is free but the reserve; written under mu
	wanted atomic.Bool   // idle lanes may hold what the reader can free, and an appender waits for room
	mu     sync.Mutex    // a leaf
	freed  chan struct{} // closed when room comes; nil: no append was refused since
}

// refuse notes that an append found no room, and asks full whether none would; first says that it
// is the only one since there was some.
func (s *space) refuse(full func() bool) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if full() {
		s.full.Store(true)
	}
	if first = s.freed == nil; first {
		s.freed = make(chan struct{})
	}
	return first
}

// missed says that an appender waits for room.
func (s *space) missed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed != nil
}

// allow lets all appenders that wait for room try again.
func (s *space) allow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full.Store(false)
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// looksFull lets appenders try again that may have been refused because segments were taken for a
// while that are free.
func (s *space) looksFull() {
	if s.full.Load() {
		s.allow()
	}
}

var hasRoom = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Space returns a channel that is closed when an Append that was refused with [ErrFull] may
// succeed; it may also be refused again.
func (s *space) Space() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freed == nil {
		return hasRoom
	}
	return s.freed
}
