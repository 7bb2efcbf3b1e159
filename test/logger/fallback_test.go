// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// What a destination does not take is handed to the fallback: with those delivered, each event
// once.

// wantOnce checks that the events of a stream came once each, to whichever ledger.
func wantOnce(t testing.TB, stream string, n uint64, ledgers ...*rig.Ledger) {
	t.Helper()
	have := make([]int, n)
	for _, l := range ledgers {
		l.Mu.Lock()
		for _, i := range l.Streams[stream] {
			if i >= n {
				t.Errorf("%s: a stray event %d", stream, i)
				continue
			}
			have[i]++
		}
		l.Mu.Unlock()
	}
	wrong := 0
	for i, times := range have {
		if times != 1 {
			if wrong++; wrong < 10 {
				t.Errorf("%s: event %d is there %d times", stream, i, times)
			}
		}
	}
}

// taker is a handler that refuses some times, and then takes.
func taker(into *rig.Ledger, refusals int) spillway.ErrorHandler {
	var mu sync.Mutex
	return spillway.ErrorHandlerFunc(func(err error, c *forward.Chunk) error {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			into.Complain("the handler got no error")
		}
		if refusals > 0 {
			refusals--
			return errors.New("not now")
		}
		into.Take(c.Tag, string(c.ID), c.Events, c.Entries)
		return nil
	})
}

func TestLoggerFallback(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		refusals int
		spill    bool
		server   func(s *rig.FakeServer) // what is wrong with it
		query    string
	}{
		{"down", 0, false, (*rig.FakeServer).Down, ""},
		{"down, spill", 0, true, (*rig.FakeServer).Down, ""},
		{"down, handler fails first", 5, false, (*rig.FakeServer).Down, ""},
		{"down, handler fails first, spill", 5, true, (*rig.FakeServer).Down, ""},
		{"closes at once", 0, false, func(s *rig.FakeServer) {
			s.Greet = func(c *rig.FakeConn) bool { c.Reset(); return true }
		}, "failover_after=50ms"},
		{"never acks", 0, false, func(s *rig.FakeServer) {
			s.Manners = func(*rig.FakeConn, string) bool { return true }
		}, "ack_timeout=20ms&failover_after=50ms"},
		{"stalled", 0, true, func(s *rig.FakeServer) {
			s.Greet = func(*rig.FakeConn) bool { return false }
		}, "ack_timeout=20ms&failover_after=50ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := rig.Random(t)
			h := rig.NewHome(t)
			s := rig.NewFake(t)
			tt.server(s)
			into := rig.NewLedger()
			o := spillway.Options{FlushInterval: time.Millisecond, ErrorHandler: taker(into, tt.refusals)}
			if tt.spill {
				o.Dir = h.Dir
			}
			l := h.Open(s.URL(tt.query), o)
			const n = 1000
			posters := rig.PostAll(t, l, "f", n, rand.New(rand.NewPCG(r.Uint64(), 0)))
			stats := rig.Closing(t, l)
			rig.WantLaw(t, stats)
			into.Check(t)
			for _, p := range posters {
				wantOnce(t, p.Stream, n, into)
			}
			if stats.HandedOver != stats.Accepted {
				t.Errorf("want all to be handed over: %+v", stats)
			}
			if seen := uint64(s.Ledger.Events()); stats.MaybeRepeated < seen {
				t.Errorf("%d events maybe repeated, but the server saw %d: %+v", stats.MaybeRepeated, seen, stats)
			}
			h.WantEmpty()
			if t.Failed() {
				h.Tell()
			}
		})
	}
}

// TestLoggerFallbackComesAndGoes has the server go down and come back: each event is with the
// server or with the fallback, never with both unless it is counted as maybe repeated.
func TestLoggerFallbackComesAndGoes(t *testing.T) {
	t.Parallel()
	r := rig.Random(t)
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	stop := make(chan struct{})
	var all sync.WaitGroup
	moments := rand.New(rand.NewPCG(r.Uint64(), 1))
	all.Go(func() {
		for {
			select {
			case <-stop:
				s.Up()
				return
			case <-time.After(time.Duration(moments.IntN(50)) * time.Millisecond):
				s.Down()
			}
			<-time.After(time.Duration(moments.IntN(50)) * time.Millisecond)
			s.Up()
		}
	})
	into := rig.NewLedger()
	l := h.Open(s.URL(""), spillway.Options{FlushInterval: time.Millisecond, Dir: h.Dir, ErrorHandler: taker(into, 0)})
	const n = 20_000
	posters := rig.PostAll(t, l, "c", n, r)
	close(stop)
	all.Wait()
	stats := rig.Closing(t, l)
	rig.WantLaw(t, stats)
	into.Check(t)
	s.Ledger.Check(t)
	if stats.MaybeRepeated == 0 {
		for _, p := range posters {
			wantOnce(t, p.Stream, n, into, s.Ledger)
		}
	}
	if stats.Dropped+stats.Lost+stats.Held > 0 {
		t.Errorf("want all to be delivered or handed over: %+v", stats)
	}
	t.Logf("%d delivered, %d handed over, %d maybe repeated", stats.Delivered, stats.HandedOver, stats.MaybeRepeated)
	if t.Failed() {
		h.Tell()
	}
}

// TestLoggerFallbackTo hands over to another logger.
func TestLoggerFallbackTo(t *testing.T) {
	t.Parallel()
	r := rig.Random(t)
	h := rig.NewHome(t)
	dead, well := rig.NewFake(t), rig.NewFake(t)
	dead.Down()
	second := rig.NewHome(t).Open(well.URL(""), spillway.Options{FlushInterval: time.Millisecond})
	first := h.Open(dead.URL(""), spillway.Options{
		FlushInterval: time.Millisecond,
		ErrorHandler:  spillway.FallbackTo(second),
	})
	const n = 1000
	posters := rig.PostAll(t, first, "f", n, r)
	stats := rig.Closing(t, first)
	rig.WantLaw(t, stats)
	if stats.HandedOver != stats.Accepted {
		t.Errorf("want all to be handed over: %+v", stats)
	}
	stats = rig.Closing(t, second)
	rig.WantLaw(t, stats)
	if stats.Delivered != stats.Accepted {
		t.Errorf("want all to be delivered: %+v", stats)
	}
	well.Ledger.Check(t)
	for _, p := range posters {
		well.Ledger.WantStream(t, p.Stream, n, n)
	}
}

// TestLoggerFallbackJSON hands over to a writer.
func TestLoggerFallbackJSON(t *testing.T) {
	t.Parallel()
	r := rig.Random(t)
	h := rig.NewHome(t)
	dead := rig.NewFake(t)
	dead.Down()
	var out rig.SyncBuffer
	l := h.Open(dead.URL(""), spillway.Options{
		FlushInterval: time.Millisecond,
		ErrorHandler:  spillway.FallbackJSON(&out),
	})
	const n = 500
	posters := rig.PostAll(t, l, "j", n, r)
	stats := rig.Closing(t, l)
	rig.WantLaw(t, stats)
	if stats.HandedOver != stats.Accepted {
		t.Errorf("want all to be handed over: %+v", stats)
	}
	into := rig.NewLedger()
	for text := range bytes.Lines(out.Bytes()) {
		l, err := rig.ParseLine(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		into.Line(l)
	}
	into.Check(t)
	for _, p := range posters {
		into.WantStream(t, p.Stream, n, n)
	}
}
