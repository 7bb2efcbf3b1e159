// SPDX-License-Identifier: Apache-2.0

// Package spillwaylogr brings go-logr/logr to Spillway: a logr.LogSink that hands messages to a
// spillway.Logger, so that they outlive the process and reach a collector.
//
//	log, err := spillway.Open("forward://127.0.0.1:24224", nil)
//	…
//	logger := logr.New(spillwaylogr.NewSink(log))
//
// # What it keeps
//
//	V          the level: V(0) is INFO, V(4) DEBUG, V(8) TRACE, those between as DEBUG+3; Options.Level decides what is logged
//	Error      ERROR, and the error as field error, unless it is nil
//	names      logger, with slashes between them
//	values     as they stand, those of WithValues first; of a logr.Marshaler what it returns
//	caller     source, if Options.Source asks for it, with WithCallDepth
//
// A key that is no string, and a key without a value, are written as package funcr writes them. A
// Marshaler inside of another value is written by the rules of spillway.Logger.Post, as all values
// are. As a logr.SlogSink it takes records of slog with their groups and times
// (logr.ToSlogHandler).
package spillwaylogr

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"

	"github.com/spillwaylog/spillway"
)

// A sink is a logger as logr.LogSink.
type sink struct {
	log   *spillway.Logger
	name  string
	depth int // calls between the place and this package
}

var (
	_ logr.LogSink          = (*sink)(nil)
	_ logr.CallDepthLogSink = (*sink)(nil)
	_ logr.SlogSink         = (*sink)(nil)
)

// NewSink returns a sink that hands messages to log. Goroutines may share it.
func NewSink(log *spillway.Logger) logr.LogSink { return &sink{log: log} }

func (s *sink) Init(info logr.RuntimeInfo) { s.depth = info.CallDepth }

func (s *sink) Enabled(level int) bool { return s.log.Enabled(levelOf(level)) }

func levelOf(v int) slog.Level { return slog.LevelInfo - slog.Level(v) }

func (s *sink) Info(level int, msg string, keysAndValues ...any) {
	s.emit(levelOf(level), nil, msg, keysAndValues)
}

func (s *sink) Error(err error, msg string, keysAndValues ...any) {
	s.emit(slog.LevelError, err, msg, keysAndValues)
}

// events are those that emit fills.
var events = sync.Pool{New: func() any { return new(spillway.Event) }}

// maxPooledAttrs is how many attributes an event may hold that goes back to the pool.
const maxPooledAttrs = 256

// emit stands one call below each of the above, which is what the depth counts on.
func (s *sink) emit(level slog.Level, err error, msg string, keysAndValues []any) {
	if !s.log.Enabled(level) {
		return
	}
	e := events.Get().(*spillway.Event)
	e.Level, e.Message, e.Depth = level, msg, 3+s.depth
	if s.name != "" {
		e.Attrs = append(e.Attrs, slog.String("logger", s.name))
	}
	if err != nil {
		e.Attrs = append(e.Attrs, slog.Any("error", err))
	}
	e.Attrs = appendAttrs(e.Attrs, keysAndValues)
	_ = s.log.LogEvent(context.Background(), e) // the logger counts and tells what it does not take
	if cap(e.Attrs) > maxPooledAttrs {
		e.Attrs = nil
	}
	clear(e.Attrs)
	*e = spillway.Event{Attrs: e.Attrs[:0]}
	events.Put(e)
}

func appendAttrs(attrs []slog.Attr, keysAndValues []any) []slog.Attr {
	for i := 0; i < len(keysAndValues); i += 2 {
		key, ok := keysAndValues[i].(string)
		if !ok {
			key = nonString(keysAndValues[i])
		}
		value := any("<no-value>")
		if i+1 < len(keysAndValues) {
			value = keysAndValues[i+1]
		}
		if m, ok := value.(logr.Marshaler); ok {
			value = marshaled(m)
		}
		attrs = append(attrs, slog.Any(key, value))
	}
	return attrs
}

// nonString is the key for one that is no string.
func nonString(key any) string {
	const longest = 16
	text := fmt.Sprint(key)
	if len(text) > longest {
		text = text[:longest]
	}
	return "<non-string-key: " + text + ">"
}

// marshaled is what a Marshaler returns; if it panics, a text that says so.
func marshaled(m logr.Marshaler) (v any) {
	defer func() {
		if r := recover(); r != nil {
			v = fmt.Sprintf("!PANIC: %v", r)
		}
	}()
	return m.MarshalLog()
}

func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	t := *s
	t.log = s.log.With(appendAttrs(nil, keysAndValues)...)
	return &t
}

func (s *sink) WithName(name string) logr.LogSink {
	t := *s
	if t.name != "" {
		t.name += "/"
	}
	t.name += name
	return &t
}

func (s *sink) WithCallDepth(depth int) logr.LogSink {
	t := *s
	t.depth += depth
	return &t
}

// Handle is for records of slog.
func (s *sink) Handle(ctx context.Context, r slog.Record) error { //nolint:gocritic // slog's signature
	if s.name != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("logger", s.name))
	}
	return s.log.Handler().Handle(ctx, r)
}

func (s *sink) WithAttrs(attrs []slog.Attr) logr.SlogSink {
	t := *s
	t.log = s.log.With(attrs...)
	return &t
}

func (s *sink) WithGroup(name string) logr.SlogSink {
	t := *s
	t.log = s.log.WithGroup(name)
	return &t
}
