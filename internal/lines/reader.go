// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// ReadOptions says what of its event a line says. The zero value works: neither the time nor the tag.
type ReadOptions struct {
	Time       string // key of the time; empty or Omit: there is none
	TimeFormat string // as in Options
	Tag        string // key of the tag; empty or Omit: there is none

	Text  string // key of a line that is text; default "message"
	Depth int    // how many objects and arrays may stand in each other, the record counted; default msgpack.DefaultDepth

	// EventTime is for receivers that know no times but those of EventTime, 1970 to 2106: others cannot be read.
	EventTime bool
}

// A Reader reads lines as events: what an Encoder writes, what other loggers write as JSON, and
// text. It keeps its buffers, and is not for several goroutines at once. The zero value has the
// default options.
type Reader struct {
	options ReadOptions // resolved: an empty name is none
	format  timeFormat

	feed bytes.Reader  // what decoder reads: one line
	dec  *json.Decoder // stands behind the end of an object; nil: a line left it somewhere else
	tag  []byte
}

// An Event is what a line says besides its record.
type Event struct {
	Sec  int64 // since 1970, if Time is Said
	Nsec uint32
	Tag  []byte // if Tagged is Said; valid until the next call

	Time, Tagged Finding
}

// A Finding is what came of looking for something in a line.
type Finding uint8

// What is looked for is:
const (
	Absent     Finding = iota // the line has no such key
	Unreadable                // it has: the record keeps what cannot be read
	Said                      // it was read, and is not in the record
)

// NewReader returns a Reader with options; nil is the default ones. The error wraps ErrKey or ErrTimeFormat.
func NewReader(o *ReadOptions) (*Reader, error) {
	r := &Reader{}
	if o != nil {
		r.options = *o
	}
	for _, key := range []*string{&r.options.Time, &r.options.Tag} {
		if *key == Omit {
			*key = ""
		}
	}
	if r.options.Time != "" && r.options.Time == r.options.Tag {
		return nil, fmt.Errorf("%w: %q stands for two things", ErrKey, r.options.Time)
	}
	var err error
	r.format, err = parseTimeFormat(r.options.TimeFormat)
	return r, err
}

// maxKept is the longest line whose buffers are kept for the next one.
const maxKept = 64 << 10

// AppendRecord appends the record of a line, which has no newline: a JSON object is the record, any
// other line is text. The object's first member of each key that can be read as the time, or the
// tag, is taken out.
func (r *Reader) AppendRecord(dst, line []byte) ([]byte, Event) {
	object := trim(line)
	if len(object) < 2 || object[0] != '{' || object[len(object)-1] != '}' {
		return r.AppendText(dst, line), Event{}
	}
	r.feed.Reset(object)
	if r.dec == nil {
		r.dec = json.NewDecoder(&r.feed)
		r.dec.UseNumber()
	}
	out, e, err := r.appendObject(dst, object)
	if err != nil || len(object) > maxKept {
		r.dec = nil
	}
	r.feed.Reset(nil)
	if err != nil {
		return r.AppendText(dst, line), Event{}
	}
	return out, e
}

