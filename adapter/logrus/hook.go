// SPDX-License-Identifier: Apache-2.0

package spillwaylogrus

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/spillwaylog/spillway"
)

// lastWords is how long an entry that may end the process waits for its delivery.
const lastWords = 5 * time.Second

// levelPanic is between ERROR and FATAL: a panic may be caught.
const levelPanic = slog.LevelError + 2

// A Hook hands entries to a logger. It is made by [NewHook]; goroutines may share it.
type Hook struct{ log *spillway.Logger }

// NewHook returns a hook for all levels. What log does not log by its own level, it leaves out.
func NewHook(log *spillway.Logger) *Hook { return &Hook{log: log} }

// Redirect makes a logger of logrus log to log and nowhere else: it adds a hook, and nothing is
// formatted or written any more.
func Redirect(from *logrus.Logger, log *spillway.Logger) {
	from.AddHook(NewHook(log))
	from.SetFormatter(nothing{})
	from.SetOutput(io.Discard)
}

// nothing is the formatter of a logger that has only hooks.
type nothing struct{}

func (nothing) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

// Levels returns all levels.
func (h *Hook) Levels() []logrus.Level { return logrus.AllLevels }

// events are those that Fire fills.
var events = sync.Pool{New: func() any { return new(spillway.Event) }}

// maxPooledAttrs is how many attributes an event may hold that goes back to the pool.
const maxPooledAttrs = 256

// Fire hands an entry to the logger. It returns nil.
func (h *Hook) Fire(entry *logrus.Entry) error {
	level := levelOf(entry.Level)
	if !h.log.Enabled(level) {
		return nil
	}
	e := events.Get().(*spillway.Event)
	e.Time, e.Level, e.Message = entry.Time, level, entry.Message
	for key, value := range entry.Data {
		switch key {
		case slog.LevelKey, slog.MessageKey, slog.SourceKey:
			key = "fields." + key
		}
		e.Attrs = append(e.Attrs, slog.Any(key, value))
	}
	slices.SortFunc(e.Attrs, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	if at := entry.Caller; at != nil {
		e.File, e.Line = at.File, at.Line
		if at.Function != "" {
			e.Attrs = append(e.Attrs, slog.String(logrus.FieldKeyFunc, at.Function))
		}
	}
	if wrong := errorOf(entry); wrong != "" {
		e.Attrs = append(e.Attrs, slog.String(logrus.FieldKeyLogrusError, wrong))
	}
	_ = h.log.LogEvent(entry.Context, e) // the logger counts and tells what it does not take
	if cap(e.Attrs) > maxPooledAttrs {
		e.Attrs = nil
	}
	clear(e.Attrs)
	*e = spillway.Event{Attrs: e.Attrs[:0]}
	events.Put(e)
	if entry.Level <= logrus.FatalLevel {
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		_ = h.log.Flush(ctx) // what is left by then is for the next process
		cancel()
	}
	return nil
}

func levelOf(l logrus.Level) slog.Level {
	switch l {
	case logrus.PanicLevel:
		return levelPanic
	case logrus.FatalLevel:
		return spillway.LevelFatal
	case logrus.ErrorLevel:
		return slog.LevelError
	case logrus.WarnLevel:
		return slog.LevelWarn
	case logrus.InfoLevel:
		return slog.LevelInfo
	case logrus.DebugLevel:
		return slog.LevelDebug
	}
	return spillway.LevelTrace
}

// errField is where logrus notes which fields it refused to take. The field has no method, and
// JSONFormatter writes it.
var errField = func() []int {
	f, ok := reflect.TypeFor[logrus.Entry]().FieldByName("err")
	if !ok || f.Type.Kind() != reflect.String {
		return nil
	}
	return f.Index
}()

func errorOf(entry *logrus.Entry) string {
	if errField == nil {
		return ""
	}
	return reflect.ValueOf(entry).Elem().FieldByIndex(errField).String()
}
