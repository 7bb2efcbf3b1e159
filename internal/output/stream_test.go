// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/internal/lines"
)

// deliverAll submits chunks and waits for them.
func deliverAll(t *testing.T, d Output, chunks, events, pad int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range chunks {
		wg.Add(1)
		c := chunkOf("app", i*events, 0)
		for k := range events {
			c.Entries = appendEntry(c.Entries, i*events+k, pad)
			c.Events++
		}
		d.Submit(c, func(r Result) {
			if r.Err != nil || r.HandedOver || r.State != nil {
				t.Errorf("%+v", r)
			}
			wg.Done()
		})
	}
	wg.Wait()
}

// checkLines wants the lines of n events, once and in order.
func checkLines(t *testing.T, got string, n, pad int) {
	t.Helper()
	i := 0
	for line := range strings.Lines(got) {
		if want := lineOf("app", i, pad); line != want {
			t.Fatalf("line %d: got %.200q want %.200q", i, line, want)
		}
		i++
	}
	if i != n {
		t.Fatalf("%d lines, not %d", i, n)
	}
}

func lineOf(tag string, i, pad int) string {
	return fmt.Sprintf(`{"time":"1970-01-01T00:00:01.%09dZ","tag":%q,"n":%d,"pad":%q}`+"\n", i, tag, i,
		strings.Repeat("x", pad))
}

func TestStream(t *testing.T) {
	var b bytes.Buffer
	d := NewStream(&b, nil)
	deliverAll(t, d, 20, 1000, 10)
	must(t, d.Close(context.Background()))
	must(t, d.Close(context.Background()))
	checkLines(t, b.String(), 20*1000, 10)
	d.Submit(chunkOf("app", 0, 1), func(r Result) {
		if !errors.Is(r.Err, ErrClosed) {
			t.Errorf("after Close: %+v", r)
		}
	})
}

func TestStreamText(t *testing.T) {
	var b bytes.Buffer
	d := NewStream(&b, &StreamConfig{
		Format: FormatText, Text: lines.TextOptions{Flags: lines.Bare},
		Color: ColorAlways,
	})
	deliverAll(t, d, 1, 1, 1)
	must(t, d.Close(context.Background()))
	if b.String() != "\x1b[36mn=\x1b[0m0 \x1b[36mpad=\x1b[0mx\n" {
		t.Errorf("got %q", b.String())
	}
}

// fickle fails every other time, and takes only a part otherwise.
type fickle struct {
	bytes.Buffer
	calls int
}

func (f *fickle) Write(b []byte) (int, error) {
	f.calls++
	switch f.calls % 4 {
	case 0:
		return f.Buffer.Write(b)
	case 1:
		return 0, io.ErrClosedPipe
	case 2:
		n, _ := f.Buffer.Write(b[:len(b)/2])
		return n, nil
	}
	n, _ := f.Buffer.Write(b[:len(b)/3])
	return n, errors.New("no space left")
}

// TestStreamFickle: nothing is lost, torn or repeated, however the writer behaves; and it is told
// once.
func TestStreamFickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		w := &fickle{}
		d := NewStream(w, &StreamConfig{Trip: Trip{Report: func(error) { told.Add(1) }}})
		deliverAll(t, d, 10, 100, 20)
		must(t, d.Close(context.Background()))
		checkLines(t, w.String(), 1000, 20)
		if told.Load() == 0 {
			t.Error("nothing was told")
		}
	})
}

// TestStreamHangs: Close returns by its context although the writer does not.
func TestStreamHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		d := NewStream(w, nil)
		var given atomic.Int32
		for i := range 5 {
			d.Submit(chunkOf("app", i, 1), func(r Result) {
				if errors.Is(r.Err, ErrClosed) {
					given.Add(1)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := d.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "under way") {
			t.Errorf("Close: %v", err)
		}
		if given.Load() != 5 {
			t.Errorf("%d of 5 were given up", given.Load())
		}
		must(t, r.Close()) // the writer comes back, and does nothing
		synctest.Wait()
	})
}

func TestDiscard(t *testing.T) {
	n := 0
	Discard.Submit(chunkOf("app", 0, 1), func(r Result) {
		if r.Err != nil || r.HandedOver || r.State != nil || r.MaybeRepeated {
			t.Errorf("%+v", r)
		}
		n++
	})
	must(t, Discard.Close(context.Background()))
	if n != 1 {
		t.Errorf("done was called %d times", n)
	}
}
