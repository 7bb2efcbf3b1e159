// SPDX-License-Identifier: Apache-2.0

package spillwayzap

import (
	"context"
	"log/slog"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/spillwaylog/spillway"
)

// lastWords is how long an entry that may end the process waits for its delivery.
const lastWords = 5 * time.Second

// A core is a logger as zapcore.Core.
type core struct {
	log    *spillway.Logger
	prefix *encoder // the fields of With; nil: none
}

// NewCore returns a core that writes to log, at the levels that log is at. Goroutines may share it.
// It has the method Level, which zapcore.LevelOf asks.
func NewCore(log *spillway.Logger) zapcore.Core { return &core{log: log} }

func (c *core) Enabled(level zapcore.Level) bool { return c.log.Enabled(levelOf(level)) }

// Level returns the least level that is logged.
func (c *core) Level() zapcore.Level {
	least := c.log.Level()
	for level := zapcore.DebugLevel; level <= zapcore.FatalLevel; level++ {
		if levelOf(level) >= least {
			return level
		}
	}
	return zapcore.InvalidLevel
}

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	if len(fields) == 0 {
		return c
	}
	prefix := new(encoder)
	prefix.start(c.prefix)
	prefix.addFields(fields)
	return &core{c.log, prefix}
}

func (c *core) Check(ent zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry { //nolint:gocritic // zap's signature
	if c.Enabled(ent.Level) {
		return ce.AddCore(ent, c)
	}
	return ce
}

func (c *core) Write(ent zapcore.Entry, fields []zapcore.Field) error { //nolint:gocritic // zap's signature
	e := encoders.Get().(*encoder)
	e.start(c.prefix)
	e.addFields(fields)
	e.close(1)
	if ent.Stack != "" {
		e.AddString("stacktrace", ent.Stack)
	}
	e.close(0)
	ev := &e.event
	ev.Time, ev.Level, ev.Message, ev.Fields = ent.Time, levelOf(ent.Level), ent.Message, e.buf
	if ent.LoggerName != "" {
		e.name[0] = slog.String("logger", ent.LoggerName)
		ev.Attrs = e.name[:]
	}
	if ent.Caller.Defined {
		ev.File, ev.Line = ent.Caller.File, ent.Caller.Line
	}
	_ = c.log.LogEvent(context.Background(), ev) // the logger counts and tells what it does not take
	e.free()
	if ent.Level > zapcore.ErrorLevel {
		_ = c.Sync() // what is left by then is for the next process
	}
	return nil
}

func (c *core) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	return c.log.Flush(ctx)
}

func levelOf(l zapcore.Level) slog.Level {
	switch {
	case l <= zapcore.ErrorLevel:
		return 4 * slog.Level(l) // four apart, and info is 0 for both
	case l >= zapcore.FatalLevel:
		return spillway.LevelFatal
	}
	return slog.LevelError + slog.Level(l-zapcore.ErrorLevel)
}
