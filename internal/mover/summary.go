// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"time"

	"github.com/spillwaylog/spillway/ring"
)

// tellEvery is how much time there is at least between two summary events.
const tellEvery = time.Second

// tell appends an event that says what was dropped since the last one. While the ring is full it
// waits, so that one event tells of all.
func (l *loop) tell() {
	if l.cfg.Summary == nil || !l.count.untold.Load() {
		return
	}
	s := l.rings.cur.Load()
	now := time.Now()
	if l.phase < sealed {
		switch {
		case now.Before(l.tellAt):
			return
		case s.Ring.Used() > s.Ring.Size()/2 && !l.able():
			l.tellAt = now.Add(tellEvery / 4)
			return
		}
	}
	l.count.untold.Store(false)
	missed := l.count.owed()
	if missed.Total() == 0 {
		l.tellAt = time.Time{}
		return
	}
	l.payload = l.cfg.Summary(l.payload[:0], missed)
	key, err := s.Ring.AppendReserved(ring.Now, l.payload)
	if err != nil {
		l.count.untold.Store(true)
		l.tellAt = now.Add(tellEvery)
		return
	}
	l.count.tell(s, &missed)
	l.tellAt = now.Add(tellEvery)
	if l.cfg.Overflow == DropOldest {
		s.telling = append(s.telling, telling{key, missed})
	}
}
