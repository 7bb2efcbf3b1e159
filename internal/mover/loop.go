// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"time"

	"github.com/spillwaylog/spillway/internal/output"
)

// A loop is what only the mover's goroutine touches.
type loop struct {
	finished []*flight      // of the inbox, being done
	resumer  output.Resumer // the destination, if it has states
	sourced  output.Sourced // and if they are those of one process each
	spill    *backlog       // this process's own; nil before it is needed
	flushes  []*flush
	work     cutting
	packed   []*flight
	payload  []byte // of a summary event
	tellAt   time.Time
	legacy
	air
	excess
	rests
	ending
	pool
}

// legacy is what dead processes left.
type legacy struct {
	scouted  bool             // it is known
	scouting bool             // somebody looks for what they left since
	adoptAt  time.Time        // look again then
	queue    []shipper        // in the order of shipping
	adopted  []*source        // rings that are still open
	stranded []*backlog       // adopted spills that cannot be read now
	mixed    bool             // the own spill holds what was adopted
	behind   map[shipper]bool // of queue: younger than that
}

// air is what the destination has.
type air struct {
	active    shipper   // whose chunks these are
	inFlight  int       // chunks
	inWindows int       // sequences that have some of them
	inBytes   int64     // their entries
	landedAt  time.Time // when the destination took something last, or got something after it had nothing
}

// excess is what goes to the spill, or should.
type excess struct {
	handing   int       // windows that the disk's goroutine has
	handed    *handover // the one that may come back
	stuck     []*flight // chunks that the spill had no room for, or that it does not get while the disk hangs
	stalled   bool      // the disk hangs
	refused   bool      // it takes nothing now
	lasting   bool      // and that is no room, not an error that may be over soon
	failing   time.Time // since when there are errors
	room      <-chan struct{}
	againAt   time.Time
	trouble   string // why nothing could be spilled, as told last
	troubleAt time.Time
}

// rests is when the loop looks again.
type rests struct {
	liveTo   time.Time     // until then records may come without waking anybody
	every    time.Duration // what pace said last
	gatherTo time.Time     // when the oldest unread event has waited for others long enough
	anchorAt time.Time
	spins    int
	timer    *time.Timer
}

// ending is what Close needs to know.
type ending struct {
	given   []*flight // chunks that the destination gave up
	saved   []string  // spills that Close made
	givenUp int64     // bytes of events that Close gave up
	leave   error     // why not all is delivered
	poured  chan struct{}
}

// pool is memory to be used again.
type pool struct {
	free    []*flight
	buffers [][]byte
	pooled  int // bytes of buffers
}
