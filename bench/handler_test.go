// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
)

// BenchmarkSlog logs five attributes through log/slog: with a handler that does nothing, which is
// what slog itself costs, with its JSON handler into nothing, and with Spillway's.
func BenchmarkSlog(b *testing.B) {
	nothing := func() error { return nil }
	b.Run("no-op", func(b *testing.B) { five(b, noHandler{}, nothing) })
	b.Run("json", func(b *testing.B) { five(b, slog.NewJSONHandler(noWriter{}, nil), nothing) })
	b.Run("spillway", func(b *testing.B) {
		l, err := spillway.Open("discard:", &spillway.Options{
			Name: "bench", Overflow: spillway.OverflowBlock,
			MaxWait: time.Minute,
		})
		if err != nil {
			b.Fatal(err)
		}
		five(b, l.Handler(), func() error { return l.Flush(context.Background()) })
		if err := l.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
}

// five measures the calls; what they leave to a mover is brought away in pauses that are not
// measured, as in BenchmarkCall.
func five(b *testing.B, h slog.Handler, flush func() error) {
	log := slog.New(h)
	ctx := context.Background()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n%10_000 == 9_999 {
			b.StopTimer()
			if err := flush(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		log.LogAttrs(ctx, slog.LevelInfo, "request served", slog.String("method", "GET"),
			slog.String("path", "/api/v1/orders/12345/items"),
			slog.Int("status", 200), slog.Duration("took", 12345678), slog.Int("n", n))
		n++
	}
	b.StopTimer()
}

// noHandler takes everything and does nothing. [slog.DiscardHandler] would not be asked at all.
type noHandler struct{}

func (noHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (noHandler) Handle(context.Context, slog.Record) error { return nil }
func (h noHandler) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h noHandler) WithGroup(string) slog.Handler           { return h }

type noWriter struct{}

func (noWriter) Write(p []byte) (int, error) { return len(p), nil }
