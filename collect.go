// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/ring"
)

// NewTest returns a logger that collects events in memory instead of delivering them, and what it
// has collected: for tests of code that logs. An event is there when the call returns. Of the
// options, those hold that say what is logged and how it looks. It panics if an option is wrong.
func NewTest(o *Options) (*Logger, *TestEvents) {
	r, err := o.resolved()
	if err != nil {
		panic(err)
	}
	l := newCore(&r, "")
	events := &TestEvents{limit: r.MaxEvent}
	l.c.to = gathering{events}
	return l, events
}

// TestEvents is what a logger of NewTest has collected. Its methods may be called by many
// goroutines.
type TestEvents struct {
	limit  int
	before func() error // what the tests of this package put in the way of an event

	mu     sync.Mutex
	list   []TestEvent
	n      uint64
	missed mover.Missed
	closed bool
}

// A TestEvent is one event.
type TestEvent struct {
	Tag     string
	Time    time.Time  // in UTC; the zero Time when the event has none
	Level   slog.Level // by the record's key level; slog.LevelInfo without one
	Message string     // the record's key msg, or message
	// As forward.Record.Decode makes it: integers as int64 (uint64 if beyond that), bin as []byte,
	// maps as map[string]any.
	Record map[string]any
	Raw    []byte // the record as MessagePack
}

// All returns the events so far, in order.
func (e *TestEvents) All() []TestEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// Len returns how many events there are.
func (e *TestEvents) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.list)
}

// Reset forgets the events so far.
func (e *TestEvents) Reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = nil
}

// gathering is TestEvents as an appender.
type gathering struct{ *TestEvents }

func (e gathering) Append(_ context.Context, _ *ring.Hint, t int64, _ bool, payload []byte) error {
	if e.before != nil {
		if err := e.before(); err != nil {
			return err
		}
	}
	tag, rec := window.CutPayload(payload)
	event := TestEvent{Tag: string(tag), Raw: slices.Clone(rec)}
	switch t {
	case 0:
	case ring.Now:
		event.Time = time.Now().UTC()
	default:
		event.Time = time.Unix(0, t).UTC()
	}
	_ = forward.Record(event.Raw).Decode(&event.Record) // what is no record has none
	if s, ok := event.Record[slog.LevelKey].(string); ok {
		event.Level, _ = parseLevel(s)
	}
	var ok bool
	if event.Message, ok = event.Record[slog.MessageKey].(string); !ok {
		event.Message, _ = event.Record["message"].(string)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		e.missed[mover.Closed]++
		return ErrClosed
	case len(rec) > e.limit:
		e.missed[mover.TooLarge]++
		return ErrTooLarge
	}
	e.n++
	e.list = append(e.list, event)
	return nil
}

func (e gathering) Miss(r mover.Reason, n uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missed[r] += n
}

func (e gathering) Flush(context.Context) error { return nil }

func (e gathering) Close(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

func (e gathering) Stats() mover.Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := mover.Stats{Counts: Stats{Accepted: e.n, Delivered: e.n, InMemory: true}, Missed: e.missed}
	e.missed.Count(&s.Counts)
	return s
}
