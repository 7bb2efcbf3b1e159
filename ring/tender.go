// SPDX-License-Identifier: Apache-2.0

package ring

import "time"

// tender is the goroutine that sees to the memory of a ring that takes appends.
type tender struct {
	*segments
	b     *backing
	spare int64     // segments that were free all the time between the last two looks
	due   time.Time // of the next look at what is not needed; zero: there is nothing
	retry time.Time // when more memory is asked for again; zero: it is not short
}

func (g *segments) startTender() {
	t := &tender{segments: g, b: g.backing}
	t.b.tending.Go(t.run)
}

// end waits until the tender is gone. Nothing asks for memory any more.
func (b *backing) end() {
	if b != nil {
		close(b.stop)
		b.tending.Wait()
	}
}

func (t *tender) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := time.Hour
		for _, at := range []time.Time{t.due, t.retry} {
			if !at.IsZero() {
				wait = min(wait, time.Until(at))
			}
		}
		timer.Reset(wait)
		select {
		case <-t.b.stop:
			return
		case <-t.b.wake:
			if !t.b.short.Load() {
				t.grow()
			}
		case <-timer.C:
		}
		now := time.Now()
		t.b.measure()
		t.askAgain(now)
		t.look(now)
	}
}

func (t *tender) stopped() bool {
	select {
	case <-t.b.stop:
		return true
	default:
		return false
	}
}

// grow gives all of their memory to segments that have some, and some more segments memory.
func (t *tender) grow() {
	for at := range t.pool.segments {
		if have := t.pool.segments[at].backed.Load(); have > 0 && !t.top(at) {
			return
		}
	}
	for t.pool.count.Load() < t.wanted() {
		if some, ok := t.add(max(1, int(blockLen/t.head.unit))); !some || !ok {
			return
		}
	}
}

// add gives memory to up to k segments that have none.
func (t *tender) add(k int) (some, ok bool) {
	t.b.moves.Add(1)
	defer t.letGo()
	at, k := t.pool.takeFresh(k)
	if at < 0 {
		return false, true
	}
	ok = true
	for i := at; i < at+k && ok; i++ {
		ok = t.fill(i)
	}
	t.pool.put(at, k)
	return true, ok
}

// letGo wakes appenders that may have been refused because the tender had segments.
func (t *tender) letGo() {
	t.b.moves.Add(1)
	if t.b.missed.Swap(false) {
		t.allow()
		return
	}
	t.looksFull()
}

// top gives a segment that has some of its memory the rest, if it may be asked for while an
// appender writes there: else only a free one.
func (t *tender) top(at int) bool {
	if !t.b.overwrites {
		return t.fill(at)
	}
	t.b.moves.Add(1)
	defer t.letGo()
	if !t.pool.takeAt(at, 0) {
		return true
	}
	defer t.pool.put(at, 1)
	return t.fill(at)
}

// fill gives a segment all of its memory.
func (t *tender) fill(at int) bool {
	s, off := &t.pool.segments[at], t.head.offset(at)
	for have := s.backed.Load(); have < t.head.unit; have = s.backed.Load() {
		if t.stopped() {
			return false
		}
		to := min(have+stepLen, t.head.unit)
		if err := t.b.get(off+have, off+to); err != nil {
			t.b.lacks(err)
			return false
		}
		s.has(to)
	}
	return true
}

// wanted is how many segments are to be free, the reserve included.
func (t *tender) wanted() int64 {
	ahead := max(fewAhead, min(t.used()/t.head.unit, int64(t.pool.n/8)))
	t.b.ahead.Store(ahead)
	return ahead + 1
}

// askAgain asks for more when there was none.
func (t *tender) askAgain(now time.Time) {
	switch {
	case !t.b.short.Load():
		t.retry = time.Time{}
	case t.retry.IsZero():
		t.retry = now.Add(t.b.again)
		t.life.callWake() // the mover looks at the ring's size anew
	case !now.Before(t.retry):
		t.retry = now.Add(t.b.again)
		if t.getsMore() {
			t.b.short.Store(false)
			t.retry = time.Time{}
			t.allow()
		}
	}
}

// getsMore says that there is memory again, or that the ring has all it can have.
func (t *tender) getsMore() bool {
	for at := range t.pool.segments {
		if have := t.pool.segments[at].backed.Load(); have > 0 && have < t.head.unit {
			return t.top(at)
		}
	}
	_, ok := t.add(1)
	return ok
}

// look gives back what was not needed since the look before the last one.
func (t *tender) look(now time.Time) {
	switch {
	case !t.hasMore():
		t.due = time.Time{}
		return
	case t.due.IsZero():
		t.spare = 0
	case now.Before(t.due):
		return
	default:
		least := t.pool.least.Load()
		t.shrink(min(t.spare, least))
		t.spare = least
	}
	t.due = now.Add(t.b.every)
	t.pool.least.Store(t.pool.count.Load())
}

// hasMore says that there is more than a ring has that is not used, and that it can be given back.
func (t *tender) hasMore() bool {
	if t.b.punch == nil {
		return false
	}
	for at := range t.pool.segments {
		if t.pool.segments[at].backed.Load() > idleLen(at, t.head.unit) {
			return true
		}
	}
	return false
}

// shrink gives back the memory of free segments: spare ones were not needed. Of a ring that was not
// used at all little stays.
func (t *tender) shrink(spare int64) {
	idle := spare >= t.pool.present()
	spare -= t.wanted()
	for at := t.pool.n - 1; at >= 0 && (idle || spare > 0) && t.b.punch != nil && !t.stopped(); at-- {
		keep := int64(0)
		if idle {
			keep = idleLen(at, t.head.unit)
		}
		if !t.cut(at, keep) {
			continue
		}
		spare--
	}
}

// cut leaves a segment only so much of its memory, if it is free.
func (t *tender) cut(at int, keep int64) bool {
	have := t.pool.segments[at].backed.Load()
	if have <= keep {
		return false
	}
	t.b.moves.Add(1)
	defer t.letGo()
	if !t.pool.takeAt(at, 1) {
		return false
	}
	t.pool.segments[at].backed.Store(keep)
	if t.b.punch(t.head.offset(at)+keep, t.head.offset(at)+have) != nil {
		t.b.punch = nil // it cannot be, here
	}
	t.pool.put(at, 1)
	return t.b.punch != nil
}
