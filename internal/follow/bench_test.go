// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
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
				f := New(&Config{
					Reader: reader,
					Open:   func() (output.Output, error) { return test.open(filepath.Join(dir, fmt.Sprint(n))) },
				})
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

// BenchmarkSieve measures an event of ten fields and 450 bytes on its way from a journal whose
// pages are in memory into nothing, in chunks of 100: without routes, with one that has no steps,
// with the steps drop, rename and set, and with one that leads one tag of a hundred to the output;
// and what all tags and one of a hundred cost a file.
func BenchmarkSieve(b *testing.B) {
	chain := []step.Step{
		{Drop: `k == 1`},
		{Rename: step.Names{{From: "msg", To: "message"}}},
		{Set: step.Values{{Field: "env", Value: "production"}}},
	}
	for _, test := range []struct {
		name   string
		routes []step.Route
		file   bool
	}{
		{name: "all"},
		{name: "one route", routes: []step.Route{{Match: "**", To: []string{"o"}}}},
		{name: "one route of a pattern", routes: []step.Route{{Match: "tag*", To: []string{"o"}}}},
		{name: "steps", routes: []step.Route{{Match: "**", To: []string{"o"}, Do: chain}}},
		{name: "one of a hundred", routes: []step.Route{{Match: "tag7", To: []string{"o"}}}},
		{name: "file all", file: true},
		{name: "file one of a hundred", file: true, routes: []step.Route{{Match: "tag7", To: []string{"o"}}}},
	} {
		b.Run(test.name, func(b *testing.B) {
			const chunks, events = 2000, 100
			j := filled(b, b.TempDir(), chunks, func(i int) *forward.Chunk {
				c := &forward.Chunk{Tag: fmt.Sprint("tag", i%100), Events: events}
				for k := range events {
					c.Entries = appendFields(c.Entries, k%10)
				}
				return c
			})
			defer j.Close()
			routes, err := step.Read(test.routes, []string{"o"}, 8<<20, nil)
			must(b, err)
			drain, ended := context.WithCancel(b.Context())
			ended()
			n := 0
			var passed Counts
			for b.Loop() {
				n++
				reader, err := j.Reader(fmt.Sprint("out", n))
				must(b, err)
				f := New(&Config{
					Reader: reader, Sift: routes.For("o"), Open: func() (output.Output, error) {
						if test.file {
							return output.NewFile(&output.FileConfig{Path: filepath.Join(b.TempDir(), "out")})
						}
						return output.Discard, nil
					},
					Passed: func(_ journal.Position, n Counts) { passed.add(&n) },
				})
				must(b, f.Run(b.Context(), drain))
			}
			if passed.Out+passed.Filtered != int64(n*chunks*events) {
				b.Fatalf("%+v", passed)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*chunks*events), "ns/event")
		})
	}
}

// appendFields appends an event of ten fields.
func appendFields(b []byte, k int) []byte {
	b = append(b, 0x92)
	b = msgpack.AppendInt(b, 1_700_000_000)
	b = msgpack.AppendMapHeader(b, 10)
	for i, name := range []string{"k", "level", "msg", "host", "path", "trace", "agent", "status", "bytes", "user"} {
		b = msgpack.AppendString(b, name)
		switch name {
		case "k":
			b = msgpack.AppendInt(b, int64(k))
		case "status", "bytes":
			b = msgpack.AppendInt(b, 123456)
		default:
			b = msgpack.AppendString(b, strings.Repeat("some text ", 4+i%4))
		}
	}
	return b
}
