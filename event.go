// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"log/slog"
	"strings"
	"time"
	"unsafe"

	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/ring"
)

// An Event is a leveled event that another logger has made: what an adapter hands on.
type Event struct {
	Time    time.Time // the zero time: that of the call of LogEvent
	Level   slog.Level
	Message string
	Text    []byte // the message, instead of Message, if it is not nil

	// The place of the call, which stands in the event; the whole path only with LongSource.
	File string
	Line int
	// Depth says where the place is if File does not, and Options.Source asks for it: 1 is the
	// function that calls LogEvent, 2 the one that calls that.
	Depth int

	Attrs []slog.Attr // as those of a call
	// Fields are further ones: nothing, or one MessagePack map. Like what Post is given they are
	// not shown to Options.ReplaceAttr.
	Fields []byte
}

// LogEvent logs an event with its own time, if its level is logged. The event is read only during
// the call, and not changed. ctx is as in [Logger.Log]. The errors are those of [Logger.Post];
// ErrNotRecord says that Fields are not what they should be.
func (l *Logger) LogEvent(ctx context.Context, ev *Event) error {
	if ev == nil || !l.Enabled(ev.Level) {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	c := l.c
	text := ev.Message
	if ev.Text != nil {
		text = unsafe.String(unsafe.SliceData(ev.Text), len(ev.Text)) // kept by nothing below
	}
	if c.sampler != nil && !c.sampler.pass(ev.Level, text) {
		c.to.Miss(mover.Sampled, 1)
		return nil
	}
	var fields []byte
	var pairs int
	if len(ev.Fields) > 0 {
		var err error
		if fields, pairs, err = mapPairs(ev.Fields); err != nil {
			return err
		}
	}
	e := c.encoder()
	b, n := e.buf[:0], 2
	if c.replace == nil {
		b = msgpack.AppendString(c.head(b, ev.Level), text)
	} else {
		b, n = c.replacedHead(b, ev.Level, strings.Clone(text)) // which others may keep
	}
	var pc uintptr
	var k int
	if ev.File != "" {
		b, k = c.appendFrame(b, &slog.Source{File: ev.File, Line: ev.Line})
		n += k
	} else if ev.Depth > 0 && c.source != NoSource {
		pc = caller(ev.Depth)
	}
	if c.slow {
		b, k = c.appendMore(ctx, b, e, pc)
		n += k
	}
	b, s := l.open(b)
	s.shadowed = l.defaults > 0
	if c.replace == nil {
		b, k = record.AppendAttrs(b, ev.Attrs)
	} else {
		b, k = record.AppendAttrsReplaced(b, l.groups, ev.Attrs, c.replace)
	}
	b = append(b, fields...)
	b = l.finish(s, b, len(c.tagged), n, k+pairs)
	t := int64(ring.Now)
	if !ev.Time.IsZero() {
		t = nanos(ev.Time)
	}
	err := c.append(ctx, e, t, ev.Level >= c.keep.Level(), b)
	c.done(e, b)
	return err
}

// AppendValue appends v as MessagePack, as fields and attributes are written: what [Logger.Post]
// says of structs holds. A value that cannot be written is a text that says so. Nothing of v is
// kept.
func AppendValue(dst []byte, v any) []byte { return record.AppendValue(dst, v) }
