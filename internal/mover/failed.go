// SPDX-License-Identifier: Apache-2.0

package mover

import "fmt"

// oldest is the oldest own ring in which there may be records. Those before it have failed, and are
// let go when all that could be read of them is done.
func (c *core) oldest() *feed {
	for {
		all := *c.rings.all.Load()
		if len(all) == 1 || !c.finished(all[0]) {
			return all[0]
		}
	}
}

// finished says that all that could be read of a ring that failed is done, and lets go of it: what
// could not be read is lost.
func (c *core) finished(s *feed) bool {
	if s.Fill() || !s.Ended || s.Out > 0 {
		return false
	}
	s.settle()
	if s.spans.Len() > 0 {
		return false
	}
	c.loseUnread(s)
	s.doneTo.Store(1<<64 - 1)
	s.failWaiters()
	c.rings.remove(s)
	return true
}

// loseUnread counts what can no longer be read of an own ring that failed. What comes next gets
// another ring, also when no call has met the failure yet.
func (c *core) loseUnread(s *feed) {
	if !s.Ended || s.Fill() || s.counted {
		return
	}
	s.counted = true
	c.rings.replace(s)
	t := s.totals()
	n := t.events - s.Taken.Load()
	if n == 0 {
		return
	}
	s.Taken.Add(n)
	s.Bytes.Store(t.bytes)
	c.count.miss(Lost, n)
	s.answerTo(s.CutTo+1, 1<<64-1, ErrDropped)
	c.report(fmt.Errorf("%d events of the ring that failed cannot be read: they are lost", n))
}
