// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
)

// TestSharedFile: a killed process is followed by one whose parameter shared is another one. Its
// chunks come again, and no line is lost.
func TestSharedFile(t *testing.T) {
	ways := []files.Sharing{files.Unshared, files.SharedAppend, files.SharedLock}
	for _, before := range ways {
		for _, after := range ways {
			needs.Have(t, files.CanLock || max(before, after) < files.SharedLock, "locks of files")
			path := filepath.Join(t.TempDir(), "x.jsonl")
			write := func(how files.Sharing, state []byte, events ...int) (states [][]byte) {
				o, err := NewFile(&FileConfig{Path: path, Shared: how})
				must(t, err)
				save := func(state []byte) error {
					states = append(states, bytes.Clone(state))
					return nil
				}
				if how == files.Unshared {
					must(t, o.(Resumer).Resume(save, state))
				} else {
					must(t, o.(ByOrigin).ResumeFrom(Origin{States: [][]byte{state}, Save: save}))
				}
				for _, i := range events {
					done := make(chan Result, 1)
					o.Submit(chunkOf("app", i, 1), func(r Result) { done <- r })
					r := <-done
					must(t, r.Err)
					states = append(states, r.State)
				}
				must(t, o.Close(context.Background()))
				return states
			}
			states := write(before, nil, 0, 1)
			write(after, states[len(states)-2], 1, 2)
			b, err := os.ReadFile(path)
			must(t, err)
			for i := range 3 {
				n := strings.Count(string(b), fmt.Sprintf(`"n":%d,`, i))
				if n < 1 || n > 1 && before == after {
					t.Errorf("%v, then %v: event %d is there %d times:\n%s", before, after, i, n, b)
				}
			}
		}
	}
}

// TestSharedUntimed: a process is killed before it writes an event, and another writes one that is
// equal. Its successor does not take that one for its own where neither has a time.
func TestSharedUntimed(t *testing.T) {
	for time := range uint32(2) {
		want := 2
		if time > 0 && exactClock {
			want = 1
		}
		path := filepath.Join(t.TempDir(), "x.jsonl")
		write := func(state []byte) (recorded []byte) {
			o, err := NewFile(&FileConfig{Path: path, Shared: files.SharedAppend, OmitZero: true})
			must(t, err)
			save := func(state []byte) error {
				recorded = bytes.Clone(state)
				return nil
			}
			must(t, o.(ByOrigin).ResumeFrom(Origin{States: [][]byte{state}, Save: save}))
			entry := forward.AppendEventTime(msgpack.AppendArrayHeader(nil, 2), 0, time)
			c := &forward.Chunk{Tag: "app", Events: 1, Entries: msgpack.AppendMapHeader(entry, 0)}
			done := make(chan Result, 1)
			o.Submit(c, func(r Result) { done <- r })
			r := <-done
			must(t, r.Err)
			must(t, o.Close(context.Background()))
			return recorded
		}
		state := write(nil)
		must(t, os.Truncate(path, 0)) // as if it had been killed before it wrote
		write(nil)
		write(state)
		b, err := os.ReadFile(path)
		must(t, err)
		if n := bytes.Count(b, []byte{'\n'}); n != want {
			t.Errorf("with a time of %d ns: %d lines, want %d:\n%s", time, n, want, b)
		}
	}
}

// TestSharedLong: a long event, which a shared file does not take, costs none of the lines before
// it.
func TestSharedLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	o, err := NewFile(&FileConfig{Path: path, Shared: files.SharedAppend})
	must(t, err)
	q := o.(personalOutput)
	c, l := longOf(t, 100_000)
	long := q.newJobLocked(ticket{chunk: c, long: l}, nil)
	_, err = q.files.write([]*job{q.newJobLocked(ticket{chunk: chunkOf("app", 0, 3)}, nil), long}, true)
	must(t, err)
	must(t, o.Close(context.Background()))
	must(t, q.files.close())
	if len(long.rejected) != 1 {
		t.Errorf("rejected: %v", long.rejected)
	}
	b, err := os.ReadFile(path)
	must(t, err)
	if n := bytes.Count(b, []byte{'\n'}); n != 3 {
		t.Errorf("%d lines, want 3: %q", n, b)
	}
}

// TestGroupOfOrigin: what is written together is of one origin.
func TestGroupOfOrigin(t *testing.T) {
	q := newQueue("x", &slowSink{}, &Trip{}, 0, 0)
	for _, origin := range []int{0, 0, 1, 1, 1} {
		q.jobs = append(q.jobs, q.newJobLocked(ticket{chunk: chunkOf("app", 0, 1), origin: origin}, nil))
	}
	for _, want := range []int{2, 3} {
		group, ready := q.fill(nil)
		if !ready || len(group) != want {
			t.Errorf("%d jobs, want %d", len(group), want)
		}
		q.jobs = q.jobs[len(group):]
	}
}

// BenchmarkShared is a chunk of 1,000 lines to a file, as one process writes it that shares the
// file or does not.
func BenchmarkShared(b *testing.B) {
	for name, how := range map[string]files.Sharing{
		"own": files.Unshared, "append": files.SharedAppend,
		"lock": files.SharedLock,
	} {
		b.Run(name, func(b *testing.B) {
			needs.Have(b, how != files.SharedLock || files.CanLock, "locks of files")
			path := filepath.Join(b.TempDir(), "x")
			o, err := NewFile(&FileConfig{Path: path, Shared: how})
			must(b, err)
			c := chunkOf("app", 0, 1000)
			done := make(chan Result, 1)
			b.ReportAllocs()
			for b.Loop() {
				o.Submit(c, func(r Result) { done <- r })
				<-done
				must(b, os.Truncate(path, 0))
			}
			must(b, o.Close(context.Background()))
		})
	}
}
