// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkSlogAbove tells what five attributes through package slog cost above a handler that does
// nothing: the median of pairs that take turns, in processor time of the calling thread, which is
// the same whatever else the machine does.
func BenchmarkSlogAbove(b *testing.B) {
	const calls = 4000 // which the ring holds, while the mover rests
	l := benched(b)
	ctx := context.Background()
	none, some := slog.New(nothing{}), slog.New(l.Handler())
	var bare, above []float64
	for b.Loop() {
		n, s := cost(none, calls), cost(some, calls)
		bare, above = append(bare, n), append(above, s-n)
		_ = l.Flush(ctx)
	}
	slices.Sort(bare)
	slices.Sort(above)
	b.ReportMetric(bare[len(bare)/2], "bare-ns/call")
	b.ReportMetric(above[len(above)/2], "above-ns/call")
	dropped(b, l)
}

// cost is the nanoseconds of a call.
func cost(s *slog.Logger, calls int) float64 {
	began := threadTime()
	for range calls {
		s.LogAttrs(context.Background(), slog.LevelInfo, "request served", slog.String("method", "GET"),
			slog.String("path", "/api/v1/orders"), slog.Int("status", 200), slog.Int64("bytes", 51234),
			slog.Bool("cached", true))
	}
	return float64(threadTime()-began) / float64(calls)
}

// threadTime is the processor time of this thread, which a goroutine leaves so seldom that a median
// does not show it.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
