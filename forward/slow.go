// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// How this file is organised. Memory that a connection holds for half a message is of use to nobody while its peer sends nothing. So relieve, which runs
// as soon as a connection waits for memory, and again while any does, cuts those that do not go on: those whose peer has not brought one part in stallShare of what
// they hold within the server's patience. Of several it takes first those of the peer that holds most, and of one peer those that hold most for longest.
// Who is within the patience is cut only for a small message, which waits for nothing: then it is another connection in the middle of a small one, or
// one that has waited longer than that for what a large one needs. One whose chunk the handler has is never cut, and one that holds nothing neither.

const (
	stallShare   = 64
	patienceMost = 100 // of a StallTimeout
	cutShare     = 32  // of the budget: what relieve gets back at least, so that it need not look for each connection
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
	tick := time.NewTicker(s.patience / 2)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-rest.C:
		case <-s.stop:
			return
		}
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
		select {
		case <-tick.C:
		case <-s.lacking:
		case <-s.stop:
			return
		}
		rest.Reset(restMost)
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
	little, all := s.mem.wanted()
	if all == 0 {
		return nil
	}
	least := s.mem.limit / cutShare
	all = max(min(all, s.mem.limit/4), least)
	if little > 0 {
		little = min(little, s.mem.limit/4) + least/8
	}
	now, patience := s.clock(), int64(s.patience)
	late := make(map[*share][]holding)
	var soon []holding // last resort
	for c := range s.conns {
		held := c.holds()
		if held <= 0 {
			continue
		}
		if c.cut.Load() { // it is on its way back
			little -= held
			all -= held
			continue
		}
		stalled, waits := c.stalled.Load(), c.hold.since.Load()
		h := holding{c, held, float64(held) * float64(now-max(stalled, waits))}
		switch {
		case waits != 0:
			if now-waits >= patience && held >= baseBuffer {
				soon = append(soon, h)
			}
		case stalled == 0 || c.turn.Load()&1 == 0: // in no message, or not waiting for its peer
		case now-stalled >= patience:
			late[c.hold.peer] = append(late[c.hold.peer], h)
		case now-stalled >= patience/patienceMost && !c.hold.big.Load():
			soon = append(soon, h)
		}
	}
	cut = latest(late, all)
	for _, h := range cut {
		little -= h.held
	}
	slices.SortFunc(soon, costlier)
	for i := 0; i < len(soon) && little > 0; i++ {
		little -= soon[i].held
		cut = append(cut, soon[i])
	}
	for _, h := range cut {
		h.c.giveWay()
		s.mem.refuse(&h.c.hold)
	}
	return cut
}

// latest chooses among those beyond the patience, by peer, until they hold want bytes.
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
