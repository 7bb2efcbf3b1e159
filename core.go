// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/msgpack"
)

// A core is what all loggers share that With made of one: where events go, and how they are made.
// All but what says otherwise is set before the first event and not changed after.
type core struct {
	mover  *mover.Mover // where events go …
	events *TestEvents  // … unless they go here, in tests

	tag    string
	tagged []byte             // what stands before the record of an event under tag
	heads  [len(named)][]byte // tagged, and the record's beginning up to the message, for each named level
	prefix []byte             // the default fields, for the summary event
	pairs  int                // of prefix
	unique record.Keys        // of prefix: fields of these names from elsewhere take their place
	looks  bool               // leveled events may have such fields that are no attributes of the call
	last   bool               // Options.LastWins

	level        *slog.LevelVar
	keep         *slog.LevelVar
	source       Source
	replace      func([]string, slog.Attr) slog.Attr
	contextAttrs func(context.Context, []slog.Attr) []slog.Attr
	slow         bool // there is a source or contextAttrs
	sampler      *sampler
	exit         func(int)
	lastWords    time.Duration // the constant, but in tests

	place    string    // the destination without its settings
	fallback *core     // where ErrorHandler leads, if it is one of FallbackTo
	lineMax  int       // longest line of a Writer
	encoders sync.Pool // of *encoder
	places   places
	troubles *troubles
	breakers breakers
	rests    rests
	ending   ending
}

// newCore makes a core that has everything but a place to put events, and the first logger of it.
func newCore(o *Options) *Logger {
	c := &core{
		tag:          o.Tag,
		tagged:       mover.AppendPayload(nil, o.Tag),
		level:        levelVar(o.Level, slog.LevelInfo),
		keep:         levelVar(o.Keep, never),
		source:       o.Source,
		replace:      o.ReplaceAttr,
		contextAttrs: o.ContextAttrs,
		slow:         o.Source != NoSource || o.ContextAttrs != nil,
		sampler:      newSampler(o.Sample),
		exit:         o.Exit,
		lastWords:    lastWords,
		last:         o.LastWins,
		lineMax:      max(min(maxLine, o.MaxEvent/2), 1),
		troubles:     newTroubles(o.Diagnostics),
	}
	for i := range c.heads {
		c.heads[i] = c.appendHead(nil, LevelTrace+slog.Level(i*apart))
	}
	c.encoders.New = func() any { return &encoder{buf: make([]byte, 0, 1024)} }
	l := (&Logger{c: c, level: c.level}).With(o.fields()...)
	c.prefix, c.pairs, c.unique = l.prefix, l.pairs, record.KeysOf(l.prefix)
	c.looks = c.replace != nil || c.contextAttrs != nil ||
		c.unique.HasAny([]slog.Attr{{Key: slog.LevelKey}, {Key: slog.MessageKey}, {Key: slog.SourceKey}})
	l.defaults = len(l.prefix)
	return l
}

// append hands an event on: b is what stands before the record, up to at, and the record.
func (c *core) append(ctx context.Context, e *encoder, tag string, at int, t int64, keep bool, b []byte) error {
	if c.mover == nil {
		return c.events.add(tag, t, b[at:])
	}
	if err := c.mover.Append(ctx, &e.hint, t, keep, b); err != nil {
		if err = ours(err); errors.Is(err, ErrFull) {
			c.troubles.full()
		}
		return err
	}
	return nil
}

// keepsPosts reports whether what is posted waits for room.
func (c *core) keepsPosts() bool { return slog.LevelInfo >= c.keep.Level() }

// leftOut counts an event that sampling left out.
func (c *core) leftOut() {
	if c.mover == nil {
		c.events.sampled.Add(1)
		return
	}
	c.mover.Drop(mover.Sampled, 1)
}

// summary appends an event that tells what was dropped.
//
//	{"level":"WARN","msg":"events dropped", …default fields…, "dropped":{"full":12,"sampled":300}}
func (c *core) summary(b []byte, drops mover.Drops) []byte {
	start := len(b)
	b = c.head(b, slog.LevelWarn)
	at := start + len(c.tagged)
	b = msgpack.AppendString(b, "events dropped")
	b = append(b, c.prefix...)
	b = msgpack.AppendString(b, "dropped")
	b, dropped := record.BeginMap(b, wide)
	n := 0
	for reason, count := range drops {
		if count > 0 {
			b = msgpack.AppendString(b, mover.Reason(reason).String())
			b = msgpack.AppendUint(b, count)
			n++
		}
	}
	b = record.EndMap(b, dropped, n)
	return record.EndMap(b, at, 2+c.pairs+1)
}
