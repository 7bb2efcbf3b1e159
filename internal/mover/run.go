// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"runtime"
	"slices"
	"time"
)

const (
	anchorEvery = time.Second      // so often the ring's wall clock is set again while there is something to do
	idleEvery   = 10 * time.Second // and while there is not
	shortest    = 100 * time.Microsecond
	quickest    = 4 * time.Millisecond
	liveFor     = time.Second // for so long after a record the mover looks by itself whether there are others
)

// run is the mover's goroutine: a loop over all there is to do, and a rest until something happens.
func (m *Mover) run() {
	defer m.end()
	for {
		m.collect()
		if m.phase == leaving {
			return
		}
		m.measure()
		m.ship()
		m.again()
		m.overflow()
		m.pourAdopted()
		m.pourOn()
		m.adoptAgain()
		m.tell()
		m.count.spilling.Store(m.holds())
		m.hopeless.Store((m.cfg.Dir == "" || m.why.Load() != nil) && !m.able())
		m.answer()
		m.rest()
	}
}

// collect does what others asked for, and takes back chunks that the destination is done with.
func (m *Mover) collect() {
	calls := m.mail.fetch() // before the chunks: what was done before a call is seen with it
	m.inbox.Lock()
	m.finished, m.inbox.done = m.inbox.done, m.finished[:0]
	m.inbox.Unlock()
	now := time.Now()
	for i, f := range m.finished {
		m.landing(f, now)
		m.finished[i] = nil
	}
	for i, fn := range calls {
		fn()
		calls[i] = nil
	}
}

// ship hands chunks to the destination as long as it may have more.
func (m *Mover) ship() {
	if !m.begun() || m.phase >= stopped {
		return
	}
	for m.roomy() {
		src := m.next()
		if src != m.active {
			// One source after the other, wholly: what a destination stores with its chunks then
			// needs no merging.
			if m.inFlight > 0 && !m.stands() {
				return
			}
			m.active = src
		}
		if !src.ship(m) {
			return
		}
	}
}

// A shipper is a source or a spill, as the queue of what is to be shipped sees it.
type shipper interface {
	ship(m *Mover) bool // submits something, or says no
	over(m *Mover) bool // says that there is nothing more to come, and lets go of it
	sent() bool         // says that the destination has all that there is, or that it is over
}

// pending is what the disk's goroutine is writing: it has to be read again before anything younger.
type pending struct{}

func (pending) ship(*Mover) bool { return false }
func (pending) over(*Mover) bool { return false }
func (pending) sent() bool       { return false }

// leftover is the chunks that the spill had no room for, once it is empty.
type leftover Mover

func (l *leftover) ship(m *Mover) bool {
	if len(m.stuck) == 0 {
		return false
	}
	f := m.stuck[0]
	if f.younger() {
		m.readdress(m.stuck, toDestination)
	}
	m.stuck = m.stuck[1:]
	m.submit(f)
	return true
}

func (l *leftover) over(*Mover) bool { return false }
func (l *leftover) sent() bool       { return false }

// stands says that the destination has had chunks for a while, and takes none of them. It may be
// one that a server refuses, without a word. Others have to come to show that, so the next source
// goes on; a host gets them in order all the same. Not so where there are states.
func (m *Mover) stands() bool {
	return m.resumer == nil && m.inFlight > 0 && time.Since(m.landedAt) >= m.cfg.quiet
}

// roomy says that the destination may have another chunk.
func (m *Mover) roomy() bool {
	few := m.inFlight < m.cfg.Window
	if m.cfg.Ordered {
		few = m.inFlight < mostFlying && m.inWindows < m.cfg.Window
	}
	return few && (m.inBytes < m.flight || m.inFlight == 0)
}

// next is what is to be shipped from: what dead processes left, then the own spill, then the own
// ring.
func (m *Mover) next() shipper {
	m.unmix()
	for i := 0; i < len(m.queue) && !m.behind[m.queue[i]]; {
		q := m.queue[i]
		switch sp, ok := q.(*backlog); {
		case q.over(m):
			m.queue = slices.Delete(m.queue, i, i+1)
		case ok && m.stalled && len(sp.ahead) == 0:
			i++ // what is younger does not wait for a disk that hangs
		case q.sent() && m.stands():
			i++
		default:
			return q
		}
	}
	switch {
	case m.spill != nil && m.spill.ships(m):
		return m.spill
	case m.inHand():
		return pending{}
	case len(m.stuck) > 0:
		return (*leftover)(m)
	}
	return m.oldest()
}

// begun says that what dead processes left is known, or would have to be read from a disk that
// hangs. A destination with states waits for that: it has to know what is written.
func (m *Mover) begun() bool { return m.scouted || m.stalled && m.resumer == nil }

// oldest is the oldest own ring in which there may be records. Those before it have failed, and are
// let go when all that could be read of them is done.
func (m *Mover) oldest() *source {
	for {
		all := *m.rings.all.Load()
		if len(all) == 1 || !all[0].over(m) {
			return all[0]
		}
	}
}

