// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/ring"
)

// An appender is where events go: a mover, or the list of a test.
type appender interface {
	// Append takes an event: its time, whether it waits for room, and what AppendPayload wrote with
	// the record behind it.
	Append(ctx context.Context, h *ring.Hint, t int64, keep bool, payload []byte) error
	// Drop counts events that do not come.
	Miss(r mover.Reason, n uint64)
	Stats() mover.Stats
	Flush(ctx context.Context) error
	Close(ctx context.Context) error
}

// A core is what all loggers share that With made of one: where events go, and how they are made.
// All but what says otherwise is set before the first event and not changed after.
type core struct {
	to appender

	tag    string
	tagged []byte             // what stands before the record of an event under tag
	heads  [len(named)][]byte // tagged, and the record's beginning up to the message, for each named level
	prefix []byte             // the default fields, for the summary event
	pairs  int                // of prefix
	unique record.Keys        // of prefix: fields of these names from elsewhere take their place
	looks  bool               // leveled events may have such fields that are no attributes of the call

	level        *slog.LevelVar
	keep         *slog.LevelVar
	source       Source
	replace      func([]string, slog.Attr) slog.Attr
	contextAttrs func(context.Context, []slog.Attr) []slog.Attr
	slow         bool // there is a source or contextAttrs
	sampler      *sampler
	exit         func(int)
	lastWords    time.Duration // the constant, but in tests

	opened      atomic.Pointer[appender] // to, once Open has it: for those that may ask earlier
	place       string                   // the destination without its settings
	dir         string                   // Options.Dir
	fallback    *core                    // where ErrorHandler leads, if it is one of FallbackTo
	lineMax     int                      // longest line of a Writer
	encoders    sync.Pool                // of *encoder
	sources     sourceCache
	diagnostics *diagnostics
	breakers    breakers
	rests       rests
	ending      ending
}

// newCore makes a core that has everything but a place to put events, and the first logger of it.
func newCore(o *Options, place string) *Logger {
	c := &core{
		place:        place,
		dir:          o.Dir,
		tag:          o.Tag,
		tagged:       window.AppendPayload(nil, o.Tag),
		level:        levelVar(o.Level, slog.LevelInfo),
		keep:         levelVar(o.Keep, never),
		source:       o.Source,
		replace:      o.ReplaceAttr,
		contextAttrs: o.ContextAttrs,
		slow:         o.Source != NoSource || o.ContextAttrs != nil,
		sampler:      newSampler(o.Sample),
		exit:         o.Exit,
		lastWords:    lastWords,
		lineMax:      max(min(maxLine, o.MaxEvent/2), 1),
		diagnostics:  newDiagnostics(o.Diagnostics, place),
	}
	for i := range c.heads {
		c.heads[i] = c.appendHead(nil, LevelTrace+slog.Level(i*apart))
	}
	c.encoders.New = func() any { return &encoder{buf: make([]byte, 0, 1024)} }
	l := (&Logger{c: c, level: c.level, scope: scope{lastWins: o.LastWins}}).With(o.fields()...)
	c.prefix, c.pairs, c.unique = l.prefix, l.pairs, record.KeysOf(l.prefix)
	c.looks = c.replace != nil || c.contextAttrs != nil ||
		c.unique.HasAny([]slog.Attr{{Key: slog.LevelKey}, {Key: slog.MessageKey}, {Key: slog.SourceKey}})
	l.defaults = len(l.prefix)
	return l
}

// append hands an event on.
func (c *core) append(ctx context.Context, e *encoder, t int64, keep bool, payload []byte) error {
	err := c.to.Append(ctx, &e.hint, t, keep, payload)
	if err != nil && errors.Is(err, ErrFull) {
		c.full(err)
	}
	return err
}

// keepsPosts reports whether what is posted waits for room.
func (c *core) keepsPosts() bool { return slog.LevelInfo >= c.keep.Level() }

// summary appends an event that tells what was dropped.
//
//	{"level":"WARN","msg":"events dropped", …default fields…, "dropped":{"full":12,"sampled":300}}
func (c *core) summary(b []byte, missed mover.Missed) []byte {
	start := len(b)
	b = c.head(b, slog.LevelWarn)
	at := start + len(c.tagged)
	b = msgpack.AppendString(b, "events dropped")
	from := len(b)
	b = append(b, c.prefix...)
	to := len(b)
	b = msgpack.AppendString(b, "dropped")
	b, dropped := record.BeginMap(b, wide)
	n := 0
	for reason, count := range missed {
		if count > 0 {
			b = msgpack.AppendString(b, mover.Reason(reason).String())
			b = msgpack.AppendUint(b, count)
			n++
		}
	}
	b = record.EndMap(b, dropped, n)
	first := at + wideHeader
	rest, gone := record.DropShadowed(b[first:], from-first, to-first)
	return record.EndMap(b[:first+len(rest)], at, 2+c.pairs+1-gone)
}
