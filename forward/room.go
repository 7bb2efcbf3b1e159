// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// makeRoom waits until there is room for one more connection among so many at most, after it has
// closed those that have been idle longest.
func (w *roster) makeRoom(limit int) {
	if limit <= 0 {
		return
	}
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		w.mu.Lock()
		over := len(w.conns) + 1 - limit
		w.mu.Unlock()
		if over <= 0 || w.s.down.Load() {
			return
		}
		w.giveWay(over)
		tick.Reset(10 * time.Millisecond)
		select {
		case <-w.ends:
		case <-tick.C:
		case <-w.s.stop:
			return
		}
	}
}

var errTooMany = errors.New("there are as many connections as there may be, and this one has been idle longest")

// giveWay closes n connections: those that have been idle longest, and then such in the middle of a
// message. Those that are on their way out already count.
func (w *roster) giveWay(n int) {
	type idler struct {
		c     *remote
		busy  int
		since int64
	}
	var idlers []idler
	w.mu.Lock()
	for c := range w.conns {
		switch {
		case c.cut.Load():
			n--
		case !c.pace.Waits(): // it does not wait for its peer
		case !c.pace.InMessage():
			idlers = append(idlers, idler{c, 0, c.pace.Idle()})
		default:
			idlers = append(idlers, idler{c, 1, c.pace.Idle()})
		}
	}
	slices.SortFunc(idlers, func(a, b idler) int {
		return cmp.Or(cmp.Compare(a.busy, b.busy),
			cmp.Compare(a.since, b.since))
	})
	idlers = idlers[:max(0, min(n, len(idlers)))]
	for _, i := range idlers {
		i.c.giveWay()
	}
	w.mu.Unlock()
	for _, i := range idlers {
		i.c.report(PeerTooMany, ActionClose, "", 0, errTooMany)
	}
}
