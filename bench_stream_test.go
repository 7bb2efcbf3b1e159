// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"
)

// BenchmarkStream is a call to standard output, which is a pipe: one that is read, by calls that
// wait for their line and by calls that do not, and one that nobody reads.
func BenchmarkStream(b *testing.B) {
	for _, bb := range []struct {
		name, url string
		stalled   bool
	}{
		{"prompt", "stdout:", false},
		{"async", "stdout:?async=true", false},
		{"stalled", "stdout:", true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r, w, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			defer r.Close()
			saved := os.Stdout
			os.Stdout = w
			o := &Options{Shm: noShm, Overflow: OverflowBlock, MaxWait: time.Minute}
			if bb.stalled { // what the ring does not take is refused
				o.Overflow = OverflowDropNewest
			}
			l, err := Open(bb.url, o)
			os.Stdout = saved
			if err != nil {
				b.Fatal(err)
			}
			if !bb.stalled {
				go func() { _, _ = io.Copy(io.Discard, r) }()
			}
			b.ReportAllocs()
			for b.Loop() {
				l.Info("order placed", slog.Int("id", 42))
			}
			b.StopTimer()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = l.Close(ctx) // of the stalled pipe it leaves something
		})
	}
}
