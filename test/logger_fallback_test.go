// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/forward"
)

// What a destination does not take is handed to the fallback: with those delivered, each event
// once.

// wantOnce checks that the events of a stream came once each, to whichever ledger.
func wantOnce(t testing.TB, stream string, n uint64, ledgers ...*ledger) {
	t.Helper()
	have := make([]int, n)
	for _, l := range ledgers {
		l.mu.Lock()
		for _, i := range l.streams[stream] {
			if i >= n {
				t.Errorf("%s: a stray event %d", stream, i)
				continue
			}
			have[i]++
		}
		l.mu.Unlock()
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
func taker(into *ledger, refusals int) spillway.ErrorHandler {
	var mu sync.Mutex
	return spillway.ErrorHandlerFunc(func(err error, c *forward.Chunk) error {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			into.complain("the handler got no error")
		}
		if refusals > 0 {
			refusals--
			return errors.New("not now")
		}
		into.take(c.Tag, string(c.ID), c.Events, c.Entries)
		return nil
	})
}

func TestLoggerFallback(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		refusals int
		spill    bool
		server   func(s *fakeServer) // what is wrong with it
		query    string
	}{
		{"down", 0, false, (*fakeServer).down, ""},
		{"down, spill", 0, true, (*fakeServer).down, ""},
		{"down, handler fails first", 5, false, (*fakeServer).down, ""},
		{"down, handler fails first, spill", 5, true, (*fakeServer).down, ""},
		{"closes at once", 0, false, func(s *fakeServer) {
			s.greet = func(c *fakeConn) bool { c.reset(); return true }
		}, "failover_after=50ms"},
		{"never acks", 0, false, func(s *fakeServer) {
			s.manners = func(*fakeConn, string) bool { return true }
		}, "ack_timeout=20ms&failover_after=50ms"},
		{"stalled", 0, true, func(s *fakeServer) {
			s.greet = func(*fakeConn) bool { return false }
		}, "ack_timeout=20ms&failover_after=50ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := random(t)
			h := newHome(t)
			s := newFake(t)
			tt.server(s)
			into := newLedger()
			o := spillway.Options{FlushInterval: time.Millisecond, ErrorHandler: taker(into, tt.refusals)}
			if tt.spill {
				o.Dir = h.dir
			}
			l := h.open(s.url(tt.query), o)
			const n = 1000
			posters := postAll(t, l, "f", n, rand.New(rand.NewPCG(r.Uint64(), 0)))
			stats := closing(t, l)
			wantLaw(t, stats)
			into.check(t)
			for _, p := range posters {
				wantOnce(t, p.stream, n, into)
			}
			if stats.HandedOver != stats.Accepted {
				t.Errorf("want all to be handed over: %+v", stats)
			}
			if seen := uint64(s.ledger.events()); stats.MaybeRepeated < seen {
				t.Errorf("%d events maybe repeated, but the server saw %d: %+v", stats.MaybeRepeated, seen, stats)
			}
			h.wantEmpty()
			if t.Failed() {
				h.tell()
			}
		})
	}
}

// TestLoggerFallbackComesAndGoes has the server go down and come back: each event is with the
// server or with the fallback, never with both unless it is counted as maybe repeated.
func TestLoggerFallbackComesAndGoes(t *testing.T) {
	t.Parallel()
	r := random(t)
	h := newHome(t)
	s := newFake(t)
	stop := make(chan struct{})
	var all sync.WaitGroup
	moments := rand.New(rand.NewPCG(r.Uint64(), 1))
	all.Go(func() {
		for {
			select {
			case <-stop:
				s.up()
				return
			case <-time.After(time.Duration(moments.IntN(50)) * time.Millisecond):
				s.down()
			}
			<-time.After(time.Duration(moments.IntN(50)) * time.Millisecond)
			s.up()
		}
	})
	into := newLedger()
	l := h.open(s.url(""), spillway.Options{FlushInterval: time.Millisecond, Dir: h.dir, ErrorHandler: taker(into, 0)})
	const n = 20_000
	posters := postAll(t, l, "c", n, r)
	close(stop)
	all.Wait()
	stats := closing(t, l)
	wantLaw(t, stats)
	into.check(t)
	s.ledger.check(t)
	if stats.MaybeRepeated == 0 {
		for _, p := range posters {
			wantOnce(t, p.stream, n, into, s.ledger)
		}
	}
	if stats.Dropped+stats.Lost+stats.Held > 0 {
		t.Errorf("want all to be delivered or handed over: %+v", stats)
	}
	t.Logf("%d delivered, %d handed over, %d maybe repeated", stats.Delivered, stats.HandedOver, stats.MaybeRepeated)
	if t.Failed() {
		h.tell()
	}
}

// TestLoggerFallbackTo hands over to another logger.
func TestLoggerFallbackTo(t *testing.T) {
	t.Parallel()
	r := random(t)
	h := newHome(t)
	dead, well := newFake(t), newFake(t)
	dead.down()
	second := newHome(t).open(well.url(""), spillway.Options{FlushInterval: time.Millisecond})
	first := h.open(dead.url(""), spillway.Options{
		FlushInterval: time.Millisecond,
		ErrorHandler:  spillway.FallbackTo(second),
	})
	const n = 1000
	posters := postAll(t, first, "f", n, r)
	stats := closing(t, first)
	wantLaw(t, stats)
	if stats.HandedOver != stats.Accepted {
		t.Errorf("want all to be handed over: %+v", stats)
	}
	stats = closing(t, second)
	wantLaw(t, stats)
	if stats.Delivered != stats.Accepted {
		t.Errorf("want all to be delivered: %+v", stats)
	}
	well.ledger.check(t)
	for _, p := range posters {
		well.ledger.wantStream(t, p.stream, n, n)
	}
}

// TestLoggerFallbackJSON hands over to a writer.
func TestLoggerFallbackJSON(t *testing.T) {
	t.Parallel()
	r := random(t)
	h := newHome(t)
	dead := newFake(t)
	dead.down()
	var out syncBuffer
	l := h.open(dead.url(""), spillway.Options{
		FlushInterval: time.Millisecond,
		ErrorHandler:  spillway.FallbackJSON(&out),
	})
	const n = 500
	posters := postAll(t, l, "j", n, r)
	stats := closing(t, l)
	wantLaw(t, stats)
	if stats.HandedOver != stats.Accepted {
		t.Errorf("want all to be handed over: %+v", stats)
	}
	into := newLedger()
	for text := range bytes.Lines(out.bytes()) {
		l, err := parseLine(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		into.line(l)
	}
	into.check(t)
	for _, p := range posters {
		into.wantStream(t, p.stream, n, n)
	}
}
