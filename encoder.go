// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"log/slog"

	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/ring"
)

// What a ring is given for one event is made in one buffer, in one go:
//
//	┌─────┬────────────┬────────────────────────┬───────────┬──────────────────┐
//	│ tag │ map header │ level, msg, source …   │ prefix    │ attributes       │
//	└─────┴────────────┴────────────────────────┴───────────┴──────────────────┘
//	 └── made in Open, for each level ──┘         made in With, groups opened
//	       └─ patched once the pairs are counted     └─ the headers of open groups, too
//
// The header of the record and those of open groups are always written in the form with a count of
// 16 bits, so that nothing moves when the count is known.

// An encoder is the buffer of one call, and the ring's memory of where the last call with it wrote.
type encoder struct {
	buf   []byte
	hint  ring.Hint
	attrs []slog.Attr // what ContextAttrs appends to: no more than its capacity is ours
}

// maxPooled is the largest buffer that goes back to the pool: one event of a megabyte must not hold
// a megabyte for ever.
const maxPooled = 64 << 10

func (c *core) encoder() *encoder { return c.encoders.Get().(*encoder) }

// done gives an encoder back, with the buffer b that grew from its own.
func (c *core) done(e *encoder, b []byte) {
	if cap(b) > maxPooled {
		b = nil
	}
	e.buf = b[:0]
	c.encoders.Put(e)
}

// wide is the number of pairs that BeginMap makes a header with a count of 16 bits for.
const wide = 16

// wideHeader is the bytes of such a header.
const wideHeader = 3

// head returns the beginning of a leveled event up to its message, for one of the named levels or
// any other.
func (c *core) head(b []byte, level slog.Level) []byte {
	if i, ok := nth(level); ok {
		return append(b, c.heads[i]...)
	}
	return c.appendHead(b, level)
}

func (c *core) appendHead(b []byte, level slog.Level) []byte {
	b = append(b, c.tagged...)
	b, _ = record.BeginMap(b, wide)
	b = msgpack.AppendString(b, slog.LevelKey)
	var t [maxLevelText]byte
	name := appendLevelText(t[:0], level)
	b = append(msgpack.AppendStringHeader(b, len(name)), name...)
	return msgpack.AppendString(b, slog.MessageKey)
}

// emit logs one leveled event. pc is the place of the call, or 0; more are further attributes.
func (l *Logger) emit(ctx context.Context, level slog.Level, t int64, pc uintptr, msg string, attrs,
	more []slog.Attr,
) error {
	c := l.c
	if c.sampler != nil && !c.sampler.pass(level, msg) {
		c.to.Miss(mover.Sampled, 1)
		return nil
	}
	e := c.encoder()
	b, n := e.buf[:0], 2
	if c.replace == nil {
		b = c.head(b, level)
		b = msgpack.AppendString(b, msg)
	} else {
		b, n = c.replacedHead(b, level, msg)
	}
	if c.slow {
		var k int
		b, k = c.appendMore(ctx, b, e, pc)
		n += k
	}
	b, s := l.open(b)
	s.shadowed = c.looks && l.defaults > 0
	var k int
	for {
		var some int
		if c.replace == nil {
			b, some = record.AppendAttrs(b, attrs)
			s.shadowed = s.shadowed || l.defaults > 0 && c.unique.HasAny(attrs)
		} else {
			b, some = record.AppendAttrsReplaced(b, l.groups, attrs, c.replace)
		}
		k += some
		if len(more) == 0 {
			break
		}
		attrs, more = more, nil
	}
	b = l.finish(s, b, len(c.tagged), n, k)
	err := c.append(ctx, e, t, level >= c.keep.Level(), b)
	c.done(e, b)
	return err
}

// appendMore appends what only some loggers have: the source and the attributes of the context.
func (c *core) appendMore(ctx context.Context, b []byte, e *encoder, pc uintptr) (_ []byte, n int) {
	if c.source != NoSource && pc != 0 {
		b, n = c.appendSource(b, pc)
	}
	if c.contextAttrs == nil {
		return b, n
	}
	attrs := c.fromContext(ctx, e.attrs)
	var k int
	if c.replace == nil {
		b, k = record.AppendAttrs(b, attrs)
	} else {
		b, k = record.AppendAttrsReplaced(b, nil, attrs, c.replace)
	}
	clear(e.attrs[:min(len(attrs), cap(e.attrs))])
	if len(attrs) > cap(e.attrs) && len(attrs) <= 64 {
		e.attrs = make([]slog.Attr, 0, len(attrs)) // not what it returned, which may be a slice that it keeps
	}
	return b, n + k
}

// fromContext calls the extractor; a panic of it becomes an attribute.
func (c *core) fromContext(ctx context.Context, attrs []slog.Attr) (out []slog.Attr) {
	defer func() {
		if v := recover(); v != nil {
			out = append(attrs[:0], slog.String("context", record.PanicText(v)))
		}
	}()
	return c.contextAttrs(ctx, attrs)
}

// replacedHead is head and the message for a logger with ReplaceAttr.
func (c *core) replacedHead(b []byte, level slog.Level, msg string) (_ []byte, n int) {
	b = append(b, c.tagged...)
	b, _ = record.BeginMap(b, wide)
	a := c.replace(nil, slog.Any(slog.LevelKey, level))
	if l, ok := a.Value.Any().(slog.Level); ok {
		a.Value = slog.StringValue(levelText(l))
	}
	b, n = record.AppendAttr(b, a)
	b, k := record.AppendAttr(b, c.replace(nil, slog.String(slog.MessageKey, msg)))
	return b, n + k
}
