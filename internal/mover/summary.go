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
func (m *Mover) tell() {
	if m.cfg.Summary == nil || !m.count.untold.Load() {
		return
	}
	s := m.rings.cur.Load()
	now := time.Now()
	if m.phase < sealed {
		switch {
		case now.Before(m.tellAt):
			return
		case s.r.Used() > s.r.Size()/2 && !m.able():
			m.tellAt = now.Add(tellEvery / 4)
			return
		}
	}
	m.count.untold.Store(false)
	drops := m.count.owed()
	if drops.Total() == 0 {
		m.tellAt = time.Time{}
		return
	}
	m.payload = m.cfg.Summary(m.payload[:0], drops)
	key, err := s.r.AppendReserved(ring.Now, m.payload)
	if err != nil {
		m.count.untold.Store(true)
		m.tellAt = now.Add(tellEvery)
		return
	}
	m.count.tell(s, &drops)
	m.tellAt = now.Add(tellEvery)
	if m.cfg.Overflow == DropOldest {
		s.telling = append(s.telling, telling{key, drops})
	}
}
