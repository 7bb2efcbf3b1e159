// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// How this file is organised. Memory that a connection holds for half a message is of use to nobody
// while its peer sends nothing. So relieve, which runs while connections wait for memory, cuts those
// that do not go on: those whose peer has not brought one part in stallShare of what they hold within
// the server's patience. First comes the one that overdraws. Then it takes those of the peer that
// holds most, and of one peer those that have held most for longest. No more are cut than others wait for.
//
// An honest peer may be slow because the machine is. So only time counts in which somebody waited and
// the watcher looked on (watched), and in which the connection was read and nothing was there: not
// what the server itself took for a message. Whose bytes stand in the socket is not cut either.
//
// One whose chunk the handler has is never cut, nor one that waits for memory, nor one that holds nothing.

const (
	stalls     = 10          // a StallTimeout is so many times the patience
	stallShare = 64 * stalls // so a StallTimeout is for one part in 64 of what is held
	looks      = 8           // in the patience
	cutShare   = 32          // of the budget: what relieve gets back at least, so that it need not look for each connection
)

// clock is a time that only grows, in nanoseconds, and is never 0.
func (s *Server) clock() int64 { return int64(time.Since(s.began)) + 1 }

// watch sees to it that those that do not go on are cut. It is called by a connection that begins to wait.
func (s *Server) watch() {
	select {
	case s.lacking <- struct{}{}:
	default: // the watcher is about to look
	}
	if s.watching.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.watching.Swap(true) {
		return
	}
	s.running.Add(1)
	go s.watcher()
}

// restMost is what the watcher rests between two looks at all connections: it is for all that wait meanwhile.
const restMost = 2 * time.Millisecond

// watcher runs while connections wait.
func (s *Server) watcher() {
	defer s.running.Done()
	tick := time.NewTicker(s.look)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for last := s.clock(); ; {
		select {
		case <-rest.C:
		case <-s.stop:
			return
		}
		now := s.clock()
		s.watched.Add(min(now-last, int64(s.look))) // a watcher that gets no turn counts no time
		last = now
		s.mu.Lock()
		if !s.mem.pressed() {
			s.watching.Store(false) // whoever waits from here on starts another one
			s.mu.Unlock()
			return
		}
		cut := s.relieveLocked()
		s.mu.Unlock()
		for _, h := range cut {
			h.c.trouble(SlowSender, Closed, "", 0, fmt.Errorf("holds %d bytes that others wait for, and sends next to nothing", h.held))
		}
		took := time.Duration(s.clock() - now)
		select {
		case <-tick.C:
		case <-s.lacking:
		case <-s.stop:
			return
		}
		rest.Reset(max(restMost, 4*took))
	}
}

// A holding is a connection that may be cut.
type holding struct {
	c    *conn
	held int64
	cost float64 // bytes times nanoseconds for which it has not gone on
}

func costlier(a, b holding) int { return cmp.Compare(b.cost, a.cost) }

// relieveLocked cuts connections for those that wait, and returns which.
func (s *Server) relieveLocked() (cut []holding) {
	want := s.mem.wanted()
	if want == 0 {
		return nil
	}
	want = max(min(want, s.mem.limit/4), s.mem.limit/cutShare)
	now, patience := s.watched.Load(), int64(s.look*(looks+1)) // what is between two looks may be shorter
	over := s.mem.over.Load()
	late := make(map[*share][]holding)
	for c := range s.conns {
		held := c.holds()
		if held <= 0 {
			continue
		}
		if c.cut.Load() { // it is on its way back
			want -= held
			continue
		}
		since := c.stalled.Load()
		if since == 0 || c.turn.Load()&1 == 0 || now-since < patience || c.unread() {
			continue // in no message, or not waiting for its peer, or that goes on
		}
		h := holding{c, held, float64(held) * float64(now-since)}
		if over == &c.hold {
			want -= held
			cut = append(cut, h)
			continue
		}
		late[c.hold.peer] = append(late[c.hold.peer], h)
	}
	cut = append(cut, latest(late, want)...)
	for _, h := range cut {
		h.c.giveWay()
		s.mem.refuse(&h.c.hold)
	}
	return cut
}

// latest chooses among those beyond the patience, by peer, until those chosen hold want bytes.
func latest(late map[*share][]holding, want int64) (chosen []holding) {
	left := make(map[*share]int64, len(late)) // what a peer will hold
	for p, l := range late {
		slices.SortFunc(l, costlier)
		left[p] = p.held.Load()
	}
	for want > 0 && len(late) > 0 {
		var most *share
		for p := range late {
			if most == nil || left[p] > left[most] {
				most = p
			}
		}
		h := late[most][0]
		if late[most] = late[most][1:]; len(late[most]) == 0 {
			delete(late, most)
		}
		left[most] -= h.held
		want -= h.held
		chosen = append(chosen, h)
	}
	return chosen
}
