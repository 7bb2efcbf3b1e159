// SPDX-License-Identifier: Apache-2.0

package mover

// overflow makes room in the ring while its records cannot be shipped: they go to the spill, or,
// with DropOldest and no spill that takes them, nowhere.
func (l *loop) overflow() {
	for {
		action := l.circumstances().action()
		s := l.rings.full()
		switch {
		case action == ships:
			l.short.Store(false) // room comes by itself; a call that finds none all the same asks again
			return
		case action == spills && (s == nil || !l.spiller.spill(s)):
			l.spiller.relief.begin(l.delivery.pinning())
			return
		case action == waits || s == nil:
			return
		case action == drops && !l.spiller.drop() && !l.pack.drop(s):
			return
		}
		l.short.Store(false)
	}
}

// circumstances are all of them.
func (l *loop) circumstances() circumstances {
	c := l.spiller.circumstances()
	c.able, c.short = l.able(), l.short.Load()
	s := l.rings.cur.Load()
	used := s.Ring.Used()
	if line := s.Ring.Size() / 8 * c.line(); line > 0 && used >= line {
		c.beyond = true
		c.over = used >= l.limit(s, used)
	}
	return c
}

// limit is line in bytes, or more where little of what is in use could be taken: windows of a few
// records are not worth their while.
func (l *loop) limit(s *feed, used int64) int64 {
	line := s.Ring.Size() / 8 * l.spiller.circumstances().line()
	if line == 0 || used < line {
		return line
	}
	return min(max(line, used+int64(l.pack.batch)/2-int64(s.Unread())), s.Ring.Size()/8*7)
}

// able says that the own ring's records can be shipped now.
func (l *loop) able() bool {
	s, d := l.rings.cur.Load(), l.delivery
	if !l.legacy.begun() || l.phase >= stopped || !d.roomy() || s.Crowded() {
		return false
	}
	return l.next() == shipper(s) && (len(d.out) == 0 || d.active == shipper(s) || d.stands())
}
