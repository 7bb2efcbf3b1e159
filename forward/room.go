// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// makeRoom waits until there is room for one more connection, after it has closed those that have
// been idle longest.
func (s *Server) makeRoom() {
	if s.MaxConnections <= 0 {
		return
	}
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		s.mu.Lock()
		over := len(s.conns) + 1 - s.MaxConnections
		s.mu.Unlock()
		if over <= 0 || s.down.Load() {
			return
		}
		s.giveWay(over)
		tick.Reset(10 * time.Millisecond)
		select {
		case <-s.ends:
		case <-tick.C:
		case <-s.stop:
			return
		}
	}
}

var errTooMany = errors.New("there are as many connections as there may be, and this one has been idle longest")

// giveWay closes n connections: those that have been idle longest, and then such in the middle of a
// message. Those that are on their way out already count.
func (s *Server) giveWay(n int) {
	type idler struct {
		c     *conn
		busy  int
		since int64
	}
	var idlers []idler
	s.mu.Lock()
	for c := range s.conns {
		switch {
		case c.cut.Load():
			n--
		case c.turn.Load()&1 == 0: // it does not wait for its peer
		case c.stalled.Load() == 0:
			idlers = append(idlers, idler{c, 0, c.idle.Load()})
		default:
			idlers = append(idlers, idler{c, 1, c.idle.Load()})
		}
	}
	slices.SortFunc(idlers, func(a, b idler) int { return cmp.Or(cmp.Compare(a.busy, b.busy), cmp.Compare(a.since, b.since)) })
	idlers = idlers[:max(0, min(n, len(idlers)))]
	for _, i := range idlers {
		i.c.giveWay()
	}
	s.mu.Unlock()
	for _, i := range idlers {
		i.c.trouble(TooMany, Closed, "", 0, errTooMany)
	}
}
