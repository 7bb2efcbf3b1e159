// SPDX-License-Identifier: Apache-2.0

package mover

// A fate is what becomes of the next records of the own ring.
type fate uint8

const (
	waits  fate = iota // they stay in the ring
	ships              // to the destination
	spills             // to the disk
	drops              // nowhere: they are counted
)

func (f fate) String() string { return [...]string{"waits", "ships", "spills", "drops"}[f] }

// circumstances are what the fate depends on, and nothing else.
type circumstances struct {
	phase    phase
	overflow Overflow
	dir      bool // there is a place for spills
	refused  bool // the spill has no room, or its disk takes nothing
	busy     bool // the disk's goroutine has a window, or chunks wait for it: what is younger must not pass them
	able     bool // the destination can have the records
	short    bool // somebody with DropOldest found no room in the ring
	beyond   bool // as much of the ring is in use as line says, or more
	over     bool // so much more that a window is worth its while
}

// fate says what becomes of them. In the order of the cases: what is in plain memory is saved while
// Close still has time; what can be shipped is; there is no hurry while the ring has room; and then
// the disk comes before dropping.
func (c circumstances) fate() fate {
	switch {
	case c.phase == pouring && c.spillable():
		return spills
	case c.phase >= stopped: // and the ring outlives the process, or nothing more can be done
		return waits
	case c.able:
		return ships
	}
	switch {
	case c.line() == 0 || !c.over && !c.short:
		return waits
	case c.spillable():
		return spills
	case c.droppable():
		return drops
	}
	return waits
}

// spillable says that the disk can have the records now.
func (c circumstances) spillable() bool {
	return c.dir && !c.refused && !c.busy && c.phase != stopped
}

// droppable says that they may be dropped: never what the disk may yet take.
func (c circumstances) droppable() bool {
	return c.overflow == DropOldest && (!c.dir || c.refused || c.beyond)
}

// line is how full the ring may be while it cannot be shipped from, in eighths; 0: as full as it
// gets.
func (c circumstances) line() int64 {
	switch {
	case c.spillable():
		return 4
	case c.overflow != DropOldest || c.phase >= stopped:
		return 0
	case !c.dir || c.refused:
		return 6
	}
	return 7 // the disk may yet take it
}

// basics are the circumstances that cost nothing to see.
func (m *Mover) basics() circumstances {
	return circumstances{
		phase: m.phase, overflow: m.cfg.Overflow, dir: m.cfg.Dir != "", refused: m.stalled || m.refused && m.lasting,
		busy: m.handing >= mostHanding || len(m.stuck) > 0,
	}
}

// circumstances are all of them.
func (m *Mover) circumstances() circumstances {
	c := m.basics()
	c.able, c.short = m.able(), m.short.Load()
	s := m.rings.cur.Load()
	used := s.r.Used()
	if line := s.r.Size() / 8 * c.line(); line > 0 && used >= line {
		c.beyond = true
		c.over = used >= m.limit(s, used)
	}
	return c
}

// limit is line in bytes, or more where little of what is in use could be taken: windows of a few
// records are not worth their while.
func (m *Mover) limit(s *source, used int64) int64 {
	line := s.r.Size() / 8 * m.basics().line()
	if line == 0 || used < line {
		return line
	}
	return min(max(line, used+int64(m.batch)/2-int64(s.unread())), s.r.Size()/8*7)
}

// able says that the own ring's records can be shipped now.
func (m *Mover) able() bool {
	s := m.rings.cur.Load()
	if !m.begun() || m.phase >= stopped || !m.roomy() || s.marks > mostMarks {
		return false
	}
	return m.next() == shipper(s) && (m.inFlight == 0 || m.active == shipper(s) || m.stands())
}
