// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"time"
)

// The watch is a goroutine that runs only while connections wait for memory. It cuts those that hold memory and do not go on: in each
// StallTimeout, a connection that reads a message must bring one part in stallShare of what it holds. One whose chunk the handler
// has is not slow, nor is one that waits for memory itself.

const (
	stallShare = 64
	stallTicks = 4 // looks in a StallTimeout
)

// mark is how far a connection was, when it was last seen going on.
type mark struct {
	turn  uint64
	bytes int64
	ticks int
}

// watch starts the watch, unless it runs. It is called by a connection that begins to wait for memory.
func (s *Server) watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching || s.stopped {
		return
	}
	s.watching = true
	s.running.Add(1)
	go s.watcher()
}

func (s *Server) watcher() {
	defer s.running.Done()
	tick := time.NewTicker(max(s.stallTimeout/stallTicks, time.Millisecond))
	defer tick.Stop()
	marks := make(map[*conn]mark)
	for {
		select {
		case <-tick.C:
		case <-s.stop:
			return
		}
		s.mu.Lock()
		if !s.mem.pressed() {
			s.watching = false // whoever waits from here on starts another one
			s.mu.Unlock()
			return
		}
		var slow []*conn
		for c := range s.conns {
			if c.slow(marks) {
				slow = append(slow, c)
			}
		}
		for c := range marks {
			if _, ok := s.conns[c]; !ok {
				delete(marks, c)
			}
		}
		s.mu.Unlock()
		for _, c := range slow {
			delete(marks, c)
			c.trouble(SlowSender, Closed, "", 0, fmt.Errorf("holds %d bytes that others wait for, and sends next to nothing", c.hold.held.Load()-c.hold.lent.Load()))
			c.abort()
		}
	}
}

// slow looks at one connection.
func (c *conn) slow(marks map[*conn]mark) bool {
	held, turn, bytes := c.hold.held.Load()-c.hold.lent.Load(), c.turn.Load(), c.bytes.Load()
	m, ok := marks[c]
	switch {
	case held <= 0 || turn&1 == 0: // holds nothing, or does not wait for its peer
		delete(marks, c)
	case !ok || bytes-m.bytes > held/stallShare:
		marks[c] = mark{turn, bytes, 0}
	default:
		if m.ticks++; m.ticks >= stallTicks {
			return true
		}
		marks[c] = m
	}
	return false
}
