// SPDX-License-Identifier: Apache-2.0

package mover

// An action is what becomes of the next records of the own ring.
type action uint8

const (
	waits  action = iota // they stay in the ring
	ships                // to the destination
	spills               // to the disk
	drops                // nowhere: they are counted
)

func (f action) String() string { return [...]string{"waits", "ships", "spills", "drops"}[f] }

// circumstances are what the action depends on, and nothing else.
type circumstances struct {
	phase    phase
	overflow Overflow
	dir      bool // there is a place for spills
	refused  bool // the spill has no room, or its disk takes nothing
	busy     bool // the disk's goroutine has a window, or chunks wait for it: what is younger must not pass them
	able     bool // the destination can have the records
	short    bool // a call with DropOldest found no room in the ring
	beyond   bool // as much of the ring is in use as line says, or more
	over     bool // so much more that a window is worth its while
}

// action says what becomes of them. In the order of the cases: what is in plain memory is saved
// while Close still has time; what can be shipped is; there is no hurry while the ring has room;
// and then the disk comes before dropping.
func (c circumstances) action() action {
	switch {
	case c.phase == saving && c.spillable():
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
