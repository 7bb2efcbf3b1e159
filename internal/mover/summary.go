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
	s := m.cur.Load()
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
	var drops Drops
	for i := range drops[:Closed] { // there may be no summary after those
		drops[i] = m.count.drops[i].Load() + m.count.inherited[i].Load() - m.count.told[i].Load()
	}
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
	for i, n := range drops[:Closed] {
		m.count.told[i].Add(n)
		s.r.Count(toldCounters+i, n)
	}
	m.tellAt = now.Add(tellEvery)
	if m.cfg.Overflow == DropOldest {
		s.telling = append(s.telling, telling{key, drops})
	}
}

// telling is a summary event that has not been cut yet.
type telling struct {
	key   uint64
	drops Drops
}

// untell takes back what the summary events up to a key have told, for they were dropped
// themselves; with dropped=false they are on their way, and only forgotten.
func (m *Mover) untell(s *source, to uint64, dropped bool) {
	for len(s.telling) > 0 && s.telling[0].key <= to {
		if dropped {
			for i, n := range s.telling[0].drops[:Closed] {
				m.count.told[i].Add(-n)
				s.r.Count(toldCounters+i, -n)
			}
			m.count.untold.Store(true)
		}
		s.telling = s.telling[1:]
	}
}
