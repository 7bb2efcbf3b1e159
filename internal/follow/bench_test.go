// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// BenchmarkFollow measures one chunk, from a journal whose pages are in memory into outputs: all of
// it, commits, syncs of files and one opening in so many chunks included.
func BenchmarkFollow(b *testing.B) {
	discard := func(string) (output.Output, error) { return output.Discard, nil }
	file := func(dir string) (output.Output, error) {
		return output.NewFile(&output.FileConfig{Path: filepath.Join(dir, "{tag}.jsonl"), Sync: true})
	}
	for _, test := range []struct {
		name           string
		open           func(dir string) (output.Output, error)
		chunks, events int
		zip            bool
	}{
		{"discard/1 event", discard, 100_000, 1, false},
		{"discard/1000 events", discard, 1000, 1000, false},
		{"discard/1000 events, gzip", discard, 1000, 1000, true},
		{"file/1 event", file, 100_000, 1, false},
		{"file/1000 events", file, 1000, 1000, false},
		{"file/1000 events, gzip", file, 1000, 1000, true},
	} {
		b.Run(test.name, func(b *testing.B) {
			dir := b.TempDir()
			j := filled(b, dir, test.chunks, func(i int) *forward.Chunk {
				c := numbered("app", i*test.events, test.events)
				if test.zip {
					c = zipped(c)
				}
				return c
			})
			defer j.Close()
			drain, ended := context.WithCancel(b.Context())
			ended()
			b.ReportAllocs()
			turn := func(n int) {
				reader, err := j.Reader(fmt.Sprint("out", n))
				must(b, err)
				f := New(&Config{Reader: reader, Open: func() (output.Output, error) { return test.open(filepath.Join(dir, fmt.Sprint(n))) }})
				must(b, f.Run(b.Context(), drain))
			}
			left, n := 0, 0
			for b.Loop() {
				if left == 0 {
					turn(n)
					left, n = test.chunks, n+1
				}
				left--
			}
		})
	}
}

// filled is a journal with chunks that no cursor has passed.
func filled(t testing.TB, dir string, n int, chunk func(i int) *forward.Chunk) *journal.Journal {
	j, err := journal.Open(filepath.Join(dir, "journal"), nil)
	must(t, err)
	hold, err := j.Reader("hold")
	must(t, err)
	must(t, hold.Close())
	for i := range n {
		appendChunk(t, j, chunk(i))
	}
	syncAll(t, j)
	return j
}

// TestAllocs: a follower that is under way allocates nothing.
func TestAllocs(t *testing.T) {
	if raceEnabled {
		needs.Skip(t, "the race detector allocates")
	}
	for name, zip := range map[string]bool{"plain": false, "gzip": true} {
		t.Run(name, func(t *testing.T) {
			const chunks = 3000
			j := filled(t, t.TempDir(), chunks, func(i int) *forward.Chunk {
				c := numbered("app", i, 3)
				if zip {
					c = zipped(c)
				}
				return c
			})
			defer j.Close()
			reader, err := j.Reader("out")
			must(t, err)
			f := New(&Config{Reader: reader, Open: opens(output.Discard)})
			must(t, f.Open(t.Context()))
			defer f.Close()
			step := func() {
				if more, err := f.flow.next(); !more || err != nil {
					t.Fatal(more, err)
				}
				f.flow.collect()
			}
			for range 100 {
				step()
			}
			if n := testing.AllocsPerRun(2000, step); n > 0 {
				t.Errorf("%v allocations for a chunk", n)
			}
		})
	}
}
