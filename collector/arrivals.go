// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

// arrivals knows how old the records of the journal are, without a time in each of them: it notes
// each second where the journal ends.
//
//	journal ──┬────────────┬───────┬──────┬───►
//	     end at 09:00:00   :01     :02    :03      a record before the end of :02 arrived at :02 or earlier
//
// Of what was in the journal at the start it knows the times of the segments' files.
type arrivals struct {
	mu    sync.Mutex
	marks []journal.Age // in order; none that all outputs have passed
}

// maxArrivals bounds the marks; thinned, they last for years.
const maxArrivals = 4096

// note says that the journal ends here now, and that all outputs have passed lowest.
func (a *arrivals) note(now time.Time, end, lowest journal.Position) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.marks = slices.Delete(a.marks, 0, a.afterLocked(lowest))
	if n := len(a.marks); end <= lowest || n > 0 && a.marks[n-1].End >= end {
		return
	}
	if len(a.marks) >= maxArrivals {
		a.thinLocked(now)
	}
	if len(a.marks) < maxArrivals { // unless clocks jump
		a.marks = append(a.marks, journal.Age{End: end, Time: now})
	}
}

// thinLocked leaves out marks that stand closer together than a 256th of their age: what is old
// need not be known to the second.
func (a *arrivals) thinLocked(now time.Time) {
	kept := a.marks[:1]
	for i := 1; i < len(a.marks)-1; i++ {
		if next := a.marks[i+1].Time; next.Sub(kept[len(kept)-1].Time) > now.Sub(next)/256 {
			kept = append(kept, a.marks[i])
		}
	}
	a.marks = append(kept, a.marks[len(a.marks)-1])
}

// afterLocked is the index of the first mark behind p.
func (a *arrivals) afterLocked(p journal.Position) int {
	return sort.Search(len(a.marks), func(i int) bool { return a.marks[i].End > p })
}

// age is how long ago the record behind p arrived, at least.
func (a *arrivals) age(now time.Time, p journal.Position) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.afterLocked(p)
	if i == len(a.marks) {
		return 0 // within this second
	}
	return max(0, now.Sub(a.marks[i].Time)) // clocks are set back
}
