// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/msgpack"
)

// longOf is a chunk of one event whose text has n control characters, and the event.
func longOf(t *testing.T, n int) (*forward.Chunk, *forward.Long) {
	t.Helper()
	b := forward.AppendEventTime([]byte{0x92}, 1, 2)
	b = msgpack.AppendString(append(b, 0x81), "pad")
	b = msgpack.AppendString(b, strings.Repeat("\x01", n))
	var z forward.Inflater
	p := forward.Pieces{MaxCopied: 1 << 10}
	p.Begin(&z, &forward.Chunk{Tag: "app", Entries: b, Events: 1}, 1<<10)
	if _, _, _, err := p.Next(nil); err != nil || p.Found == nil {
		t.Fatal(err)
	}
	return &forward.Chunk{Tag: "app", Events: 1}, p.Found
}

func longLine(n int) string {
	return `{"time":"1970-01-01T00:00:01.000000002Z","tag":"app","pad":"` + strings.Repeat(`\u0001`, n) + "\"}\n"
}

// flaky takes a part of what is written, now and then.
type flaky struct {
	bytes.Buffer
	r *rand.Rand
}

func (f *flaky) Write(b []byte) (int, error) {
	if f.r.IntN(2) == 0 {
		return f.Buffer.Write(b)
	}
	n, _ := f.Buffer.Write(b[:f.r.IntN(len(b))])
	return n, errors.New("flaky")
}

// TestLong: a long event comes out as one line between the others, through errors in the midst of
// it.
func TestLong(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const n = 400_000
	want := lineOf("app", 0, 3) + longLine(n) + lineOf("app", 1, 3)
	deliver := func(o Output, got func() []byte) {
		t.Helper()
		results := make(chan Result, 3)
		done := func(r Result) { results <- r }
		for i := range 2 {
			c := &forward.Chunk{Tag: "app", Entries: appendEntry(nil, i, 3), Events: 1}
			o.Submit(c, done)
			if i == 0 {
				c, l := longOf(t, n)
				o.(Longer).SubmitLong(nil, c, l, done)
			}
		}
		total := int64(0)
		for range 3 {
			r := <-results
			if r.Err != nil || len(r.Rejected) > 0 {
				t.Errorf("%+v", r)
			}
			total += r.Bytes
		}
		must(t, o.Close(context.Background()))
		if b := string(got()); b != want || total != int64(len(want)) {
			t.Errorf("%d bytes and %d, want %d", len(b), total, len(want))
		}
	}
	w := &flaky{r: rand.New(rand.NewPCG(seed, 0))}
	deliver(NewStream(w, &StreamConfig{MinBackoff: time.Nanosecond, MaxBackoff: time.Microsecond}), w.Bytes)
	path := filepath.Join(t.TempDir(), "x")
	o, err := NewFile(&FileConfig{Path: path, Sync: true})
	must(t, err)
	deliver(o, func() []byte {
		b, err := os.ReadFile(path)
		must(t, err)
		return b
	})
	// What is given up in the midst of a line stays a line.
	w.Reset()
	s := &streamSink{writer: w, renderer: &lines.Encoder{}}
	s.sinkQueue = newQueue("x", s, &Trip{}, 0, 0)
	j := &job{}
	j.chunk, j.long = longOf(t, n)
	for s.writeLong(j) == nil {
		j.restart()
		w.Reset()
	}
	s.drop()
	for err := s.writeOut(); err != nil; {
		err = s.writeOut()
	}
	if b := w.String(); !strings.HasSuffix(b, "\n") || strings.Count(b, "\n") != 1 {
		t.Errorf("%d bytes, %d lines", len(b), strings.Count(b, "\n"))
	}
}
