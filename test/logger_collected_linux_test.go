// SPDX-License-Identifier: Apache-2.0

package test

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
			for range needs.Rounds(t, "SPILLWAY_KILLS", 1, 10) {
				killCollected(t, tt.query, tt.rule)
			}
		})
	}
}

func killCollected(t *testing.T, query, rule string) {
	r := random(t)
	h := newHome(t)
	out := t.TempDir()
	pattern := "file://" + filepath.Join(out, "out.{pid}.jsonl")
	o := order{
		Destination: pattern + rule, Goroutines: 1, Prefix: mixed + "collector",
		Options: childOptions{Shm: h.shm, RingSize: 1 << 20, Dir: h.dir},
	}
	collector := startChild(t, o)
	o.Destination = pattern + query
	var children []*childProcess
	for i := range 4 {
		o.Prefix = fmt.Sprint(mixed, "c", i)
		o.Pad = r.IntN(400)
		children = append(children, startChild(t, o))
	}
	for _, c := range append([]*childProcess{collector}, children...) {
		eventually(t, "the child has written", func() bool {
			return c.over() || len(filesOf(t, out, []*childProcess{c})) > 0 && c.accepted()[0] > 10_000
		})
	}
	for _, c := range children {
		<-time.After(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
		c.kill()
	}

	left := filesOf(t, out, children)
	for i := range 3 { // a look that begins after this one is made
		old, long := filepath.Join(out, fmt.Sprintf("out.%d.jsonl", 2_000_000_000+i)), time.Now().Add(-2*time.Hour)
		must(t, os.WriteFile(old, []byte("old\n"), 0o600))
		must(t, os.Chtimes(old, long, long))
		eventually(t, "the file of a process that is long over is deleted", func() bool {
			_, err := os.Lstat(old)
			return errors.Is(err, fs.ErrNotExist) || collector.over()
		})
	}
	if got := filesOf(t, out, children); !slices.Equal(got, left) {
		t.Errorf("the killed processes left %q, and later there is %q", left, got)
	}
	collector.kill()

	stats := closing(t, h.open(pattern, spillway.Options{Dir: h.dir}))
	wantLaw(t, stats)
	into := newLedger()
	for _, path := range filesOf(t, out, nil) {
		if strings.HasSuffix(path, ".jsonl") {
			into.file(t, path)
		}
	}
	into.sort() // one stream may be in several files
	into.check(t)
	events := wantAll(t, into, children...)
	h.wantEmpty()

	last := h.open(pattern+rule, spillway.Options{Dir: h.dir})
	must(t, last.Post("app", map[string]any{"last": true}))
	closing(t, last)
	all := filesOf(t, out, nil)
	own := func(path string) bool {
		return strings.Contains(path, fmt.Sprintf("out.%d.", os.Getpid())) ||
			strings.Contains(path, fmt.Sprintf("out.%d-", os.Getpid()))
	}
	if others := slices.DeleteFunc(slices.Clone(all), own); len(others) > 1 {
		t.Errorf("in the end there is %q", all)
	}
	figure(t, "%d files of the killed, %d events, %d files in the end", len(left), events, len(all))
	if t.Failed() {
		t.Logf("at the end: %+v", stats)
		h.tell()
	}
}

// filesOf are the files of some processes, or all.
func filesOf(t testing.TB, dir string, of []*childProcess) (paths []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	for _, path := range all {
		its := func(c *childProcess) bool {
			return strings.HasPrefix(filepath.Base(path), fmt.Sprintf("out.%d", c.cmd.Process.Pid))
		}
		if of == nil || slices.ContainsFunc(of, its) {
			paths = append(paths, path)
		}
	}
	return paths
}
