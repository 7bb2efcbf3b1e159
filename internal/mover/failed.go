// SPDX-License-Identifier: Apache-2.0

package mover

import "fmt"

// oldest is the oldest own ring in which there may be records. Those before it have failed, and are
// let go when all that could be read of them is done.
func (g *core) oldest() *feed {
	for {
		all := *g.rings.all.Load()
		if len(all) == 1 || !g.finished(all[0]) {
			return all[0]
		}
	}
}

// finished says that all that could be read of a ring that failed is done, and lets go of it: what
// could not be read is lost.
func (g *core) finished(s *feed) bool {
	if s.Fill() || !s.Ended || s.Out > 0 {
		return false
	}
	s.settle()
	if s.spans.Len() > 0 {
		return false
	}
	g.loseUnread(s)
	s.doneTo.Store(1<<64 - 1)
	s.failWaiters()
	g.rings.remove(s)
	return true
}

// loseUnread counts what can no longer be read of an own ring that failed. What comes next gets
// another ring, also when no call has met the failure yet.
func (g *core) loseUnread(s *feed) {
	if !s.Ended || s.Fill() || s.counted {
		return
	}
	s.counted = true
	g.rings.replace(s)
	t := s.totals()
	n := t.events - s.Taken.Load()
	if n == 0 {
		return
	}
	s.Taken.Add(n)
	s.Bytes.Store(t.bytes)
	g.count.miss(Lost, n)
	s.answerTo(s.CutTo+1, 1<<64-1, ErrDropped)
	g.report(fmt.Errorf("%d events of the ring that failed cannot be read: they are lost", n))
}
