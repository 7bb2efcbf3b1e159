// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
	"time"
)

// TestPatienceIsLearnt: it shrinks while connections are cut and none goes on after a pause, and
// grows again otherwise.
func TestPatienceIsLearnt(t *testing.T) {
	var w Watch
	w.Begin(10 * time.Second)
	var clock int64
	// after counts time with a look each 10 ms, which cuts so many, and returns the patience.
	after := func(d time.Duration, cut int, resume bool) time.Duration {
		for range d / (10 * time.Millisecond) {
			clock += int64(10 * time.Millisecond)
			w.Look(10 * time.Millisecond)
			if resume {
				w.completed(w.patience.Load())
			}
			w.completed(w.patience.Load()/looks - 1) // that is no pause
			w.Learn(cut, clock)
		}
		return time.Duration(w.patience.Load())
	}
	for _, step := range []struct {
		d      time.Duration
		cut    int
		resume bool
		want   time.Duration
	}{
		{500 * time.Millisecond, 5, false, time.Second},
		{500 * time.Millisecond, 5, false, time.Second / 2},
		{500 * time.Millisecond, 1, false, time.Second / 4},
		{10 * time.Second, 1, false, time.Second / 10}, // and not less
		{200 * time.Millisecond, 1, true, time.Second / 5},
		{10 * time.Second, 1, true, time.Second},
		{10 * time.Second, 1, false, time.Second / 10},
		{time.Second / 2, 0, false, time.Second / 10},
		{3 * time.Second / 2, 0, false, time.Second / 5},
		{10 * time.Second, 0, false, time.Second},
	} {
		if got := after(step.d, step.cut, step.resume); got != step.want {
			t.Errorf("after %+v: %v", step, got)
		}
	}
	w.Look(time.Hour) // a watcher without a turn
	if got := time.Duration(w.looked.Load() - 1 - clock); got > 2*maxInterval {
		t.Errorf("counted %v more", got)
	}
	w.patience.Store(w.longest / lessons)
	before := w.with(0)
	if with := w.with(w.longest / 10); with < 2*before || with > 2*w.longest {
		t.Errorf("%v with a connection that makes pauses", time.Duration(with))
	}
}
