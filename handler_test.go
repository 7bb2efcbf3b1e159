// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/slogtest"
	"time"
)

func TestHandler(t *testing.T) {
	var events *TestEvents
	slogtest.Run(t, func(*testing.T) slog.Handler {
		var l *Logger
		l, events = NewTest(nil)
		return l.Handler()
	}, func(t *testing.T) map[string]any {
		list := events.All()
		if len(list) != 1 {
			t.Fatalf("%d events", len(list))
		}
		m := list[0].Record
		if !list[0].Time.IsZero() { // the time is the event's, not the record's
			m[slog.TimeKey] = list[0].Time
		}
		return m
	})
}

// TestHandlerReplacing is the same on the path of ReplaceAttr.
func TestHandlerReplacing(t *testing.T) {
	var events *TestEvents
	slogtest.Run(t, func(*testing.T) slog.Handler {
		var l *Logger
		l, events = NewTest(&Options{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { return a }})
		return l.Handler()
	}, func(*testing.T) map[string]any {
		e := events.All()[0]
		if !e.Time.IsZero() {
			e.Record[slog.TimeKey] = e.Time
		}
		return e.Record
	})
}

func TestHandlerTime(t *testing.T) {
	l, events := NewTest(nil)
	at := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	for _, want := range []time.Time{at, {}} {
		if err := l.Handler().Handle(context.Background(), slog.NewRecord(want, slog.LevelInfo, "m", 0)); err != nil {
			t.Fatal(err)
		}
		list := events.All()
		if got := list[len(list)-1].Time; !got.Equal(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestHandlerMany has attributes beyond those that a record keeps in itself: all are there, and a
// default field gives way to one of them.
func TestHandlerMany(t *testing.T) {
	for _, replace := range []func([]string, slog.Attr) slog.Attr{
		nil,
		func(_ []string, a slog.Attr) slog.Attr { return a },
	} {
		l, events := NewTest(&Options{Attrs: []slog.Attr{slog.Int("h", 0), slog.Int("x", 0)}, ReplaceAttr: replace})
		slog.New(l.Handler()).LogAttrs(t.Context(), slog.LevelInfo, "m", slog.Int("a", 1), slog.Int("b", 2),
			slog.Int("c", 3),
			slog.Int("d", 4), slog.Int("e", 5), slog.Int("f", 6), slog.Int("g", 7), slog.Int("h", 8))
		expect(t, events, `{"level":"INFO","msg":"m","x":0,"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8}`)
	}
}

func TestHandlerAfterClose(t *testing.T) {
	l, events := NewTest(nil)
	h := l.Handler()
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := h.Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelInfo, "m", 0)); !errors.Is(err,
		ErrClosed) {
		t.Error(err)
	}
	slog.New(h).Info("m")
	if events.Len() != 0 {
		t.Error("logged after Close")
	}
}

// TestDefault puts the handler under package log, which holds a lock while it writes, with
// diagnostics that print through it again.
func TestDefault(t *testing.T) {
	before, flags, out := slog.Default(), log.Flags(), log.Writer()
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(out)
		log.SetFlags(flags)
	}()
	told := make(chan error, 100)
	var l *Logger
	l, events := NewTest(&Options{Diagnostics: func(err error) {
		log.Printf("error: %v", err) //nolint:forbidigo // leads back into the logger
		select {
		case told <- err:
		default:
		}
	}})
	slog.SetDefault(slog.New(l.Handler()))
	var left atomic.Int32
	left.Store(3)
	events.before = func() error { // within each call, with the lock of package log held
		if left.Add(-1) >= 0 {
			l.c.diagnostics.report(errors.New("again"))
		}
		return nil
	}
	log.Printf("one %d", 1) //nolint:forbidigo // what this test is about
	for range 3 {
		if err := <-told; err.Error() != "again" {
			t.Error(err)
		}
	}
	if e := events.All()[0]; e.Message != "one 1" {
		t.Errorf("%+v", e)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