// ship cuts a window and submits its chunks.
func (s *source) ship(m *Mover) bool {
	if s.marks > mostMarks || !m.due(s) || !m.work.cut(s, m.batch) {
		return false
	}
	if !m.work.full {
		m.gatherTo = time.Time{} // what comes now waits for others anew
	}
	m.packed = m.pack(s, m.packed[:0], toDestination)
	for i, f := range m.packed {
		m.submit(f)
		m.packed[i] = nil
	}
	return true
}

// due says whether the records of a source are to be cut now: the own ring's wait a little for
// others to come.
func (m *Mover) due(s *source) bool {
	if !s.own || s != m.rings.cur.Load() || m.hurried(s) {
		return true
	}
	return s.unread() >= uint64(m.batch) || s.fill() && !m.gatherTo.IsZero() && !time.Now().Before(m.gatherTo)
}

// hurried says that somebody waits for what is in the own ring.
func (m *Mover) hurried(s *source) bool {
	return m.phase >= sealed || len(m.flushes) > 0 || s.waiting.Load() > 0
}

// rest waits until there may be something to do.
func (m *Mover) rest() {
	s := m.rings.cur.Load()
	now := time.Now()
	m.report(s.r.Short())
	if !now.Before(m.anchorAt) {
		s.r.Anchor()
		m.anchorAt = now.Add(anchorEvery)
	}
	wait := idleEvery
	able := m.able()
	filled := able && s.fill()
	if filled {
		m.liveTo = now.Add(liveFor)
	}
	switch {
	case filled, able && now.Before(m.liveTo) && !m.hurried(s):
		// What will have come by then has waited no longer than from now.
		if m.gatherTo.IsZero() || !filled && !now.Before(m.gatherTo) {
			m.gatherTo = now.Add(m.cfg.FlushInterval)
		}
		if filled && m.due(s) {
			return
		}
		unread := s.unread()
		wait = min(m.gatherTo.Sub(now), m.pace(unread >= uint64(m.batch)/8))
		s.r.SetPressure(max(s.r.Used()+int64(m.batch)-int64(unread), s.r.Size()/2))
		if filled && m.due(s) {
			return
		}
	case able:
		m.gatherTo = time.Time{}
		m.every = 0
		if m.sleepOn(s, &wait) {
			return
		}
	default:
		used := s.r.Used()
		line := m.limit(s, used)
		switch {
		case line > 0 && used >= line:
			// What could be taken was. If that was nothing, the next record will be the one to go.
			line = 0
			if s.marks <= mostMarks && (s.fill() || m.sleepOn(s, &wait)) {
				return
			}
		case line > 0:
			wait = m.pace(line-used < int64(m.batch))
			line += (s.r.Size() - line) / 2
		}
		s.r.SetPressure(line)
	}
	if d := m.anchorAt.Sub(now); wait < idleEvery && d < wait {
		wait = d
	}
	wait = min(wait, max(m.diskIn(now), shortest))
	if (len(m.queue) > 0 || m.spill != nil && m.spill.live > 0) && m.inFlight > 0 {
		if d := m.landedAt.Add(m.cfg.quiet).Sub(now); d > 0 {
			wait = min(wait, d)
		}
	}
	if m.cfg.Shm != "" && m.resumer == nil && m.scouted && len(m.queue) == 0 && m.phase < sealed {
		wait = min(wait, max(m.adoptAt.Sub(now), 0))
	}
	if m.count.untold.Load() && !m.tellAt.IsZero() {
		wait = min(wait, max(m.tellAt.Sub(now), 0))
	}
	m.timer.Reset(wait)
	select {
	case <-m.mail.bell:
		m.timer.Stop()
	case <-m.timer.C:
	case <-m.room:
		m.room, m.refused = nil, false
	}
}

// diskIn is how soon the disk is to be looked at.
func (m *Mover) diskIn(now time.Time) time.Duration {
	if m.cfg.Dir == "" {
		return idleEvery
	}
	wait := idleEvery
	if m.refused && !m.againAt.IsZero() {
		wait = min(wait, m.againAt.Sub(now))
	}
	if job, since := m.disk.doing(); job != "" && !m.stalled {
		wait = min(wait, since.Add(m.cfg.diskPatience).Sub(now))
	}
	if sp := m.spill; sp != nil && sp.broken {
		wait = min(wait, sp.againAt.Sub(now))
	}
	for _, sp := range m.stranded {
		wait = min(wait, sp.againAt.Sub(now))
	}
	return wait
}

// pace is when to look again while records come: soon if there are many. So appenders need not wake
// the mover, which costs the one who does it a system call (they do when half of the ring has come
// into use meanwhile).
func (m *Mover) pace(many bool) time.Duration {
	if many {
		m.every /= 2
	} else {
		m.every *= 2
	}
	m.every = min(max(m.every, quickest), max(m.cfg.FlushInterval, quickest))
	return m.every
}

// sleepOn asks the ring to wake us when something is appended, or says that there is something
// already.
func (m *Mover) sleepOn(s *source, wait *time.Duration) bool {
	if !s.r.Sleep() {
		m.spins = 0
		return false
	}
	// There is a record. Maybe it cannot be seen yet, for another lane is in the middle of an
	// append.
	if m.spins++; m.spins < 16 {
		runtime.Gosched()
		return true
	}
	*wait = min(*wait, shortest)
	return false
}
