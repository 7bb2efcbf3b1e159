// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestLoggerKillCollected kills processes that write a file each, while another of their name keeps
// one file of all that have ended and deletes the rest. Nothing that their successor may look for
// is touched, so each line is there once; when it is done all goes but one.
func TestLoggerKillCollected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, query, rule string }{
		{"one file each", "", "?max_size=64KiB&keep=1"},
		{"rotated", "?max_size=256KiB", "?max_size=64KiB&max_total=1"},
		{"compressed", "?max_size=256KiB", "?max_size=64KiB&keep=1&compress=gzip"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for range needs.Rounds(t, "SPILLWAY_KILLS", 1, 4) {
				killCollected(t, tt.query, tt.rule)
			}
		})
	}
}

func killCollected(t *testing.T, query, rule string) {
	r := rig.Random(t)
	h := rig.NewHome(t)
	out := t.TempDir()
	pattern := "file://" + filepath.Join(out, "out.{pid}.jsonl")
	o := rig.Order{
		Destination: pattern + rule, Goroutines: 1, Prefix: rig.Mixed + "collector",
		Options: rig.ChildOptions{Shm: h.Shm, RingSize: 1 << 20, Dir: h.Dir},
	}
	collector := rig.StartChild(t, o)
	o.Destination = pattern + query
	var children []*rig.ChildProcess
	for i := range 4 {
		o.Prefix = fmt.Sprint(rig.Mixed, "c", i)
		o.Pad = r.IntN(400)
		children = append(children, rig.StartChild(t, o))
	}
	for _, c := range append([]*rig.ChildProcess{collector}, children...) {
		rig.Eventually(t, "the child has written", func() bool {
			return c.Over() || len(filesOf(t, out, []*rig.ChildProcess{c})) > 0 && c.Accepted()[0] > 10_000
		})
	}
	for _, c := range children {
		<-time.After(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
		c.Kill()
	}

	left := filesOf(t, out, children)
	for i := range 3 { // a look that begins after this one is made
		old, long := filepath.Join(out, fmt.Sprintf("out.%d.jsonl", 2_000_000_000+i)), time.Now().Add(-2*time.Hour)
		rig.Must(t, os.WriteFile(old, []byte("old\n"), 0o600))
		rig.Must(t, os.Chtimes(old, long, long))
		rig.Eventually(t, "the file of a process that is long over is deleted", func() bool {
			_, err := os.Lstat(old)
			return errors.Is(err, fs.ErrNotExist) || collector.Over()
		})
	}
	if got := filesOf(t, out, children); !slices.Equal(got, left) {
		t.Errorf("the killed processes left %q, and later there is %q", left, got)
	}
	collector.Kill()

	stats := rig.Closing(t, h.Open(pattern, spillway.Options{Dir: h.Dir}))
	rig.WantLaw(t, stats)
	into := rig.NewLedger()
	for _, path := range filesOf(t, out, nil) {
		if strings.HasSuffix(path, ".jsonl") {
			into.File(t, path)
		}
	}
	into.Sort() // one stream may be in several files
	into.Check(t)
	events := rig.WantAll(t, into, children...)
	h.WantEmpty()

	last := h.Open(pattern+rule, spillway.Options{Dir: h.Dir})
	rig.Must(t, last.Post("app", map[string]any{"last": true}))
	rig.Closing(t, last)
	all := filesOf(t, out, nil)
	own := func(path string) bool {
		return strings.Contains(path, fmt.Sprintf("out.%d.", os.Getpid())) ||
			strings.Contains(path, fmt.Sprintf("out.%d-", os.Getpid()))
	}
	if others := slices.DeleteFunc(slices.Clone(all), own); len(others) > 1 {
		t.Errorf("in the end there is %q", all)
	}
	rig.Figure(t, "%d files of the killed, %d events, %d files in the end", len(left), events, len(all))
	if t.Failed() {
		t.Logf("at the end: %+v", stats)
		h.Tell()
	}
}

// filesOf are the files of some processes, or all.
func filesOf(t testing.TB, dir string, of []*rig.ChildProcess) (paths []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	rig.Must(t, err)
	for _, path := range all {
		its := func(c *rig.ChildProcess) bool {
			return strings.HasPrefix(filepath.Base(path), fmt.Sprintf("out.%d", c.Cmd.Process.Pid))
		}
		if of == nil || slices.ContainsFunc(of, its) {
			paths = append(paths, path)
		}
	}
	return paths
}
