// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// wantAllocs runs f and compares what a call allocates.
func wantAllocs(t *testing.T, name string, want float64, f func()) {
	t.Helper()
	f()
	if got := testing.AllocsPerRun(500, f); got > want {
		t.Errorf("%s: %v allocations, want %v", name, got, want)
	}
}

// TestAllocations counts what calls allocate: nothing, with a logger that carries what loggers
// carry.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		needs.Skip(t, "the race detector lets sync.Pool forget at random")
	}
	for name, o := range map[string]*Options{
		"plain":  {},
		"fields": {Service: "s", PID: true, Keep: slog.LevelError},
		"context": {ContextAttrs: func(_ context.Context, attrs []slog.Attr) []slog.Attr {
			return append(attrs, slog.Int("trace", 1))
		}},
		"sampled": {Sample: map[slog.Level]Sampling{slog.LevelInfo: {First: 1}}},
	} {
		o.Shm, o.RingSize = noShm, 1<<20
		l := opened(t, "discard:", o)
		ctx := context.Background()
		g := l.With(slog.Int("a", 1)).WithGroup("g").With(slog.Int("b", 1)).WithGroup("h")
		s := slog.New(l.Handler())
		now := time.Now()
		err := io.ErrUnexpectedEOF
		wantAllocs(t, name+": message", 0, func() { l.Info("m") })
		wantAllocs(t, name+": ten fields", 0, func() { ten(l, now) })
		wantAllocs(t, name+": Log", 0, func() { l.Log(ctx, slog.LevelInfo+1, "m", slog.Any("err", err)) })
		wantAllocs(t, name+": below the level", 0, func() { l.Debug("m", slog.Int("n", 1)) })
		wantAllocs(t, name+": groups", 0, func() { g.Info("m", slog.Int("n", 1)) })
		wantAllocs(t, name+": slog", 0, func() {
			s.LogAttrs(ctx, slog.LevelInfo, "m", slog.Int("n", 1),
				slog.String("s", "x"))
		})
		v := &order26
		wantAllocs(t, name+": struct", 0, func() { _ = l.Post("t", v) })
		m := map26
		wantAllocs(t, name+": map", 0, func() { _ = l.Post("t", m) })
		raw := []byte{0x80}
		wantAllocs(t, name+": raw", 0, func() { _ = l.PostRaw("t", now, raw) })
		event := &Event{Time: now, Message: "m", Attrs: []slog.Attr{slog.Int("n", 1)}, Fields: raw}
		wantAllocs(t, name+": event", 0, func() { _ = l.LogEvent(ctx, event) })
		w := l.Writer()
		line := []byte("a line of text\n")
		wantAllocs(t, name+": line", 0, func() { _, _ = w.Write(line) })
	}
	d := Discard()
	wantAllocs(t, "Discard", 0, func() { d.Error("m", slog.Int("n", 1)) })
	l := opened(t, "discard:", &Options{Shm: noShm, Source: ShortSource})
	wantAllocs(t, "source", 0, func() { l.Info("m") })
	place := &Event{File: "/x/y.go", Line: 7}
	wantAllocs(t, "place", 0, func() { _ = l.LogEvent(nil, place) }) //nolint:staticcheck // nil is survived
}
