// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, events := NewTest(all(Options{Sample: map[slog.Level]Sampling{
			slog.LevelInfo:  {First: 3, Thereafter: 10},
			slog.LevelDebug: {First: 1, Every: time.Minute},
			LevelTrace:      {},
			slog.LevelError: {First: 2, Every: math.MaxInt64},
		}}))
		burst := func() {
			for range 33 {
				l.Info("a")
				l.Info("b")
				l.Debug("c")
				l.Trace("d")
				l.Warn("e")
				l.Error("f")
			}
		}
		count := func(want map[string]int) {
			t.Helper()
			got := map[string]int{}
			for _, e := range events.All() {
				got[e.Message]++
			}
			for msg, n := range want {
				if got[msg] != n {
					t.Errorf("%s: %d, want %d", msg, got[msg], n)
				}
			}
		}
		burst()
		count(map[string]int{"a": 6, "b": 6, "c": 1, "d": 0, "e": 33, "f": 2})
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		burst()
		count(map[string]int{"a": 12, "b": 12, "c": 1, "d": 0, "e": 66, "f": 2})
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		burst()
		count(map[string]int{"a": 18, "b": 18, "c": 2, "d": 0, "e": 99, "f": 2})
		s := l.Stats()
		if s.Sampled != 6*3*33-s.Accepted {
			t.Errorf("%+v", s)
		}
		// The handler samples, too.
		slog.New(l.Handler()).Debug("c")
		count(map[string]int{"c": 2})
	})
}
