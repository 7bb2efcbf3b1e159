// SPDX-License-Identifier: Apache-2.0

package spillwaylogr

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
)

// BenchmarkCall is a call with five pairs: with this sink, into a ring, and with package funcr's
// JSON in a file.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name string
		sink func(b *testing.B) logr.Logger
	}{
		{"funcr to a file", func(b *testing.B) logr.Logger {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = f.Close() })
			return funcr.NewJSON(func(obj string) { _, _ = f.WriteString(obj + "\n") },
				funcr.Options{LogTimestamp: true})
		}},
		{"spillway", func(b *testing.B) logr.Logger {
			log := alike.Open(b, "discard:", &spillway.Options{Overflow: spillway.OverflowBlock})
			return logr.New(NewSink(log))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := c.sink(b)
			b.ReportAllocs()
			for b.Loop() {
				l.Info("order placed", "method", "GET", "path", "/orders/42", "status", 200, "user", "ada", "ok", true)
			}
		})
	}
}
