// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"runtime"
	"time"
)

const (
	anchorEvery = time.Second      // so often the ring's wall clock is set again while there is something to do
	idleEvery   = 10 * time.Second // and while there is not
	shortest    = 100 * time.Microsecond
	quickest    = 4 * time.Millisecond
	liveFor     = time.Second // for so long after a record the mover looks by itself whether there are others
)

// timing is when the loop looks again.
type timing struct {
	liveTo   time.Time     // until then records may come without waking the loop
	every    time.Duration // what pace said last
	gatherTo time.Time     // when the oldest unread event has waited for others long enough
	anchorAt time.Time
	spins    int
	timer    *time.Timer
}

// due says whether the records of a feed are to be cut now: the own ring's wait a little for
// others to come.
func (l *loop) due(s *feed) bool {
	if !s.Own || s != l.rings.cur.Load() || l.hurried(s) {
		return true
	}
	return s.Unread() >= uint64(l.pack.batch) || s.Fill() && !l.gatherTo.IsZero() && !time.Now().Before(l.gatherTo)
}

// hurried says that a call waits for what is in the own ring.
func (l *loop) hurried(s *feed) bool {
	return l.phase >= sealed || len(l.flushes) > 0 || s.waiting.Load() > 0
}

// rest waits until there may be something to do.
func (l *loop) rest() {
	s := l.rings.cur.Load()
	now := time.Now()
	l.report(s.Ring.Short())
	if !now.Before(l.anchorAt) {
		s.Ring.Anchor()
		l.anchorAt = now.Add(anchorEvery)
	}
	wait := idleEvery
	able := l.able()
	filled := able && s.Fill()
	if filled {
		l.liveTo = now.Add(liveFor)
	}
	switch {
	case filled, able && now.Before(l.liveTo) && !l.hurried(s):
		// What will have come by then has waited no longer than from now.
		if l.gatherTo.IsZero() || !filled && !now.Before(l.gatherTo) {
			l.gatherTo = now.Add(l.cfg.FlushInterval)
		}
		if filled && l.due(s) {
			return
		}
		unread := s.Unread()
		wait = min(l.gatherTo.Sub(now), l.pace(unread >= uint64(l.pack.batch)/8))
		s.Ring.SetPressure(max(s.Ring.Used()+int64(l.pack.batch)-int64(unread), s.Ring.Size()/2))
		if filled && l.due(s) {
			return
		}
	case able:
		l.gatherTo = time.Time{}
		l.every = 0
		if l.sleepOn(s, &wait) {
			return
		}
	default:
		used := s.Ring.Used()
		line := l.limit(s, used)
		switch {
		case line > 0 && used >= line:
			// What could be taken was. If that was nothing, the next record will be the one to go.
			line = 0
			if !s.Crowded() && (s.Fill() || l.sleepOn(s, &wait)) {
				return
			}
		case line > 0:
			wait = l.pace(line-used < int64(l.pack.batch))
			line += (s.Ring.Size() - line) / 2
		}
		s.Ring.SetPressure(line)
	}
	if d := l.anchorAt.Sub(now); wait < idleEvery && d < wait {
		wait = d
	}
	l.timer.Reset(l.others(now, wait))
	select {
	case <-l.mail.wakeup:
		l.timer.Stop()
	case <-l.timer.C:
	case <-l.spiller.room:
		l.spiller.room, l.spiller.refused = nil, false
	}
}

// others is wait, or less if something else than the own ring is to be looked at before.
func (l *loop) others(now time.Time, wait time.Duration) time.Duration {
	if l.cfg.Dir != "" {
		wait = min(wait, max(l.legacy.lookIn(now, l.spiller.lookIn(now, idleEvery)), shortest))
	}
	if (len(l.legacy.queue) > 0 || l.spiller.own != nil && l.spiller.own.live > 0) && len(l.delivery.out) > 0 {
		if d := l.delivery.tookAt.Add(l.cfg.quiet).Sub(now); d > 0 {
			wait = min(wait, d)
		}
	}
	if l.legacy.looks() {
		wait = min(wait, max(l.legacy.adoptAt.Sub(now), 0))
	}
	if l.count.untold.Load() && !l.tellAt.IsZero() {
		wait = min(wait, max(l.tellAt.Sub(now), 0))
	}
	return wait
}

// pace is when to look again while records come: soon if there are many. So appenders need not wake
// the mover, which costs the one that does it a system call (they do when half of the ring has come
// into use meanwhile).
func (l *loop) pace(many bool) time.Duration {
	if many {
		l.every /= 2
	} else {
		l.every *= 2
	}
	l.every = min(max(l.every, quickest), max(l.cfg.FlushInterval, quickest))
	return l.every
}

// sleepOn asks the ring to wake the loop when something is appended, or says that there is
// something already.
func (l *loop) sleepOn(s *feed, wait *time.Duration) bool {
	if !s.Ring.Sleep() {
		l.spins = 0
		return false
	}
	// There is a record. Maybe it cannot be seen yet, for another lane is in the middle of an
	// append.
	if l.spins++; l.spins < 16 {
		runtime.Gosched()
		return true
	}
	*wait = min(*wait, shortest)
	return false
}
