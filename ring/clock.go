// SPDX-License-Identifier: Apache-2.0

package ring

import (
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
	wall   atomic.Int64 // Unix nanoseconds at key 0; written by Anchor
	_      [64]byte
	last   atomic.Uint64 // if coarse: the last reading
	_      [56]byte
}

func (c *clock) start() {
	c.base = time.Now()
	c.wall.Store(c.base.UnixNano())
	c.coarse = isCoarse(c.base)
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
