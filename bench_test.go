// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"
)

// benched opens a logger with default fields, whose ring lies where it does in production, and
// whose destination forgets.
func benched(b *testing.B, defaults ...slog.Attr) *Logger {
	shm := noShm
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		shm = "/dev/shm"
	}
	l := opened(b, "discard:", &Options{Tag: "bench", Name: "spillway-bench", Shm: shm, Attrs: defaults})
	l.Info("warm")
	b.ReportAllocs()
	b.ResetTimer()
	return l
}

// dropped says how many of the events found no room, since the mover shares the processors with the
// loop: their calls do less.
func dropped(b *testing.B, l *Logger) {
	b.StopTimer()
	if s := l.Stats(); s.Refused > 0 {
		b.ReportMetric(float64(s.Refused)/float64(s.Refused+s.Accepted), "refused/op")
	}
}

var started = time.Now()

// ten is a message with ten fields, a record of about 320 bytes.
func ten(l *Logger, _ time.Time) {
	l.Info("request served", slog.String("method", "GET"), slog.String("path", "/api/v1/orders/12345/items"),
		slog.Int("status", 200),
		slog.Int64("bytes", 51234), slog.Duration("took", 12_345_678), slog.String("remote", "192.168.12.17:51234"),
		slog.String("agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)"),
		slog.String("id", "3f2b1c9e-7a64-4e0b-9d5a-1c2d3e4f5a6b"),
		slog.Int64("user", 9876543210), slog.Bool("cached", true))
}

func BenchmarkTen(b *testing.B) {
	l := benched(b)
	for b.Loop() {
		ten(l, started)
	}
	dropped(b, l)
}

// BenchmarkTenDefaults is Ten beside three default fields, which give way to fields of their names.
func BenchmarkTenDefaults(b *testing.B) {
	l := benched(b, slog.String("host", "web-1"), slog.String("service", "shop"), slog.Int("pid", 4242))
	for b.Loop() {
		ten(l, started)
	}
	dropped(b, l)
}

func BenchmarkOne(b *testing.B) {
	l := benched(b)
	n := 0
	for b.Loop() {
		l.Info("order placed", slog.Int("id", n))
		n++
	}
	dropped(b, l)
}

func BenchmarkDisabled(b *testing.B) {
	l := benched(b)
	for b.Loop() {
		l.Debug("order placed", slog.Int("id", 1))
	}
}

func BenchmarkWith(b *testing.B) {
	l := benched(b).With(slog.String("service", "shop"), slog.Int("pid", 1234)).WithGroup("request")
	for b.Loop() {
		l.Info("order placed", slog.Int("id", 1))
	}
	dropped(b, l)
}

func BenchmarkSource(b *testing.B) {
	l := benched(b)
	l.c.source, l.c.slow = ShortSource, true
	for b.Loop() {
		l.Info("order placed", slog.Int("id", 1))
	}
	dropped(b, l)
}

// BenchmarkParallel is BenchmarkTen from all processors.
func BenchmarkParallel(b *testing.B) {
	l := benched(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ten(l, started)
		}
	})
	dropped(b, l)
}

// BenchmarkSlog logs five attributes through package slog; "nothing" is what slog itself costs.
func BenchmarkSlog(b *testing.B) {
	for name, h := range map[string]func() slog.Handler{
		"nothing":  func() slog.Handler { return nothing{} },
		"spillway": func() slog.Handler { return benched(b).Handler() },
	} {
		b.Run(name, func(b *testing.B) {
			s := slog.New(h())
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				s.LogAttrs(ctx, slog.LevelInfo, "request served", slog.String("method", "GET"),
					slog.String("path", "/api/v1/orders"),
					slog.Int("status", 200), slog.Int64("bytes", 51234), slog.Bool("cached", true))
			}
		})
	}
}

// nothing is a handler that does nothing.
type nothing struct{}

func (nothing) Enabled(context.Context, slog.Level) bool  { return true }
func (nothing) Handle(context.Context, slog.Record) error { return nil }
func (n nothing) WithAttrs([]slog.Attr) slog.Handler      { return n }
func (n nothing) WithGroup(string) slog.Handler           { return n }

type order struct {
	A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z string
}

var order26 = order{
	"test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test",
	"test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test",
}

var map26 = newMap26()

func newMap26() map[string]any {
	return map[string]any{
		"a": "test", "b": "test", "c": "test", "d": "test", "e": "test", "f": "test", "g": "test", "h": "test",
		"i": "test",
		"j": "test", "k": "test", "l": "test", "m": "test", "n": "test", "o": "test", "p": "test", "q": "test",
		"r": "test",
		"s": "test", "t": "test", "u": "test", "v": "test", "w": "test", "x": "test", "y": "test", "z": "test",
	}
}

// BenchmarkPost posts daichirata's struct of 26 fields and map of 26 keys, and a small map;
// "literal" is what making the value costs the caller.
func BenchmarkPost(b *testing.B) {
	for _, what := range []struct {
		name string
		make func(i int) any
	}{
		{"struct", func(int) any { return order26 }},
		{"map", func(int) any { return newMap26() }},
		{"count", func(i int) any { return map[string]any{"count": i} }},
	} {
		b.Run(what.name+"/literal", func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				sink = what.make(i)
				i++
			}
		})
		b.Run(what.name+"/post", func(b *testing.B) {
			l := benched(b)
			i := 0
			for b.Loop() {
				_ = l.Post("debug.test", what.make(i))
				i++
			}
			dropped(b, l)
		})
	}
}

var sink any
