// SPDX-License-Identifier: Apache-2.0

package spillwayzerolog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/msgpack"
)

// lastWords is how long an event that may end the process waits for its delivery.
const lastWords = 5 * time.Second

// A Writer is a logger as zerolog.LevelWriter. [NewWriter] makes it; goroutines may share it.
type Writer struct {
	log *spillway.Logger

	// The names with a meaning of their own, as they stand in a line: "level":
	level, message, time, caller []byte
	format                       string
}

// NewWriter returns a writer that hands events to log, at the levels that log is at.
func NewWriter(log *spillway.Logger) *Writer {
	return &Writer{
		log:     log,
		level:   member(zerolog.LevelFieldName),
		message: member(zerolog.MessageFieldName),
		time:    member(zerolog.TimestampFieldName),
		caller:  member(zerolog.CallerFieldName),
		format:  zerolog.TimeFieldFormat,
	}
}

func member(name string) []byte {
	return append(msgpack.AppendJSONString(nil, []byte(name)), ':')
}

// Write logs a line without a level.
func (w *Writer) Write(line []byte) (int, error) { return w.WriteLevel(zerolog.NoLevel, line) }

// A call is what WriteLevel works in.
type call struct {
	event  spillway.Event
	fields []byte // a map
	n      int
	text   []byte // the message
	rest   []byte // of the line
}

var calls = sync.Pool{New: func() any { return &call{fields: make([]byte, 0, 1024)} }}

// maxPooled is the largest buffer that goes back to the pool.
const maxPooled = 64 << 10

// WriteLevel logs a line. It takes all of it and returns no error.
func (w *Writer) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	l := levelOf(level)
	if !w.log.Enabled(l) {
		return len(line), nil
	}
	c := calls.Get().(*call)
	c.event.Level = l
	err := spillway.ErrNotRecord
	if w.read(c, level, line) {
		c.event.Text, c.event.Fields = c.text, c.fields
		err = w.log.LogEvent(context.Background(), &c.event) // any other error the logger counts and tells
	}
	if errors.Is(err, spillway.ErrNotRecord) { // or it is nested too deep
		_ = w.log.LogEvent(context.Background(), &spillway.Event{Level: l, Text: bytes.TrimSpace(line)})
	}
	c.event, c.rest = spillway.Event{}, nil
	if cap(c.fields)+cap(c.text) <= maxPooled {
		calls.Put(c)
	}
	if level == zerolog.FatalLevel || level == zerolog.PanicLevel {
		_ = w.Close() // what is left by then is for the next process
	}
	return len(line), nil
}

// Close waits until what was logged is delivered, for at most 5 s. The logger stays open.
func (w *Writer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	return w.log.Flush(ctx)
}

// read takes a line apart. It reports whether that is one object.
func (w *Writer) read(c *call, level zerolog.Level, line []byte) bool {
	c.fields, c.text, c.n, c.rest = append(c.fields[:0], 0xde, 0, 0), c.text[:0], 0, line
	if !c.skip('{') {
		return false
	}
	for first := true; !c.skip('}'); first = false {
		if !first && !c.skip(',') {
			return false
		}
		switch {
		case first && level != zerolog.NoLevel && c.is(w.level): // zerolog's own
			at := len(c.fields)
			if !c.value() {
				return false
			}
			c.fields = c.fields[:at]
		case c.is(w.message):
			if !c.special(w.message, (*call).message) {
				return false
			}
		case c.is(w.time):
			if !c.special(w.time, w.when) {
				return false
			}
		case c.is(w.caller):
			if !c.special(w.caller, (*call).place) {
				return false
			}
		default:
			if len(c.rest) == 0 || c.rest[0] != '"' || !c.value() || !c.skip(':') || !c.value() {
				return false
			}
			c.n++
		}
	}
	if c.n <= math.MaxUint16 {
		binary.BigEndian.PutUint16(c.fields[1:], uint16(c.n))
	} else {
		c.fields[0] = 0xdf
		c.fields = slices.Insert(c.fields, 1, 0, 0)
		binary.BigEndian.PutUint32(c.fields[1:], uint32(c.n))
	}
	return len(bytes.TrimSpace(c.rest)) == 0
}

// skip takes a byte, if it is the next one.
func (c *call) skip(b byte) bool {
	if len(c.rest) == 0 || c.rest[0] != b {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// is reports whether a name comes next, which stays.
func (c *call) is(name []byte) bool {
	if len(c.rest) < len(name) || c.rest[1] != name[1] || string(c.rest[:len(name)]) != string(name) {
		return false // by the first letter, as a rule; name has a quote before and behind it
	}
	c.rest = c.rest[len(name):]
	return true
}

// value appends the next value to the fields.
func (c *call) value() bool {
	out, n, err := msgpack.AppendFromJSONText(c.fields, c.rest)
	c.fields, c.rest = out, c.rest[n:]
	return err == nil
}

// special reads the value of a name, which is behind it, for an event. What the event does not take
// stays a field.
func (c *call) special(name []byte, take func(c *call, v []byte) bool) bool {
	start := len(c.fields)
	c.fields, _, _ = msgpack.AppendFromJSONText(c.fields, name) // name is JSON
	at := len(c.fields)
	if !c.value() {
		return false
	}
	if take(c, c.fields[at:]) {
		c.fields = c.fields[:start]
	} else {
		c.n++
	}
	return true
}

func (c *call) message(v []byte) bool {
	s, _, _, err := msgpack.ReadBytes(v)
	if err == nil {
		c.text = append(c.text[:0], s...)
	}
	return err == nil
}

// when takes a time as zerolog writes it.
func (w *Writer) when(c *call, v []byte) bool {
	k, _, err := msgpack.ReadToken(v)
	if err != nil {
		return false
	}
	if k.Kind == msgpack.KindStr {
		s, _, _, err := msgpack.ReadBytes(v)
		if err != nil {
			return false
		}
		t, err := time.Parse(w.format, string(s))
		if err == nil {
			c.event.Time = t
		}
		return err == nil
	}
	n, ok := k.Int()
	if !ok {
		return false
	}
	switch w.format {
	case zerolog.TimeFormatUnix:
		c.event.Time = time.Unix(n, 0)
	case zerolog.TimeFormatUnixMs:
		c.event.Time = time.UnixMilli(n)
	case zerolog.TimeFormatUnixMicro:
		c.event.Time = time.UnixMicro(n)
	case zerolog.TimeFormatUnixNano:
		c.event.Time = time.Unix(0, n)
	default:
		return false
	}
	return true
}

// place takes a caller as zerolog writes it.
func (c *call) place(v []byte) bool {
	s, _, _, err := msgpack.ReadBytes(v)
	if err != nil {
		return false
	}
	colon := bytes.LastIndexByte(s, ':')
	if colon <= 0 {
		return false
	}
	line, err := strconv.Atoi(string(s[colon+1:]))
	if err != nil {
		return false
	}
	c.event.File, c.event.Line = string(s[:colon]), line
	return true
}

func levelOf(l zerolog.Level) slog.Level {
	switch l {
	case zerolog.PanicLevel:
		return slog.LevelError + 2 // below FATAL: a panic may be caught
	case zerolog.FatalLevel:
		return spillway.LevelFatal
	case zerolog.NoLevel:
		return slog.LevelInfo
	case zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel, zerolog.ErrorLevel:
		return 4 * slog.Level(l-zerolog.InfoLevel)
	}
	if l > zerolog.PanicLevel {
		return spillway.LevelFatal
	}
	return spillway.LevelTrace + slog.Level(l-zerolog.TraceLevel)
}
