// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math"
	"time"
)

// tick is what time is cut into. A finer one would wake the sender more often than that is worth.
const tick = time.Millisecond

// A pace is the schedule of one connection: how many messages are due by when. It does not heed
// what has been sent.
type pace struct {
	start   time.Time
	perTick float64 // messages; 0: everything is due at once, always
}

// due returns how many messages are due by now, those sent included.
func (p pace) due(now time.Time) int64 {
	if p.perTick == 0 {
		return math.MaxInt64
	}
	return p.dueAt(int64(now.Sub(p.start) / tick))
}

func (p pace) dueAt(ticks int64) int64 {
	if ticks <= 0 {
		return 0
	}
	return int64(p.perTick * float64(ticks))
}

// at returns the tick at which message n, counted from 0, is due. Without a rate that is now.
func (p pace) at(n int64, now time.Time) time.Time {
	if p.perTick == 0 {
		return now
	}
	ticks := int64(math.Ceil(float64(n+1) / p.perTick))
	for p.dueAt(ticks) <= n { // what was rounded
		ticks++
	}
	for ticks > 1 && p.dueAt(ticks-1) > n {
		ticks--
	}
	return p.start.Add(time.Duration(ticks) * tick)
}
