// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// chunkOf makes a chunk of events {"n": i}.
func chunkOf(tag string, from, n int) *forward.Chunk {
	c := &forward.Chunk{Tag: tag, ID: forward.NewID(), UniqueID: true, Events: n}
	for i := from; i < from+n; i++ {
		c.Entries = appendEntry(c.Entries, i, 0)
	}
	return c
}

func appendEntry(b []byte, i, pad int) []byte {
	b = msgpack.AppendArrayHeader(b, 2)
	b = forward.AppendEventTime(b, 1, uint32(i))
	b = msgpack.AppendMapHeader(b, 2)
	b = msgpack.AppendString(b, "n")
	b = msgpack.AppendInt(b, int64(i))
	b = msgpack.AppendString(b, "pad")
	return msgpack.AppendString(b, strings.Repeat("x", pad))
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d", "{tag}.jsonl")
	d, err := NewFile(&FileConfig{Path: path})
	must(t, err)
	const chunks, events = 20, 1000
	var left atomic.Int32
	left.Store(chunks)
	all := make(chan struct{})
	for i := range chunks {
		d.Submit(chunkOf("app", i*events, events), func(r Result) {
			if r.Err != nil {
				t.Errorf("%+v", r)
			}
			if left.Add(-1) == 0 {
				close(all)
			}
		})
	}
	<-all
	must(t, d.Close(context.Background()))
	b, err := os.ReadFile(strings.Replace(path, "{tag}", "app", 1))
	must(t, err)
	i := 0
	for line := range strings.Lines(string(b)) {
		if want := fmt.Sprintf(`{"time":"1970-01-01T00:00:01.%09dZ","tag":"app","n":%d,"pad":""}`+"\n", i,
			i); line != want {
			t.Fatalf("got %s want %s", line, want)
		}
		i++
	}
	if i != chunks*events {
		t.Fatalf("%d lines", i)
	}
}

func BenchmarkFile(b *testing.B) {
	for _, dir := range []string{"/dev/shm", b.TempDir()} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		b.Run(strings.Trim(strings.ReplaceAll(dir, "/", "_"), "_")[:3], func(b *testing.B) {
			d, err := NewFile(&FileConfig{Path: filepath.Join(dir, "spillway.bench.jsonl")})
			must(b, err)
			defer os.Remove(filepath.Join(dir, "spillway.bench.jsonl"))
			c := &forward.Chunk{Tag: "app", ID: forward.NewID()}
			for i := range 1000 {
				c.Entries = appendEntry(c.Entries, i, 1000)
				c.Events++
			}
			b.SetBytes(int64(len(c.Entries)))
			b.ReportAllocs()
			window := make(chan struct{}, 8)
			for b.Loop() {
				window <- struct{}{}
				d.Submit(c, func(Result) { <-window })
			}
			for range cap(window) {
				window <- struct{}{}
			}
			b.StopTimer()
			must(b, d.Close(context.Background()))
		})
	}
}

// padded makes a chunk of events with some text.
func padded(tag string, from, n, pad int) *forward.Chunk {
	c := &forward.Chunk{Tag: tag, ID: forward.NewID(), UniqueID: true, Events: n}
	for i := from; i < from+n; i++ {
		c.Entries = appendEntry(c.Entries, i, pad)
	}
	return c
}

// TestFileClosedWhileResumed closes files that are just being resumed, as a logger does whose Close
// comes before it has looked at all that dead processes left.
func TestFileClosedWhileResumed(t *testing.T) {
	for range 20 {
		o, err := NewFile(&FileConfig{Path: filepath.Join(t.TempDir(), "{pid}.jsonl")})
		must(t, err)
		resumed := make(chan error)
		go func() {
			save := func([]byte) error { return nil }
			resumed <- o.(ByOrigin).ResumeFrom(Origin{Save: save}, Origin{Save: save})
		}()
		must(t, o.Close(context.Background()))
		if err := <-resumed; err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}
