// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"sync/atomic"
	"time"
)

// coarseStep is the step from which on a clock is too coarse to order what one goroutine does on
// two lanes: an append takes longer than this.
const coarseStep = 50 * time.Nanosecond

// clock gives keys: nanoseconds since the ring's birth, never going back.
//
// Where the system's clock moves in larger steps, or stands still as in a synctest bubble, every
// reading is made the larger of the clock and the reading before plus one. That is a cache line
// that all cores write, but then two readings are never equal.
type clock struct {
	base   time.Time
	coarse bool
	since  int64        // from epoch to base; if coarse, so much that no reading of others counts
	wall   atomic.Int64 // Unix nanoseconds at key 0; written by Anchor
	_      [64]byte
	looked atomic.Uint64 // what the reader read before it last looked at the lanes
	last   atomic.Uint64 // if coarse: the last reading
	_      [48]byte
}

func (c *clock) start() {
	c.base = time.Now()
	c.wall.Store(c.base.UnixNano())
	if c.coarse = isCoarse(c.base); c.coarse {
		c.since = math.MinInt64
	} else {
		c.since = int64(c.base.Sub(epoch))
	}
}

// epoch is what readings in a Hint count from. It is earlier than any ring.
var epoch = time.Now()

// maxAge is how old a reading may be that is taken in place of one of the ring's own, and by how
// much one can be ahead of the clock, if its owner has changed it.
const maxAge = uint64(256 * time.Millisecond)

// key is what an appender gives its record when it has its lane, the last key of which is last: the
// reading that it brought, if that is later than what the reader has looked at, else the clock's.
func (c *clock) key(read int64, last uint64) uint64 {
	if read != 0 {
		if k := uint64(read-c.since) + 1; k-c.looked.Load()-1 < maxAge && k > last {
			return k
		}
	}
	k := c.now()
	for ; k <= last; k = c.now() {
		if last-k > uint64(time.Microsecond) {
			return last + 1 // the last record's reading was ahead of the clock
		}
	}
	return k
}

// isCoarse says that two readings in a row can be equal, and that the clock moves by so much when
// it moves that two appends in a row can read the same. (A clock that takes long to read is not
// coarse: it has always moved meanwhile.)
func isCoarse(base time.Time) bool {
	equal := false
	last := time.Since(base)
	for i := range 2000 {
		now := time.Since(base)
		switch {
		case now == last:
			equal = true
		case now-last <= coarseStep, i > 200 && !equal:
			return false
		}
		last = now
	}
	return equal
}

// now is at least 1.
func (c *clock) now() uint64 {
	if c.coarse {
		return c.tick()
	}
	return uint64(time.Since(c.base)) + 1
}

func (c *clock) tick() uint64 {
	for {
		old := c.last.Load()
		k := max(uint64(time.Since(c.base))+1, old+1)
		if c.last.CompareAndSwap(old, k) {
			return k
		}
	}
}

// anchor makes wall follow the system's clock.
func (c *clock) anchor() {
	now := time.Now()
	wall := now.UnixNano() - int64(now.Sub(c.base)) - 1
	if wall != c.wall.Load() {
		c.wall.Store(wall)
	}
}
