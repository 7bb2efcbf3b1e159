// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// chunk makes a chunk of events {"n":1}, {"n":2} …
func chunk(events int) *forward.Chunk {
	c := &forward.Chunk{Tag: "app", ID: forward.NewID(), UniqueID: true, Events: events}
	for i := range events {
		c.Entries = append(c.Entries, 0x92)
		c.Entries = forward.AppendEventTime(c.Entries, 1000+int64(i), 5)
		c.Entries = msgpack.AppendMapHeader(c.Entries, 1)
		c.Entries = msgpack.AppendString(c.Entries, "n")
		c.Entries = msgpack.AppendInt(c.Entries, int64(i+1))
	}
	return c
}

var errDown = errors.New("down")

func TestFallbackTo(t *testing.T) {
	to, events := NewTest(nil)
	h := FallbackTo(to)
	if err := h.HandleError(errDown, chunk(2)); err != nil {
		t.Fatal(err)
	}
	if e := events.All()[1]; e.Tag != "app" || !e.Time.Equal(time.Unix(1001, 5)) {
		t.Errorf("%+v", e)
	}
	expect(t, events, `{"n":1}`, `{"n":2}`)

	// The other logger refuses from the third event on.
	n := 0
	events.before = func() error {
		if n++; n > 2 {
			return ErrFull
		}
		return nil
	}
	c := chunk(4)
	if err := h.HandleError(errDown, c); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	events.before = nil
	if err := h.HandleError(errDown, c); err != nil {
		t.Fatal(err)
	}
	expect(t, events, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`)

	// What it took without seeing it delivered is not offered again.
	events.Reset()
	events.before = func() error { return ErrTimeout }
	if err := h.HandleError(errDown, chunk(2)); err != nil {
		t.Error(err)
	}
	events.before = nil
	if n := len(h.(*fallback).posted); n != 0 {
		t.Errorf("%d chunks remembered", n)
	}
	if err := to.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.HandleError(errDown, c); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := FallbackTo(Discard()).HandleError(errDown, c); err != nil {
		t.Error(err)
	}
}

func TestFallbackCycle(t *testing.T) {
	dir := t.TempDir()
	a := "file:" + filepath.ToSlash(filepath.Join(dir, "a"))
	b := "file:" + filepath.ToSlash(filepath.Join(dir, "b"))
	c := "file:" + filepath.ToSlash(filepath.Join(dir, "c"))
	memory := func(h ErrorHandler) *Options { return &Options{Shm: noShm, ErrorHandler: h} }
	last := opened(t, a, memory(nil))
	middle := opened(t, b, memory(FallbackTo(last)))
	opened(t, c, memory(FallbackTo(middle.With())))
	for name, tt := range map[string]struct {
		url string
		to  *Logger
	}{
		"itself":         {b, middle},
		"over another":   {a, middle},
		"other settings": {a + "?format=text", last},
	} {
		if _, err := Open(tt.url, memory(FallbackTo(tt.to))); !errors.Is(err, ErrCycle) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(c, memory(FallbackTo(nil))); err == nil {
		t.Error("a fallback to nil is accepted")
	}
	opened(t, c, memory(FallbackTo(Discard())))
}

// writes are what was written, one by one.
type writes struct {
	list []string
	err  error
	n    int
}

func (w *writes) Write(p []byte) (int, error) {
	w.list = append(w.list, string(p))
	if w.err != nil || w.n > 0 {
		return w.n, w.err
	}
	return len(p), nil
}

func TestFallbackJSON(t *testing.T) {
	w := &writes{}
	h := FallbackJSON(w)
	if err := h.HandleError(errDown, chunk(2)); err != nil {
		t.Fatal(err)
	}
	want := `{"time":"1970-01-01T00:16:40.000000005Z","tag":"app","n":1}` + "\n" +
		`{"time":"1970-01-01T00:16:41.000000005Z","tag":"app","n":2}` + "\n"
	if len(w.list) != 1 || w.list[0] != want {
		t.Errorf("%q", w.list)
	}
	w.err = errDown
	if err := h.HandleError(nil, chunk(1)); !errors.Is(err, errDown) {
		t.Error(err)
	}
	w.err, w.n = nil, 3
	if err := h.HandleError(nil, chunk(1)); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	c := chunk(1)
	c.Entries = append(c.Entries, 0xc1)
	if err := h.HandleError(nil, c); !errors.Is(err, forward.ErrMalformed) {
		t.Error(err)
	}
	large := &bytes.Buffer{}
	h = FallbackJSON(large)
	if err := h.HandleError(nil, chunk(2000)); err != nil || bytes.Count(large.Bytes(), []byte{'\n'}) != 2000 {
		t.Error(err)
	}
}

func TestErrorHandlerFunc(t *testing.T) {
	var h ErrorHandler = ErrorHandlerFunc(func(err error, c *forward.Chunk) error { return err })
	if err := h.HandleError(errDown, nil); !errors.Is(err, errDown) {
		t.Error(err)
	}
}

// TestFallbackWithoutTime hands on an event that has no time.
func TestFallbackWithoutTime(t *testing.T) {
	c := &forward.Chunk{Tag: "t", Entries: append(forward.AppendEventTime([]byte{0x92}, 0, 0), 0x80), Events: 1}
	to, events := NewTest(nil)
	if err := FallbackTo(to).HandleError(nil, c); err != nil {
		t.Fatal(err)
	}
	if e := events.All()[0]; !e.Time.IsZero() {
		t.Errorf("%v", e.Time)
	}
	var b strings.Builder
	if err := FallbackJSON(&b).HandleError(nil, c); err != nil || b.String() != `{"tag":"t"}`+"\n" {
		t.Errorf("%s %v", b.String(), err)
	}
}
