// SPDX-License-Identifier: Apache-2.0

package spillwayzap

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
)

// BenchmarkCall is a call with ten fields: with this core, into a ring, and with zap's own.
func BenchmarkCall(b *testing.B) {
	config := zap.NewProductionEncoderConfig()
	for _, c := range []struct {
		name string
		core func(b *testing.B) zapcore.Core
	}{
		{"zap to nothing", func(*testing.B) zapcore.Core {
			return zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(io.Discard), zap.InfoLevel)
		}},
		{"zap to a file", func(b *testing.B) zapcore.Core {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = f.Close() })
			return zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.Lock(f), zap.InfoLevel)
		}},
		{"spillway", func(b *testing.B) zapcore.Core {
			log := alike.Open(b, "discard:", &spillway.Options{Overflow: spillway.OverflowBlock})
			return NewCore(log)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := zap.New(c.core(b))
			b.ReportAllocs()
			for b.Loop() {
				l.Info("order placed", zap.String("method", "GET"), zap.String("path", "/orders/42"),
					zap.Int("status", 200),
					zap.Int64("bytes", 1<<20), zap.Duration("took", 12*time.Millisecond), zap.String("user", "ada"),
					zap.Bool("ok", true),
					zap.Float64("ratio", 0.25), zap.Error(io.ErrUnexpectedEOF), zap.String("task_id", "5a1f0e3c"))
			}
		})
	}
}
