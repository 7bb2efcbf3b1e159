// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/ring"
)

// A Logger logs to one destination. [Open], [Discard] and [NewTest] return one. Its methods may be
// called by many goroutines, and on a nil or zero Logger, which does nothing, but that Fatal ends
// the process.
//
// A call encodes its arguments before it returns: they may be changed at once. Leveled calls return
// nothing; what they could not log is counted, see [Logger.Stats], and told in the log itself by a
// summary event.
type Logger struct {
	c     *core          // shared by all that With made of one logger; nil: does nothing
	level *slog.LevelVar // that of c; nil with it
	scope
}

// Discard returns a logger that does nothing.
func Discard() *Logger { return new(Logger) }

// off reports that l does nothing.
func (l *Logger) off() bool { return l == nil || l.c == nil }

// Enabled reports whether leveled calls at this level are logged.
func (l *Logger) Enabled(level slog.Level) bool {
	return l != nil && l.level != nil && level >= l.level.Level()
}

// Level returns the least level that is logged.
func (l *Logger) Level() slog.Level {
	if l.off() {
		return never
	}
	return l.level.Level()
}

// SetLevel sets the least level that is logged, for this logger and all that have been made of the
// same one by With.
func (l *Logger) SetLevel(level slog.Level) {
	if !l.off() {
		l.level.Set(level)
	}
}

// Trace logs at LevelTrace.
func (l *Logger) Trace(msg string, attrs ...slog.Attr) {
	if l.Enabled(LevelTrace) {
		l.log(context.Background(), LevelTrace, msg, attrs)
	}
}

// Debug logs at slog.LevelDebug.
func (l *Logger) Debug(msg string, attrs ...slog.Attr) {
	if l.Enabled(slog.LevelDebug) {
		l.log(context.Background(), slog.LevelDebug, msg, attrs)
	}
}

// Info logs at slog.LevelInfo.
func (l *Logger) Info(msg string, attrs ...slog.Attr) {
	if l.Enabled(slog.LevelInfo) {
		l.log(context.Background(), slog.LevelInfo, msg, attrs)
	}
}

// Warn logs at slog.LevelWarn.
func (l *Logger) Warn(msg string, attrs ...slog.Attr) {
	if l.Enabled(slog.LevelWarn) {
		l.log(context.Background(), slog.LevelWarn, msg, attrs)
	}
}

// Error logs at slog.LevelError.
func (l *Logger) Error(msg string, attrs ...slog.Attr) {
	if l.Enabled(slog.LevelError) {
		l.log(context.Background(), slog.LevelError, msg, attrs)
	}
}

// TraceContext is Trace with a context, see [Logger.Log].
func (l *Logger) TraceContext(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.Enabled(LevelTrace) {
		l.log(ctx, LevelTrace, msg, attrs)
	}
}

// DebugContext is Debug with a context, see [Logger.Log].
func (l *Logger) DebugContext(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.Enabled(slog.LevelDebug) {
		l.log(ctx, slog.LevelDebug, msg, attrs)
	}
}

// InfoContext is Info with a context, see [Logger.Log].
func (l *Logger) InfoContext(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.Enabled(slog.LevelInfo) {
		l.log(ctx, slog.LevelInfo, msg, attrs)
	}
}

// WarnContext is Warn with a context, see [Logger.Log].
func (l *Logger) WarnContext(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.Enabled(slog.LevelWarn) {
		l.log(ctx, slog.LevelWarn, msg, attrs)
	}
}

// ErrorContext is Error with a context, see [Logger.Log].
func (l *Logger) ErrorContext(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.Enabled(slog.LevelError) {
		l.log(ctx, slog.LevelError, msg, attrs)
	}
}

// Log logs at any level. ctx is what Options.ContextAttrs is asked with. Where Block, Keep or
// WaitDelivered let the call wait, it returns at the latest when ctx ends, and after
// Options.MaxWait.
func (l *Logger) Log(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr) {
	if l.Enabled(level) {
		l.log(ctx, level, msg, attrs)
	}
}

// log stands one call below each of the above, which is what the source counts on.
func (l *Logger) log(ctx context.Context, level slog.Level, msg string, attrs []slog.Attr) {
	if ctx == nil {
		ctx = context.Background()
	}
	var pc uintptr
	if l.c.source != NoSource {
		pc = caller(2)
	}
	_ = l.emit(ctx, level, ring.Now, pc, msg, attrs, nil) // counted
}

// With returns a logger whose events have these attributes, too.
func (l *Logger) With(attrs ...slog.Attr) *Logger {
	if l.off() || len(attrs) == 0 {
		return l
	}
	var b []byte
	var n int
	if l.c.replace == nil {
		b, n = record.AppendAttrs(nil, attrs)
	} else {
		b, n = record.AppendAttrsReplaced(nil, l.groups, attrs, l.c.replace)
	}
	if n == 0 {
		return l
	}
	m := *l
	m.scope = l.with(b, n)
	return &m
}

// WithGroup returns a logger whose later attributes, those of calls and of With, lie in a group: a
// map under this name. A group without attributes is left out; the empty name is no group, nor is
// one inside of 20 others.
func (l *Logger) WithGroup(name string) *Logger {
	if l.off() || name == "" || len(l.groups) >= maxGroups {
		return l
	}
	m := *l
	m.scope = l.within(name)
	return &m
}

// nanos returns t in Unix nanoseconds, 0 for the zero time. The time of an event is at least 1 ns
// and at most what EventTime can say, in the year 2106.
func nanos(t time.Time) int64 {
	s := t.Unix()
	switch {
	case uint64(s) <= math.MaxUint32:
		return max(s*1e9+int64(t.Nanosecond()), 1)
	case t.IsZero():
		return 0
	case s < 0:
		return 1
	}
	return math.MaxUint32*1e9 + 999_999_999
}
