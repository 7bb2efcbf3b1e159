// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// How this file is organised. Memory that a connection holds for half a message is of use to nobody
// while its peer sends nothing. So relieve, which runs while connections wait for memory, cuts
// those that do not go on: those whose peer has not brought one part in stallShare of what they
// hold within the server's patience. First comes the one that overdraws. Then it takes those of the
// peer that holds most, and of one peer those that have held most for longest. No more are cut than
// others wait for.
//
// An honest peer may be slow because the machine is. So only time counts in which somebody waited
// and the watcher looked on (looked), and in which the connection was read and nothing was there:
// not what the server itself took for a message. Whose bytes stand in the socket is not cut either.
//
// One whose chunk the handler has is never cut, nor one that waits for memory, nor one that holds
// nothing.
//
// The watcher learns how long patience is of use. It begins with the longest. While connections are
// cut and hardly any goes on after a pause, nothing comes of waiting: the patience is halved, down
// to the shortest. It doubles where they do go on, and while none is cut. With a connection that
// has gone on after a pause there is patience for several such pauses, up to the longest.

const (
	stalls     = 10          // a StallTimeout is so many times the longest patience
	stallShare = 64 * stalls // so a StallTimeout is for one part in 64 of what is held
	lessons    = 10          // the longest patience is so many times the shortest
	looks      = 8           // in the patience, and more in a long one; a pause of less is none
	pauses     = 3           // that a connection has made before are within the patience with it
	cutShare   = 32          // of the budget: what relieve gets back at least, so that it need not look for each connection

	everyMost = 25 * time.Millisecond // between two looks
	restMost  = 8 * time.Millisecond  // between two looks, however long one takes where cores are scarce
	restLeast = 2 * time.Millisecond  // a look is for all that wait meanwhile
)

// A watch is what the watcher knows. Durations are in nanoseconds.
type watch struct {
	running  atomic.Bool   // written with Server.mu held
	lacking  chan struct{} // there may be something to do; holds one
	longest  int64         // patience
	patience atomic.Int64  // by the watcher, as all that follows but for the last
	looked   atomic.Int64  // for how long it has looked on, and one
	learnt   int64         // looked, when it last thought about the patience
	cuts     int64         // since then
	cutAt    int64         // by the clock, when a connection was last cut or the patience grew without
	resumed  atomic.Int64  // pauses since learnt that peers ended by themselves; by readers
}

func (w *watch) init(stall time.Duration) {
	w.lacking = make(chan struct{}, 1)
	w.longest = max(int64(stall)/stalls, lessons*int64(restLeast))
	w.patience.Store(w.longest)
	w.looked.Store(1)
}

// every is the time between two looks, if nobody begins to wait meanwhile.
func (w *watch) every() time.Duration {
	return min(max(time.Duration(w.patience.Load()/looks), restLeast), everyMost)
}

// look counts the time since the last look. A watcher that gets no turn counts next to none.
func (w *watch) look(since time.Duration) { w.looked.Add(int64(min(since, 2*everyMost))) }

// learn thinks about the patience, when as much time is over since it last did. clock is that of
// the server.
func (w *watch) learn(cut int, clock int64) {
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

// completed notes that a message is complete, whose peer has made pauses.
func (w *watch) completed(c *conn) {
	if c.paused >= w.patience.Load()/looks {
		w.resumed.Add(1)
	}
	c.paused = 0
}

// with is the patience with a connection.
func (w *watch) with(c *conn) int64 {
	patience := min(max(w.patience.Load(), pauses*c.pause.Load()), w.longest)
	return patience + patience/looks // what is between two looks may be shorter
}

// clock is a time that only grows, in nanoseconds, and is never 0.
func (s *Server) clock() int64 { return int64(time.Since(s.began)) + 1 }

// lack sees to it that those that do not go on are cut. It is called by a connection that begins to
// wait.
func (s *Server) lack() {
	w := &s.watch
	select {
	case w.lacking <- struct{}{}:
	default: // the watcher is about to look
	}
	if w.running.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || w.running.Swap(true) {
		return
	}
	s.running.Add(1)
	go s.watcher()
}

// watcher runs while connections wait.
func (s *Server) watcher() {
	defer s.running.Done()
	w := &s.watch
	tick := time.NewTimer(0)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	var conns []*conn
	for last := s.clock(); ; {
		select {
		case <-rest.C:
		case <-s.stop:
			return
		}
		began := s.clock()
		w.look(time.Duration(began - last))
		last = began
		s.mu.Lock()
		if !s.mem.pressed() {
			w.running.Store(false) // whoever waits from here on starts another one
			s.mu.Unlock()
			return
		}
		for c := range s.conns {
			conns = append(conns, c)
		}
		s.mu.Unlock() // it is wanted for each connection that comes or goes, and these are looked at for milliseconds
		cut := s.relieve(conns)
		clear(conns)
		conns = conns[:0]
		w.learn(len(cut), began)
		for _, h := range cut {
			h.c.trouble(SlowSender, Closed, "", 0, fmt.Errorf("holds %d bytes that others wait for, and sends next to nothing", h.held))
		}
		took := time.Duration(s.clock() - began)
		tick.Reset(w.every())
		select {
		case <-tick.C:
		case <-w.lacking:
		case <-s.stop:
			return
		}
		rest.Reset(min(max(restLeast, 4*took), restMost))
	}
}

// A holding is a connection that may be cut.
type holding struct {
	c    *conn
	held int64
	cost float64 // bytes times nanoseconds for which it has not gone on
}

func costlier(a, b holding) int { return cmp.Compare(b.cost, a.cost) }

// relieve cuts connections for those that wait, and returns which. One that has ended meanwhile
// holds nothing.
func (s *Server) relieve(conns []*conn) (cut []holding) {
	want := s.mem.wanted()
	if want == 0 {
		return nil
	}
	want = max(min(want, s.mem.limit/4), s.mem.limit/cutShare)
	now := s.watch.looked.Load()
	over := s.mem.over.Load()
	late := make(map[*share][]holding)
	for _, c := range conns {
		held := c.holds()
		if held <= 0 {
			continue
		}
		if c.cut.Load() { // it is on its way back
			want -= held
			continue
		}
		since := c.stalled.Load()
		if since == 0 || c.turn.Load()&1 == 0 || now-since < s.watch.with(c) {
			continue // in no message, or not waiting for its peer, or that goes on
		}
		h := holding{c, held, float64(held) * float64(now-since)}
		if over == &c.hold {
			if !c.unread() {
				want -= held
				cut = append(cut, h)
			}
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
		if h.c.unread() {
			continue // it goes on
		}
		left[most] -= h.held
		want -= h.held
		chosen = append(chosen, h)
	}
	return chosen
}
