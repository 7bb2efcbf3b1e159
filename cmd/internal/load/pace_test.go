// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/internal/await"
)

func TestPaceAgrees(t *testing.T) {
	start := time.Unix(1441588984, 0)
	for _, perSecond := range []float64{.1, 1, 3, 999, 1000, 1001, 7777.7, 400_000, 2_600_000, 1e9} {
		p := pace{start: start, perTick: perSecond * tick.Seconds()}
		for _, n := range []int64{0, 1, 2, 3, 6, 7, 100, 12345, 1 << 30} {
			if float64(n)/perSecond > 1e9 {
				continue
			}
			at := p.at(n, time.Time{})
			if p.due(at) <= n {
				t.Errorf("%v/s: message %d is due at %v, but not then", perSecond, n, at.Sub(start))
			}
			if before := at.Add(-tick); before.After(start) && p.due(before) > n {
				t.Errorf("%v/s: message %d is due at %v, but was before", perSecond, n, at.Sub(start))
			}
		}
		if n := p.due(start.Add(100 * time.Second)); math.Abs(float64(n)-100*perSecond) > 1 {
			t.Errorf("%v/s: %d due after 100 s", perSecond, n)
		}
		if p.due(start) != 0 || p.due(start.Add(-time.Hour)) != 0 {
			t.Errorf("%v/s: something is due before it began", perSecond)
		}
	}
}

// TestPaceKeepsItsRate follows the schedule as a connection does: it must wake once a tick at most,
// and send everything.
func TestPaceKeepsItsRate(t *testing.T) {
	for _, perSecond := range []float64{10, 1000, 123_456} {
		synctest.Test(t, func(t *testing.T) {
			p := pace{start: time.Now(), perTick: perSecond * tick.Seconds()}
			var sent int64
			wakes := 0
			end := p.start.Add(10 * time.Second)
			for now := time.Now(); now.Before(end); now = time.Now() {
				sent = max(sent, p.due(now))
				at := p.at(sent, now)
				if !at.After(now) {
					t.Fatalf("message %d is due at %v, and it is %v", sent, at, now)
				}
				if err := await.Pause(t.Context(), time.Until(at)); err != nil {
					t.Fatal(err)
				}
				wakes++
			}
			if want := int64(perSecond * 10); sent < want-int64(perSecond*tick.Seconds())-1 || sent > want {
				t.Errorf("%v/s: %d sent in 10 s", perSecond, sent)
			}
			if most := int(min(10*perSecond, 10_000)) + 1; wakes > most {
				t.Errorf("%v/s: woke %d times", perSecond, wakes)
			}
		})
	}
}
