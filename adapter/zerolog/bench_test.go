// SPDX-License-Identifier: Apache-2.0

package spillwayzerolog

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
)

// BenchmarkCall is a call with ten fields: with this writer, into a ring, and as zerolog writes.
func BenchmarkCall(b *testing.B) {
	ring := func(b *testing.B) io.Writer {
		log := alike.Open(b, "discard:", &spillway.Options{Overflow: spillway.OverflowBlock})
		return NewWriter(log)
	}
	for _, c := range []struct {
		name   string
		writer func(b *testing.B) io.Writer
		stamp  bool
	}{
		{"zerolog to nothing", func(*testing.B) io.Writer { return io.Discard }, true},
		{"zerolog to a file", func(b *testing.B) io.Writer {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = f.Close() })
			return f
		}, true},
		{"spillway", ring, false},
		{"spillway with Timestamp", ring, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := zerolog.New(c.writer(b))
			if c.stamp {
				l = l.With().Timestamp().Logger()
			}
			b.ReportAllocs()
			for b.Loop() {
				l.Info().Str("method", "GET").Str("path", "/orders/42").Int("status", 200).Int64("bytes", 1<<20).
					Dur("took", 12*time.Millisecond).Str("user", "ada").Bool("ok", true).Float64("ratio", 0.25).
					Err(io.ErrUnexpectedEOF).Str("task_id", "5a1f0e3c").Msg("order placed")
			}
		})
	}
}