// trim cuts off what JSON takes for blanks.
func trim(b []byte) []byte {
	blank := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// AppendText appends a record that has the line under one key.
func (r *Reader) AppendText(dst, line []byte) []byte {
	key := r.options.Text
	if key == "" {
		key = "message"
	}
	dst = msgpack.AppendMapHeader(dst, 1)
	dst = msgpack.AppendString(dst, key)
	return append(msgpack.AppendStringHeader(dst, len(line)), line...)
}

// AppendEntry appends the entry of a line, [time, record]. Its time is now unless the line says another one.
func (r *Reader) AppendEntry(dst, line []byte, now time.Time) ([]byte, Event) {
	dst = msgpack.AppendArrayHeader(dst, 2)
	at := len(dst)
	dst = forward.AppendEventTime(dst, now.Unix(), uint32(now.Nanosecond()))
	behind := len(dst)
	dst, e := r.AppendRecord(dst, line)
	switch {
	case e.Time != Said:
	case isEventTime(e.Sec):
		forward.AppendEventTime(dst[:at], e.Sec, e.Nsec)
	default:
		var buf [16]byte
		t := msgpack.AppendInt(buf[:0], e.Sec)
		if e.Nsec > 0 {
			t = msgpack.AppendFloat64(buf[:0], floatTime(e.Sec, e.Nsec))
		}
		dst = slices.Replace(dst, at, behind, t...)
	}
	return dst, e
}

var errNoObject = errors.New("no single object")

// appendObject appends what is one JSON object, and nothing else. After an error the decoder is of no use.
func (r *Reader) appendObject(b, object []byte) ([]byte, Event, error) {
	var e Event
	base := r.dec.InputOffset()
	if _, err := r.dec.Token(); err != nil { // the brace
		return b, e, err
	}
	start := len(b)
	b = append(b, 0)
	n := 0
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return b, e, err
		}
		key, ok := token.(string)
		if !ok {
			return b, e, errNoObject
		}
		pair := len(b)
		b = msgpack.AppendString(b, key)
		at, from := len(b), r.dec.InputOffset()
		if b, err = msgpack.AppendFromJSON(b, r.dec); err != nil {
			return b, e, err
		}
		if err := r.checkDepth(b[at:]); err != nil {
			return b, e, err
		}
		if key == r.options.Time && key != "" && e.Time != Said {
			r.readTime(&e, object[from-base:r.dec.InputOffset()-base], b[at:])
			if e.Time == Said {
				b = b[:pair]
				continue
			}
		}
		if key == r.options.Tag && key != "" && e.Tagged != Said {
			r.readTag(&e, b[at:])
			if e.Tagged == Said {
				b = b[:pair]
				continue
			}
		}
		n++
	}
	if _, err := r.dec.Token(); err != nil {
		return b, e, err
	}
	if r.dec.InputOffset()-base != int64(len(object)) {
		return b, e, errNoObject
	}
	var buf [5]byte
	header := msgpack.AppendMapHeader(buf[:0], n)
	return slices.Replace(b, start, start+1, header...), e, nil
}

// checkDepth looks at a member's value.
func (r *Reader) checkDepth(value []byte) error {
	t, _, err := msgpack.ReadToken(value)
	if err != nil || t.Kind != msgpack.Array && t.Kind != msgpack.Map {
		return err
	}
	depth := r.options.Depth
	if depth == 0 {
		depth = msgpack.DefaultDepth
	}
	if depth == 1 {
		return msgpack.ErrDepth
	}
	_, err = msgpack.Limits{Depth: depth - 1}.Skip(value)
	return err
}

// readTime reads the time from a value as it stands in the line, with what is before it, and as it was appended.
func (r *Reader) readTime(e *Event, raw, value []byte) {
	text, _, _, err := msgpack.ReadBytes(value)
	sec, nsec, ok := r.format.read(trim(bytes.TrimPrefix(trim(raw), []byte{':'})), text, err == nil)
	switch {
	case !ok, sec == 0 && nsec == 0, // which means now to each receiver (docs/forward.md rule 11)
		r.options.EventTime && !isEventTime(sec),
		nsec > 0 && (sec < -maxFloat || sec >= maxFloat): // it would have to be a float
		e.Time = Unreadable
	default:
		e.Time, e.Sec, e.Nsec = Said, sec, nsec
	}
}

// maxFloat is up to where a float has whole seconds; receivers take no time beyond.
const maxFloat = 1 << 53

// floatTime returns a time as a float: the nearest, or the next above it if that one is read as an
// earlier time, of which a format with few digits would write one less.
func floatTime(sec int64, nsec uint32) float64 {
	f := float64(sec) + float64(nsec)/nanos
	whole := math.Floor(f)
	if int64(whole) < sec || int64(whole) == sec && math.Round((f-whole)*nanos) < float64(nsec) {
		f = math.Nextafter(f, math.Inf(1))
	}
	return f
}

// isEventTime reports whether an EventTime can say a second.
func isEventTime(sec int64) bool { return 0 <= sec && sec <= math.MaxUint32 }

// readTag reads the tag from a value as it was appended.
func (r *Reader) readTag(e *Event, value []byte) {
	tag, _, _, err := msgpack.ReadBytes(value)
	if err != nil || len(tag) > forward.MaxTag {
		e.Tagged = Unreadable
		return
	}
	r.tag = append(r.tag[:0], tag...)
	e.Tagged, e.Tag = Said, r.tag
}
