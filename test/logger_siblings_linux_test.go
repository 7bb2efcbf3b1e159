// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
)

// TestLoggerKillSiblings runs several processes of one name side by side, each with a file of its
// own, and kills all of them. One heir takes over what they left and is killed as well. An event of
// one of them may stand in its file or in that of an heir, and stands there once.
func TestLoggerKillSiblings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, query string
		spill       bool
	}{
		{"ring", "", false},
		{"spill", "", true},
		{"rotated", "?max_size=1MiB", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := random(t)
			h := newHome(t)
			out := t.TempDir()
			o := order{
				Destination: "file://" + filepath.Join(out, "out.{pid}.jsonl") + tt.query, Goroutines: 2,
				Options: childOptions{Shm: h.shm, RingSize: 1 << 20},
			}
			if tt.spill {
				o.Options.Dir = h.dir
			}
			var children []*childProcess
			rounds := max(2, kills(t)/2)
			for round := range rounds {
				side := 1 // an heir of all
				if round%3 != 2 {
					side = 2 + r.IntN(3)
				}
				var group []*childProcess
				for i := range side {
					o.Prefix = fmt.Sprint(mixed, "r", round, "c", i)
					o.Pad = r.IntN(400)
					o.Page = filepath.Join(t.TempDir(), "page")
					group = append(group, startChild(t, o))
				}
				if r.IntN(5) > 0 { // otherwise they may be killed while they start and adopt
					for _, c := range group {
						eventually(t, "the child logs", func() bool { return c.over() || c.accepted()[0] > 0 })
					}
				}
				r.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
				for _, c := range group {
					<-time.After(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
					c.kill()
				}
				children = append(children, group...)
			}
			last := h.open(o.Destination, spillway.Options{Dir: o.Options.Dir})
			stats := closing(t, last)
			wantLaw(t, stats)
			into := newLedger()
			paths, err := filepath.Glob(filepath.Join(out, "out.*.jsonl"))
			must(t, err)
			lines := 0
			for _, path := range paths {
				lines += into.file(t, path)
			}
			for _, numbers := range into.streams { // of one stream in several files
				slices.Sort(numbers)
			}
			into.check(t)
			wantAll(t, into, children...)
			h.wantEmpty()
			figure(t, "%d kills, %d files, %d lines", len(children), len(paths), lines)
			if t.Failed() {
				t.Logf("at the end: %+v", stats)
				h.tell()
			}
		})
	}
}

// file notes all lines of a file, each stream in its order, and returns how many there are.
func (l *ledger) file(t testing.TB, path string) (lines int) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	for b := range bytes.Lines(text) {
		line, err := parseLine(b)
		if err != nil {
			t.Errorf("%s: line %d: %q: %v", path, lines, tail(string(b), 300), err)
			return lines
		}
		l.line(line)
		lines++
	}
	return lines
}
