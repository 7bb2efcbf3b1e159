// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestLoggerKillShared has twenty processes write one file, and kills all of them at random
// moments, round by round. With shared=lock each event that was accepted is in the file once, and
// those of a goroutine are in the order of its calls; with shared=append each is there at least
// once.
func TestLoggerKillShared(t *testing.T) {
	t.Parallel()
	rounds := needs.Rounds(t, "SPILLWAY_KILLS", 1, 1)
	for _, tt := range []struct {
		name, query string
		spill, once bool
	}{
		{"lock", "?shared=lock", false, true},
		{"lock, rotated", "?shared=lock&max_size=1MiB&compress=gzip", true, true},
		{"append", "?shared=append", false, false},
		{"append, rotated", "?shared=append&max_size=1MiB", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rig.Random(t)
			h := rig.NewHome(t)
			path := filepath.Join(t.TempDir(), "out.jsonl")
			o := rig.Order{
				Destination: "file://" + path + tt.query, Goroutines: 1, Prefix: rig.Mixed,
				Options: rig.ChildOptions{Shm: h.Shm, RingSize: 1 << 20},
			}
			if tt.spill {
				o.Options.Dir = h.Dir
			}
			var children []*rig.ChildProcess
			for round := range rounds {
				children = append(children, killTwenty(t, r, o, round)...)
			}
			last := h.Open(o.Destination, spillway.Options{Dir: o.Options.Dir})
			stats := rig.Closing(t, last)
			rig.WantLaw(t, stats)
			into := rig.NewLedger()
			lines, torn := into.Shared(t, path, tt.once)
			into.Check(t)
			events := rig.WantAll(t, into, children...)
			h.WantEmpty()
			rig.Figure(t, "%d kills, %d lines, %d events, %d torn", len(children), lines, events, torn)
			if t.Failed() {
				t.Logf("at the end: %+v", stats)
				h.Tell()
			}
		})
	}
}

// killTwenty starts twenty processes and kills them, each at a moment of its own, most while all
// write.
func killTwenty(t testing.TB, r *rand.Rand, o rig.Order, round int) (children []*rig.ChildProcess) {
	t.Helper()
	kind := o.Prefix
	for i := range 20 {
		o.Prefix = kind + fmt.Sprint("r", round, "c", i)
		o.Pad = r.IntN(400)
		o.Page = filepath.Join(t.TempDir(), "page")
		children = append(children, rig.StartChild(t, o))
	}
	for _, c := range children[:r.IntN(20)] { // the others may be killed while they start and adopt
		rig.Eventually(t, "the child logs", func() bool { return c.Over() || c.Accepted()[0] > 0 })
	}
	r.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
	for _, c := range children {
		<-time.After(time.Duration(r.Int64N(int64(20 * time.Millisecond))))
		c.Kill()
	}
	return children
}

// TestLoggerSharedHeld has another process hold the lock of a shared file for as long as it likes:
// calls do not wait, Close returns by its context, and what it left is written by the next logger,
// once, though the writer that Close left behind gets the lock first or last.
func TestLoggerSharedHeld(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	path := filepath.Join(filepath.Dir(h.Dir), "out.jsonl") // the writer left behind may make a file later
	lock, err := os.Create(path + "~lock")
	rig.Must(t, err)
	defer lock.Close()
	rig.Must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	to := "file://" + path + "?shared=lock"
	l := h.Open(to, spillway.Options{})
	for i := range 100 {
		l.Info("held", slog.Int("i", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/4)
	defer cancel()
	var left *spillway.UndeliveredError
	if err := l.Close(ctx); !errors.As(err, &left) {
		t.Fatalf("Close: %v", err)
	}
	next := h.Open(to, spillway.Options{})
	rig.Must(t, unix.Flock(int(lock.Fd()), unix.LOCK_UN))
	rig.WantLaw(t, rig.Closing(t, next))
	var text []byte
	rig.Eventually(t, "all is written", func() bool { // the first one may let go of its ring later than its Close
		if text, err = os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
			rig.Must(t, err)
		}
		if bytes.Count(text, []byte("\n")) >= 100 {
			return true
		}
		rig.WantLaw(t, rig.Closing(t, h.Open(to, spillway.Options{})))
		return false
	})
	for i := range 100 {
		if n := bytes.Count(text, fmt.Appendf(nil, `"i":%d}`, i)); n != 1 {
			t.Errorf("event %d is there %d times", i, n)
		}
	}
	h.WantEmpty()
}
