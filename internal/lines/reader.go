// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// ReadOptions says what of its event a line says. The zero value works: neither the time nor the
// tag.
type ReadOptions struct {
	Time       string // key of the time; empty or Omit: there is none
	TimeFormat string // as in Options
	Tag        string // key of the tag; empty or Omit: there is none

	NamedTag bool   // an empty text is no tag: it cannot be read
	Drop     string // key that is left out of records, all of its members; empty: there is none

	Text string // key of a line that is text; default "message"
	// How many objects and arrays may stand in each other, the record counted; default
	// msgpack.DefaultDepth.
	Depth int

	// EventTime is for receivers that know no times but those of EventTime, 1970 to 2106: others
	// cannot be read.
	EventTime bool
}

// A Reader reads lines as events: what an Encoder writes, what other loggers write as JSON, and
// text. It keeps its buffers, and is not for several goroutines at once. The zero value has the
// default options.
type Reader struct {
	options ReadOptions // resolved: an empty name is none
	format  timeFormat
	tag     []byte
}

// An Event is what a line says besides its record.
type Event struct {
	Sec  int64 // since 1970, if Time is Said
	Nsec uint32
	Tag  []byte // if Tagged is Said; valid until the next call

	Time, Tagged Finding

	Broken error // why a line that begins as an object does is text
}

// A Finding is what came of looking for something in a line.
type Finding uint8

// What is looked for is:
const (
	FindingAbsent     Finding = iota // the line has no such key
	FindingUnreadable                // it has: the record keeps what cannot be read
	FindingSaid                      // it was read, and is not in the record
)

// NewReader returns a Reader with options; nil is the default ones. The error wraps ErrKey or
// ErrTimeFormat.
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

// AppendRecord appends the record of a line, which has no newline: a JSON object is the record, any
// other line is text. The object's first member of each key that can be read as the time, or the
// tag, is taken out.
func (r *Reader) AppendRecord(dst, line []byte) ([]byte, Event) {
	object := trim(line)
	if len(object) == 0 || object[0] != '{' {
		return r.AppendText(dst, line), Event{}
	}
	err := errNoEnd
	if object[len(object)-1] == '}' && len(object) > 1 {
		out, e, broken := r.appendObject(dst, object)
		if broken == nil {
			return out, e
		}
		err = broken
	}
	return r.AppendText(dst, line), Event{Broken: err}
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

// A Format says how lines are read.
type Format uint8

// Lines are read as:
const (
	FormatJSON     Format = iota // objects, and text where they are none
	FormatLogfmt                 // pairs, and text where they are none
	FormatVerbatim               // text
)

// AppendEntry appends the entry of a line, [time, record]. Its time is now unless the line says
// another one.
func (r *Reader) AppendEntry(dst, line []byte, now time.Time) ([]byte, Event) {
	return r.AppendEntryAs(FormatJSON, dst, line, now)
}

// AppendEntryAs appends the entry of a line of a format.
func (r *Reader) AppendEntryAs(f Format, dst, line []byte, now time.Time) ([]byte, Event) {
	dst = msgpack.AppendArrayHeader(dst, 2)
	at := len(dst)
	dst = forward.AppendEventTime(dst, now.Unix(), uint32(now.Nanosecond()))
	behind := len(dst)
	var e Event
	switch f {
	case FormatLogfmt:
		dst, e = r.AppendLogfmt(dst, line)
	case FormatVerbatim:
		dst = r.AppendText(dst, line)
	default:
		dst, e = r.AppendRecord(dst, line)
	}
	switch {
	case e.Time != FindingSaid:
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

var (
	errNoObject = errors.New("no single object")
	errNoEnd    = errors.New("an object without its end")
)

// appendObject appends what is one JSON object, and nothing else.
func (r *Reader) appendObject(b, object []byte) ([]byte, Event, error) {
	var e Event
	start := len(b)
	b = append(b, 0)
	n := 0
	rest := trim(object[1:])
	for ; len(rest) > 0 && rest[0] != '}'; n++ {
		pair := len(b)
		out, at, from, size, err := msgpack.AppendFromJSONMember(b, rest)
		if err != nil {
			return b, e, err
		}
		b = out
		if err := r.checkDepth(b[at:]); err != nil {
			return b, e, err
		}
		raw := rest[from:size]
		if rest = trim(rest[size:]); len(rest) > 1 && rest[0] == ',' {
			if rest = trim(rest[1:]); rest[0] == '}' {
				return b, e, errNoObject
			}
		} else if len(rest) != 1 || rest[0] != '}' {
			return b, e, errNoObject
		}
		if r.envelope(&e, b[pair:at], raw, b[at:]) {
			b = b[:pair]
			n--
		}
	}
	if len(rest) != 1 {
		return b, e, errNoObject
	}
	return mapHeader(b, start, n), e, nil
}

// mapHeader puts the header of a map of n pairs in the place of the byte at start.
func mapHeader(b []byte, start, n int) []byte {
	var buf [5]byte
	header := msgpack.AppendMapHeader(buf[:0], n)
	if len(header) == 1 {
		b[start] = header[0]
		return b
	}
	return slices.Replace(b, start, start+1, header...)
}

// envelope takes the time or the tag from a member, and returns whether the record lacks it: since
// it was that, or is to be dropped.
func (r *Reader) envelope(e *Event, key, raw, value []byte) bool {
	if r.options.Time == "" && r.options.Tag == "" && r.options.Drop == "" {
		return false
	}
	name, _, _, err := msgpack.ReadBytes(key)
	if err != nil || len(name) == 0 {
		return false
	}
	switch {
	case string(name) == r.options.Time && e.Time != FindingSaid:
		if r.readTime(e, raw, value); e.Time == FindingSaid {
			return true
		}
	case string(name) == r.options.Tag && e.Tagged != FindingSaid:
		if r.readTag(e, value); e.Tagged == FindingSaid {
			return true
		}
	}
	return string(name) == r.options.Drop
}

// checkDepth looks at a member's value.
func (r *Reader) checkDepth(value []byte) error {
	if r.options.Depth == 0 || r.options.Depth == msgpack.DefaultDepth { // it was read so
		return nil
	}
	t, _, err := msgpack.ReadToken(value)
	if err != nil || t.Kind != msgpack.KindArray && t.Kind != msgpack.KindMap {
		return err
	}
	if r.options.Depth == 1 {
		return msgpack.ErrDepth
	}
	_, err = msgpack.Limits{Depth: r.options.Depth - 1}.Skip(value)
	return err
}

// readTime reads the time from a value as it stands in the line, and as it was appended.
func (r *Reader) readTime(e *Event, raw, value []byte) {
	text, _, _, err := msgpack.ReadBytes(value)
	sec, nsec, ok := r.format.read(raw, text, err == nil)
	switch {
	case !ok, sec == 0 && nsec == 0, // which means now to each receiver (docs/forward.md rule 11)
		r.options.EventTime && !isEventTime(sec),
		nsec > 0 && (sec < -maxFloat || sec >= maxFloat): // it would have to be a float
		e.Time = FindingUnreadable
	default:
		e.Time, e.Sec, e.Nsec = FindingSaid, sec, nsec
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
	if err != nil || len(tag) > forward.MaxTag || len(tag) == 0 && r.options.NamedTag {
		e.Tagged = FindingUnreadable
		return
	}
	r.tag = append(r.tag[:0], tag...)
	e.Tagged, e.Tag = FindingSaid, r.tag
}

// WholeRunes returns how much of b, which is not empty, ends with a whole rune.
func WholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back < len(b); back++ {
		if i := len(b) - back; utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}
