// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/forward"
)

// TestNoGoroutineLeftOfLogger opens, uses and closes loggers; destinations that do not answer too.
func TestNoGoroutineLeftOfLogger(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and nobody reads
	must(t, err)
	defer silent.Close()
	well := &forward.Server{Handler: forward.HandlerFunc(func(context.Context, *forward.Chunk) error { return nil })}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = well.Serve(l) }() //nolint:errcheck // it ends with the test
	defer well.Close()
	down, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, down.Close())

	file := "file://" + filepath.Join(t.TempDir(), "log.jsonl")
	for _, tt := range []struct {
		destination string
		options     spillway.Options
		left        bool // Close runs out of time
	}{
		{"discard:", spillway.Options{}, false},
		{file, spillway.Options{}, false},
		{file + "?max_size=1KiB&keep=2&compress=gzip", spillway.Options{}, false},
		{"forward://" + l.Addr().String(), spillway.Options{}, false},
		{"forward://" + l.Addr().String(), spillway.Options{
			Dir: t.TempDir(), WaitDelivered: true,
			MaxWait: time.Minute,
		}, false},
		{"forward://" + l.Addr().String() + "?ack=false", spillway.Options{Shm: "none"}, false},
		{"forward://" + silent.Addr().String(), spillway.Options{Dir: t.TempDir()}, true},
		{"forward://" + down.Addr().String(), spillway.Options{}, true},
		{
			"forward://" + down.Addr().String() + "?min_backoff=1ms",
			spillway.Options{ErrorHandler: spillway.ErrorHandlerFunc(func(error,
				*forward.Chunk,
			) error {
				return nil
			})},
			false,
		},
	} {
		t.Run(tt.destination, func(t *testing.T) {
			defer noneLeft(t, goleak.IgnoreCurrent())
			o := tt.options
			o.Name = "leak"
			if o.Shm == "" {
				o.Shm = t.TempDir()
			}
			o.Diagnostics = func(error) {}
			log, err := spillway.Open(tt.destination, &o)
			must(t, err)
			events := log.Subscribe()
			for i := range 100 {
				log.Info("hello", slog.Int("i", i))
				must(t, log.Post("a", map[string]any{"i": i}))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if tt.left {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer cancel()
			if err := log.Close(ctx); (err != nil) != tt.left || err != nil &&
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close: %v", err)
			}
			for range events { // closed when the logger is
			}
		})
	}
}

// TestNoGoroutineLeftOfOpen opens loggers that cannot be opened.
func TestNoGoroutineLeftOfOpen(t *testing.T) {
	defer noneLeft(t, goleak.IgnoreCurrent())
	for _, destination := range []string{
		"", "nonsense://", "file:///dev/null/no/such", "forward://",
		"forward://127.0.0.1:1?compress=rar",
	} {
		t.Setenv("SPILLWAY_URL", "")
		l, err := spillway.Open(destination, &spillway.Options{
			Name: "leak", Shm: t.TempDir(),
			Diagnostics: func(error) {},
		})
		if err == nil {
			t.Logf("%q opens", destination)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_ = l.Close(ctx) //nolint:errcheck // some cannot deliver
			cancel()
		}
	}
}
