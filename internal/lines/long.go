// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bufio"
	"bytes"
	"io"
	"strconv"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// longBuffer is how much of a long line is in memory.
const longBuffer = 256 << 10

// A Record reads the record of an event from its start, each time anew.
type Record func() (io.ReadCloser, error)

// WriteLong writes the line of an event that is too long for memory, a piece at a time. It is the
// line that AppendLine appends, but for keys that are arrays or maps and longer than 64 KiB: see
// msgpack.WriteJSONPairs. The error is that of w or of the record; then a part of the line may be
// written.
func (e *Encoder) WriteLong(w io.Writer, tag string, l *forward.Long, record Record) error {
	b := bufio.NewWriterSize(w, longBuffer)
	head, names := e.appendHead(nil, tag, l.Sec, l.Nsec, l.Meta)
	b.Write(head) //nolint:errcheck // the Writer keeps it
	if err := msgpack.WriteJSONPairs(b, record, names, forward.AppendExtJSON); err != nil {
		return err
	}
	b.WriteString("}\n") //nolint:errcheck // the Writer keeps it
	return b.Flush()
}

// WriteLong writes the line of an event that is too long for memory, a piece at a time. It is the
// line that AppendLine appends, but that a text of more than 64 KiB is always in quotes unless it
// is the message or the source, of which all is written, and that groups in which such stands are
// written as lists. The error is that of w or of the record; then a part of the line may be
// written.
func (t *Text) WriteLong(w io.Writer, tag string, l *forward.Long, record Record) error {
	x := longText{t: t, w: bufio.NewWriterSize(w, longBuffer), record: record}
	if err := x.line(tag, l); err != nil {
		return err
	}
	return x.w.Flush()
}

// longText writes one long line. The record is read once to find the parts, once for each part that
// is long, and once for the attributes.
type longText struct {
	t      *Text
	w      *bufio.Writer
	record Record
	s      *msgpack.Stream
	room   []byte
}

// longParts is what parts is of a record that is short.
type longParts struct {
	n                      int
	level, message, source part
	lead                   int // pairs at the start that are parts
}

// A part is a text that stands before the attributes: in memory, or found again by its place.
type part struct {
	at   int // which pair; -1: there is none
	text []byte
	long int // bytes of one that is not in text
}

