// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/budget"
)

// How this file is organised. Memory that a connection holds for half a message is of use to nobody
// while its peer sends nothing. So relieve, which runs while connections wait for memory, cuts
// those that do not go on, by the patience that there is (package budget). First comes the one that
// overdraws. Then it takes those of the peer that holds most, and of one peer those that have held
// most for longest. No more are cut than others wait for.
//
// Only time counts in which the connection was read and nothing was there: not what the server
// itself took for a message. Whose bytes stand in the socket is not cut either.
//
// One whose chunk the handler has is never cut, nor one that waits for memory, nor one that holds
// nothing.

const (
	// Of the budget: what relieve gets back at least, so that it need not look for each connection.
	cutShare = 32
	maxPause = 8 * time.Millisecond // between two looks, however long one takes where cores are scarce
)

// watcher is a goroutine while connections wait for memory.
type watcher struct {
	roster  *roster
	running atomic.Bool   // written with roster.mu held
	lacking chan struct{} // there may be something to do; holds one
}

// lack sees to it that those that do not go on are cut. It is called by a connection that begins to
// wait.
func (w *watcher) lack() {
	select {
	case w.lacking <- struct{}{}:
	default: // the watcher is about to look
	}
	if w.running.Load() {
		return
	}
	w.roster.mu.Lock()
	defer w.roster.mu.Unlock()
	if w.roster.stopped || w.running.Swap(true) {
		return
	}
	w.roster.s.running.Add(1)
	go w.run()
}

// run looks again and again.
func (w *watcher) run() {
	s := w.roster.s
	defer s.running.Done()
	tick := time.NewTimer(0)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	var conns []*remote
	for last := s.clock(); ; {
		select {
		case <-rest.C:
		case <-s.stop:
			return
		}
		began := s.clock()
		s.watch.Look(time.Duration(began - last))
		last = began
		w.roster.mu.Lock()
		if !s.mem.Pressed() {
			w.running.Store(false) // whatever waits from here on starts another one
			w.roster.mu.Unlock()
			return
		}
		for c := range w.roster.conns {
			conns = append(conns, c)
		}
		// It is wanted for each connection that comes or goes, and these are looked at for
		// milliseconds.
		w.roster.mu.Unlock()
		cut := s.relieve(conns)
		clear(conns)
		conns = conns[:0]
		s.watch.Learn(len(cut), began)
		for _, h := range cut {
			h.c.report(PeerSlowSender, ActionClose, "", 0,
				fmt.Errorf("holds %d bytes that others wait for, and sends next to nothing", h.held))
		}
		took := time.Duration(s.clock() - began)
		tick.Reset(s.watch.Every())
		select {
		case <-tick.C:
		case <-w.lacking:
		case <-s.stop:
			return
		}
		rest.Reset(min(max(budget.LookLeast, 4*took), maxPause))
	}
}

// A holding is a connection that may be cut.
type holding struct {
	c    *remote
	held int64
	cost float64 // bytes times nanoseconds for which it has not gone on
}

func costlier(a, b holding) int { return cmp.Compare(b.cost, a.cost) }

// relieve cuts connections for those that wait, and returns which. One that has ended meanwhile
// holds nothing.
func (s *shared) relieve(conns []*remote) (cut []holding) {
	want := s.mem.Wanted()
	if want == 0 {
		return nil
	}
	want = max(min(want, s.mem.Limit()/4), s.mem.Limit()/cutShare)
	now := s.watch.Now()
	late := make(map[*budget.Peer][]holding)
	for _, c := range conns {
		held := c.hold.Own()
		if held <= 0 {
			continue
		}
		if c.cut.Load() { // it is on its way back
			want -= held
			continue
		}
		since := c.pace.Late(now)
		if since == 0 {
			continue
		}
		h := holding{c, held, float64(held) * float64(since)}
		if c.hold.Overdraws() {
			if !c.unread() {
				want -= held
				cut = append(cut, h)
			}
			continue
		}
		late[c.hold.Peer()] = append(late[c.hold.Peer()], h)
	}
	cut = append(cut, latest(late, want)...)
	for _, h := range cut {
		h.c.giveWay()
		h.c.hold.Refuse()
	}
	return cut
}

// latest chooses among those beyond the patience, by peer, until those chosen hold want bytes.
func latest(late map[*budget.Peer][]holding, want int64) (chosen []holding) {
	left := make(map[*budget.Peer]int64, len(late)) // what a peer will hold
	for p, l := range late {
		slices.SortFunc(l, costlier)
		left[p] = p.Held()
	}
	for want > 0 && len(late) > 0 {
		var most *budget.Peer
		for p := range late {
			if most == nil || left[p] > left[most] {
				most = p
			}
		}
		h := late[most][0]
		if late[most] = late[most][1:]; len(late[most]) == 0 {
			delete(late, most)
		}
		if h.c.unread() {
			continue // it goes on
		}
		left[most] -= h.held
		want -= h.held
		chosen = append(chosen, h)
	}
	return chosen
}
