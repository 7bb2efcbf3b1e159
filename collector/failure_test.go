// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestFailing: a failure is told at once, then once a minute however often it is tried, and begins
// anew after it was over.
func TestFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s failing
		if s.current() != nil || s.over() != nil {
			t.Error("fails before it was tried")
		}
		start := time.Now()
		var told []time.Duration
		for range 1000 { // 200 s
			f, tell := s.fail(errors.New("full"), retryPause)
			if tell {
				told = append(told, time.Since(start))
			}
			if !f.Since.Equal(start) || f.Pause != retryPause || f.Err.Error() != "full" {
				t.Fatalf("%+v", f)
			}
			<-time.After(retryPause)
		}
		if want := []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}; len(told) != len(want) ||
			told[1] != want[1] || told[3] != want[3] {
			t.Errorf("told after %v, want %v", told, want)
		}
		if f := s.current(); f == nil || f.Tries != 1000 {
			t.Errorf("current %+v", f)
		}
		if f := s.over(); f == nil || f.Tries != 1000 || s.current() != nil || s.over() != nil {
			t.Errorf("over %+v", f)
		}
		s.works() // which says nothing of what did not fail
		if s.settled() != nil {
			t.Error("what did not fail has settled")
		}
		if f, tell := s.fail(errors.New("again"), 0); !tell || f.Tries != 1 || !f.Since.Equal(time.Now()) {
			t.Errorf("after it was over: %+v, told %v", f, tell)
		}
		again := time.Now()
		for range 20 { // it works now and then
			s.works()
			<-time.After(settleAfter / 2)
			if s.settled() != nil {
				t.Fatal("it is over after half the time")
			}
			if _, tell := s.fail(errors.New("again"), 0); tell {
				t.Fatalf("told again after %v", time.Since(again))
			}
		}
		s.works()
		<-time.After(settleAfter)
		if f := s.settled(); f == nil || !f.Since.Equal(again) || f.Tries != 21 || s.current() != nil {
			t.Errorf("settled: %+v, want what began at %v", f, again)
		}
	})
}