func (x *longText) line(tag string, l *forward.Long) error {
	flags := x.t.flags
	if flags == 0 {
		flags = StdFlags
	}
	p, err := x.parts()
	if err != nil {
		return err
	}
	if flags.has(Date|Time|Micros) && (l.Sec != 0 || l.Nsec != 0) {
		x.w.Write(x.t.appendClock(nil, flags, l.Sec, l.Nsec)) //nolint:errcheck // the Writer keeps it, here and below
	}
	if p.level.at >= 0 && flags.has(Level) {
		if p.level.long > 0 {
			if err := x.part(&p.level, true); err != nil {
				return err
			}
		} else {
			x.w.Write(x.t.appendLevel(nil, p.level.text)) //nolint:errcheck // kept
		}
		x.w.WriteByte(' ') //nolint:errcheck // kept
	}
	if flags.has(Tag) {
		x.w.Write(append(appendWord(nil, []byte(tag), false), ' ')) //nolint:errcheck // kept
	}
	if p.source.at >= 0 && flags.has(Source|ShortSource) {
		if flags.has(ShortSource) {
			p.source.text = p.source.text[bytes.LastIndexAny(p.source.text, `/\`)+1:]
		}
		if err := x.part(&p.source, false); err != nil {
			return err
		}
		x.w.WriteString(": ") //nolint:errcheck // kept
	}
	first := true // attribute
	if p.message.at >= 0 {
		if err := x.part(&p.message, false); err != nil {
			return err
		}
		first = false
	}
	if err := x.attributes(&p, first); err != nil {
		return err
	}
	return x.w.WriteByte('\n')
}

// open begins to read the record, and returns how many pairs it has.
func (x *longText) open() (n int, done func(), err error) {
	r, err := x.record()
	if err != nil {
		return 0, nil, err
	}
	x.s = msgpack.NewStream(r)
	t, err := x.s.Token()
	if err == nil && t.Kind != msgpack.KindMap {
		err = msgpack.ErrKind
	}
	if err != nil {
		r.Close()
		return 0, nil, err
	}
	return t.Len, func() { r.Close() }, nil
}

// parts finds what stands before the attributes, as partsOf does.
func (x *longText) parts() (p longParts, err error) {
	n, done, err := x.open()
	if err != nil {
		return p, err
	}
	defer done()
	p.n = n
	none := part{at: -1}
	p.level, p.message, p.source = none, none, none
	other := none // the message of a record that is no leveled call's
	leads := true
	for i := range n {
		key, _ := x.s.Value()
		name, k := readText(key)
		if key == nil {
			if err := x.s.CopyValue(io.Discard); err != nil {
				return p, err
			}
		}
		value := part{at: -1}
		if k > 0 && (leads && i < 3 || string(name) == "msg" || string(name) == "message") {
			name := string(name) // the window moves
			if value, err = x.text(i); err != nil {
				return p, err
			}
			leads = leads && i < 3 && value.at >= 0 && p.take(name, value)
			if other.at < 0 && (name == "msg" || name == "message") {
				other = value
			}
		} else {
			leads = false
			if err := x.s.CopyValue(io.Discard); err != nil {
				return p, err
			}
		}
		if leads {
			p.lead = i + 1
		} else if p.level.at >= 0 && p.message.at >= 0 {
			break
		}
	}
	if p.level.at < 0 || p.message.at < 0 {
		p.level, p.source, p.message, p.lead = none, none, other, 0
	}
	return p, nil
}

// take takes a part of a leveled call.
func (p *longParts) take(name string, value part) bool {
	for _, place := range []struct {
		name string
		part *part
	}{{"level", &p.level}, {"msg", &p.message}, {"source", &p.source}} {
		if name == place.name && place.part.at < 0 {
			*place.part = value
			return true
		}
	}
	return false
}

// text reads the value of pair i, if that is a text, or steps over it.
func (x *longText) text(i int) (part, error) {
	if b, ok := x.s.Value(); ok {
		if text, n := readText(b); n > 0 {
			return part{at: i, text: bytes.Clone(text)}, nil
		}
		return part{at: -1}, nil
	}
	t, err := x.s.Token()
	if err != nil {
		return part{}, err
	}
	if t.Kind == msgpack.KindStr {
		return part{at: i, long: t.Len}, x.pass(t.Len)
	}
	return part{at: -1}, x.rest(t)
}

// pass goes over n bytes of a payload.
func (x *longText) pass(n int) error {
	for n > 0 {
		b, err := x.s.Payload(n, false)
		if err != nil {
			return err
		}
		n -= len(b)
	}
	return nil
}

// rest goes over what follows a token of its value.
func (x *longText) rest(t msgpack.Token) error {
	n := t.Len
	switch t.Kind {
	case msgpack.KindBin, msgpack.KindExt:
		return x.pass(n)
	case msgpack.KindMap:
		n *= 2
	case msgpack.KindArray:
	default:
		return nil
	}
	for range n {
		if err := x.s.CopyValue(io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// part writes a part, wherever it stands.
func (x *longText) part(p *part, quoted bool) error {
	if p.long == 0 {
		_, err := x.w.Write(appendEscaped(nil, p.text, quoted))
		return err
	}
	_, done, err := x.open()
	if err != nil {
		return err
	}
	defer done()
	for range 2*p.at + 1 {
		if err := x.s.CopyValue(io.Discard); err != nil {
			return err
		}
	}
	if _, err = x.s.Token(); err != nil {
		return err
	}
	return x.escaped(p.long, quoted)
}

// escaped writes the next n bytes of a payload.
func (x *longText) escaped(n int, quoted bool) error {
	if quoted {
		x.w.WriteByte('"') //nolint:errcheck // kept
	}
	for n > 0 {
		b, err := x.s.Payload(n, true)
		if err != nil {
			return err
		}
		n -= len(b)
		x.room = appendEscaped(x.room[:0], b, quoted)
		if _, err := x.w.Write(x.room); err != nil {
			return err
		}
	}
	if quoted {
		return x.w.WriteByte('"')
	}
	return nil
}

// attributes writes all pairs that are no parts, with a space between them.
func (x *longText) attributes(p *longParts, first bool) error {
	n, done, err := x.open()
	if err != nil {
		return err
	}
	defer done()
	x.t.prefix = x.t.prefix[:0]
	for i := range n {
		if i < p.lead || i == p.message.at {
			for range 2 {
				if err := x.s.CopyValue(io.Discard); err != nil {
					return err
				}
			}
			continue
		}
		if !first {
			x.w.WriteByte(' ') //nolint:errcheck // kept
		}
		first = false
		if err := x.pair(); err != nil {
			return err
		}
	}
	return nil
}

// pair writes the next pair.
func (x *longText) pair() error {
	color := func(s string) {
		if x.t.color {
			x.w.WriteString(s) //nolint:errcheck // kept
		}
	}
	var pair []byte
	if key, ok := x.s.Value(); ok {
		pair = bytes.Clone(key)
		if value, ok := x.s.Value(); ok { // as of a short line
			out, n := x.t.appendPair(x.room[:0], append(pair, value...), len(key), 0)
			if x.room = out; n == 0 {
				return msgpack.ErrInvalid
			}
			_, err := x.w.Write(out[:len(out)-1])
			return err
		}
		color(cyan)
		x.w.Write(appendKey(nil, pair)) //nolint:errcheck // kept
	} else {
		color(cyan)
		if err := x.value(0); err != nil {
			return err
		}
	}
	x.w.WriteByte('=') //nolint:errcheck // kept
	color(plain)
	return x.value(0)
}

// value writes the next value, which stands in depth lists.
func (x *longText) value(depth int) error {
	if b, ok := x.s.Value(); ok {
		out, n := appendValue(x.room[:0], b, depth > 0)
		if x.room = out; n == 0 {
			return msgpack.ErrInvalid
		}
		_, err := x.w.Write(out)
		return err
	}
	t, err := x.s.Token()
	if err != nil {
		return err
	}
	switch t.Kind {
	case msgpack.KindStr, msgpack.KindBin:
		return x.escaped(t.Len, true)
	case msgpack.KindExt:
		x.w.WriteString("ext:" + strconv.Itoa(int(t.Ext)) + ":") //nolint:errcheck // kept
		return x.s.WriteBase64(x.w, t.Len)
	case msgpack.KindArray, msgpack.KindMap:
	default:
		return msgpack.ErrInvalid
	}
	if depth >= msgpack.DefaultDepth {
		return msgpack.ErrDepth
	}
	brackets := "[]"
	if t.Kind == msgpack.KindMap {
		brackets = "{}"
	}
	x.w.WriteByte(brackets[0]) //nolint:errcheck // kept
	for i := range t.Len {
		if i > 0 {
			x.w.WriteByte(',') //nolint:errcheck // kept
		}
		if t.Kind == msgpack.KindMap {
			if err := x.value(depth + 1); err != nil {
				return err
			}
			x.w.WriteByte('=') //nolint:errcheck // kept
		}
		if err := x.value(depth + 1); err != nil {
			return err
		}
	}
	return x.w.WriteByte(brackets[1])
}
