// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"testing"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

// TestArrivals: the age of a record is that of the first look after which it was there.
func TestArrivals(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	a := arrivals{marks: []journal.Age{{End: 10, Time: at(-3600)}, {End: 20, Time: at(-60)}}} // found at the start
	for i, end := range []journal.Position{20, 20, 35, 35, 50} {
		a.note(at(i), end, 0)
	}
	for _, c := range []struct {
		passed journal.Position
		want   time.Duration
	}{
		{0, 3604 * time.Second},
		{9, 3604 * time.Second}, // before the end of the first segment
		{10, 64 * time.Second},
		{20, 2 * time.Second},
		{34, 2 * time.Second},
		{35, 0},
		{50, 0},
		{60, 0},
	} {
		if got := a.age(at(4), c.passed); got != c.want {
			t.Errorf("passed %d: %v, want %v", c.passed, got, c.want)
		}
	}
	if got := a.age(at(-5000), 0); got != 0 {
		t.Errorf("%v by a clock that was set back", got)
	}
	a.note(at(5), 50, 35)
	if len(a.marks) != 1 {
		t.Errorf("%d marks are kept, one is not passed", len(a.marks))
	}
}

// TestArrivalsBounded: an output that stands for days costs a bounded number of marks, and its age
// stays right.
func TestArrivalsBounded(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	var a arrivals
	const days = 10 * 24 * 3600
	for i := range days {
		a.note(start.Add(time.Duration(i)*time.Second), journal.Position(i+1), 0)
		if len(a.marks) > maxArrivals {
			t.Fatalf("%d marks", len(a.marks))
		}
	}
	now := start.Add(days * time.Second)
	for _, passed := range []journal.Position{0, 1000, days / 2, days - 10} {
		age := time.Duration(days-passed) * time.Second
		if got := a.age(now, passed); got > age || got < age-age/100-2*time.Second {
			t.Errorf("passed %d: %v, really %v", passed, got, age)
		}
	}
}
