// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// The levels that slog does not name.
const (
	LevelTrace = slog.Level(-8)
	LevelFatal = slog.Level(12)
)

// Logger writes events to one destination.
type Logger struct{}

// Open opens a logger. An empty destination is $SPILLWAY_URL.
func Open(destination string, o *Options) (*Logger, error) {
	return nil, errors.New("spillway: " + destination + ": not yet")
}

// Discard returns a logger that does nothing.
func Discard() *Logger { return &Logger{} }

// NewTest returns a logger that collects its events in memory, at once, for tests.
func NewTest(o *Options) (*Logger, *TestEvents) { return &Logger{}, &TestEvents{} }

// TestEvents is what a logger of NewTest has collected.
type TestEvents struct{}

// TestEvent is one event.
type TestEvent struct {
	Tag     string
	Time    time.Time
	Level   slog.Level // of the record's key level, Info without one
	Message string     // of the record's key msg, or message
	Record  map[string]any
	Raw     []byte // the record as MessagePack
}

// All returns the events so far.
func (e *TestEvents) All() []TestEvent { return nil }

// Len returns how many events there are.
func (e *TestEvents) Len() int { return 0 }

// Reset forgets the events so far.
func (e *TestEvents) Reset() {}

// Trace logs at LevelTrace.
func (l *Logger) Trace(msg string, attrs ...slog.Attr) {}

// Debug logs at slog.LevelDebug.
func (l *Logger) Debug(msg string, attrs ...slog.Attr) {}

// Info logs at slog.LevelInfo.
func (l *Logger) Info(msg string, attrs ...slog.Attr) {}

// Warn logs at slog.LevelWarn.
func (l *Logger) Warn(msg string, attrs ...slog.Attr) {}

// Error logs at slog.LevelError.
func (l *Logger) Error(msg string, attrs ...slog.Attr) {}

// Fatal logs at LevelFatal, flushes and ends the process with 1.
func (l *Logger) Fatal(msg string, attrs ...slog.Attr) {}

// Recover is deferred: it logs a panic, flushes and panics again.
func (l *Logger) Recover() {}

// Log logs at any level.
func (l *Logger) Log(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr) {}

// With returns a logger whose events also have attrs.
func (l *Logger) With(attrs ...slog.Attr) *Logger { return l }

// WithGroup returns a logger whose later attributes lie in a group.
func (l *Logger) WithGroup(name string) *Logger { return l }

// SetLevel sets the least level that is logged.
func (l *Logger) SetLevel(level slog.Level) {}

// Level returns the least level that is logged.
func (l *Logger) Level() slog.Level { return 0 }

// Enabled reports whether a level is logged.
func (l *Logger) Enabled(level slog.Level) bool { return false }

// Handler returns the logger as a slog.Handler.
func (l *Logger) Handler() slog.Handler { return slog.DiscardHandler }

// StdLogger returns a log.Logger whose messages are logged at level.
func (l *Logger) StdLogger(level slog.Level) *log.Logger { return nil }

// Writer returns a writer of lines.
func (l *Logger) Writer() io.Writer { return io.Discard }

// Post posts v, a struct or map, under tag.
func (l *Logger) Post(tag string, v any) error { return nil }

// PostWithTime is Post with a time.
func (l *Logger) PostWithTime(tag string, t time.Time, v any) error { return nil }

// PostRaw posts a record that is already MessagePack: one map. It is copied.
func (l *Logger) PostRaw(tag string, t time.Time, record []byte) error { return nil }

// Flush waits until all that was accepted is delivered, or until ctx ends.
func (l *Logger) Flush(ctx context.Context) error { return nil }

// Close delivers what is held, until ctx ends, and closes the logger. The error wraps a *LeftError when something is left.
func (l *Logger) Close(ctx context.Context) error { return nil }

// Subscribe returns the events of the destination's circuit breaker.
func (l *Logger) Subscribe() <-chan BreakerEvent { return nil }

// Stats returns what became of the events so far.
func (l *Logger) Stats() Stats { return Stats{} }

// BreakerState is the state of a circuit breaker.
type BreakerState uint8

// The states.
const (
	BreakerClosed BreakerState = iota
	BreakerOpen
	BreakerHalfOpen
)

// BreakerEvent is a change of state.
type BreakerEvent struct {
	State BreakerState
	Err   error
	At    time.Time
}

// Stats counts events. Accepted = Delivered + HandedOver + Dropped + Lost + Held.
type Stats struct {
	Accepted      uint64
	Delivered     uint64
	HandedOver    uint64
	MaybeRepeated uint64
	Dropped       uint64 // accepted, then dropped
	Lost          uint64
	Held          uint64
	Refused       uint64 // not accepted
	Sampled       uint64 // left out by sampling
	Spilled       uint64
	HeldBytes     int64
	RingUsed      int64
	DiskUsed      int64
	DroppedBy     map[string]uint64 // by reason
	RefusedBy     map[string]uint64 // by reason
	Adopted       Adopted
}

// Adopted is what dead processes left that this logger ships.
type Adopted struct{ Rings, Spills, Events uint64 }

// ErrorHandler takes chunks that cannot be delivered.
type ErrorHandler interface {
	HandleError(err error, c *forward.Chunk) error
}

// ErrorHandlerFunc is a function as ErrorHandler.
type ErrorHandlerFunc func(err error, c *forward.Chunk) error

// HandleError calls f.
func (f ErrorHandlerFunc) HandleError(err error, c *forward.Chunk) error { return f(err, c) }

// FallbackTo returns a handler that posts each event into another logger.
func FallbackTo(l *Logger) ErrorHandler { return nil }

// FallbackJSON returns a handler that writes each event as a line of JSON.
func FallbackJSON(w io.Writer) ErrorHandler { return nil }
