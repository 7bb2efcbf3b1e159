// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/ring"
)

// Post logs v, a struct, a map, a pointer to one, or attributes, as an event of its own, under a
// tag that stands as it is given: nothing is put before it. The record is the default fields and
// those of With, then the fields of v, in the open group if there is one; no level and no message.
// The level of the logger does not hold for Post; where Keep matters, it counts as Info.
//
// The error is nil when the event was accepted, else it wraps ErrNotRecord, ErrTag, ErrTooLarge,
// ErrFull or ErrClosed. With Options.WaitDelivered it is nil when the event was delivered, and an
// event that was accepted may have the errors ErrTimeout, ErrDropped and ErrUndelivered.
//
// Fields of structs are named by their tags `log:"name,omitempty"`, else `json:"name"`, else as
// they are; embedded structs are flattened as encoding/json does it.
func (l *Logger) Post(tag string, v any) error {
	return l.post(context.Background(), tag, ring.Now, v)
}

// PostContext is Post that waits, where Options say that it may, no longer than ctx lives.
// Options.ContextAttrs is not asked: it is for leveled events.
func (l *Logger) PostContext(ctx context.Context, tag string, v any) error {
	if ctx == nil {
		ctx = context.Background()
	}
	return l.post(ctx, tag, ring.Now, v)
}

// PostWithTime is Post with the time of the event. The zero time is stored as 0, which receivers
// take for their own now.
func (l *Logger) PostWithTime(tag string, t time.Time, v any) error {
	return l.post(context.Background(), tag, nanos(t), v)
}

func (l *Logger) post(ctx context.Context, tag string, t int64, v any) error {
	if l.off() {
		return nil
	}
	if len(tag) > forward.MaxTag {
		return tagError(tag)
	}
	c := l.c
	e := c.encoder()
	b := window.AppendPayload(e.buf[:0], tag)
	at := len(b)
	var err error
	if len(l.prefix) == 0 && len(l.groups) == 0 && !l.lastWins {
		b, err = record.AppendMap(b, v)
	} else {
		b, err = l.postInto(b, at, func(b []byte) ([]byte, error) { return record.AppendMap(b, v) })
	}
	if err == nil {
		err = c.append(ctx, e, t, c.keepsPosts(), b)
	} else {
		err = fmt.Errorf("%w: %T", err, v)
	}
	c.done(e, b)
	return err
}

// postInto writes a record that begins with the prefix. fields appends a map, the pairs of which
// belong behind it.
func (l *Logger) postInto(b []byte, at int, fields func([]byte) ([]byte, error)) ([]byte, error) {
	b, _ = record.BeginMap(b, wide)
	b, s := l.open(b)
	from := len(b)
	b, err := fields(b)
	if err != nil {
		return b, err
	}
	k, n, err := msgpack.ReadToken(b[from:])
	if err != nil {
		return b, err
	}
	b = append(b[:from], b[from+n:]...)
	s.shadowed = l.defaults > 0
	return l.finish(s, b, at, 0, k.Len), nil
}

// PostRaw logs a record that is MessagePack already: one map and nothing behind it. It is copied;
// no fields are added.
func (l *Logger) PostRaw(tag string, t time.Time, rec []byte) error {
	if l.off() {
		return nil
	}
	return l.postRaw(tag, nanos(t), rec)
}

func (l *Logger) postRaw(tag string, t int64, rec []byte) error {
	if len(tag) > forward.MaxTag {
		return tagError(tag)
	}
	if _, _, err := mapPairs(rec); err != nil {
		return err
	}
	c := l.c
	e := c.encoder()
	b := append(window.AppendPayload(e.buf[:0], tag), rec...)
	err := c.append(context.Background(), e, t, c.keepsPosts(), b)
	c.done(e, b)
	return err
}

// mapPairs returns the pairs of what is to be a single map, without its header, and how many they
// are.
func mapPairs(rec []byte) (pairs []byte, n int, err error) {
	k, header, err := msgpack.ReadToken(rec)
	if err != nil || k.Kind != msgpack.KindMap {
		return nil, 0, fmt.Errorf("%w: no MessagePack map", ErrNotRecord)
	}
	if end, err := msgpack.Skip(rec); err != nil || end != len(rec) {
		return nil, 0, fmt.Errorf("%w: no single MessagePack map", ErrNotRecord)
	}
	return rec[header:], k.Len, nil
}
