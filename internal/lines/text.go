// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"encoding/base64"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// A Text writes events as lines of text:
//
//	2026/11/21 02:03:04.123456 INFO main.go:12: order placed id=42 user.name="A. Smith"⏎
//	└───────── time ─────────┘ level  source    message     └──── attributes ─────────┘
//
// The level, the source and the message are those of a leveled call, whose record begins with
// "level" and "msg". Of other records the first text under "msg" or "message" is the message, and
// all else attributes. See AppendLine. A Text remembers the time of the event before. The zero
// value has the default options. It is not for several goroutines at once.
type Text struct {
	flags Flags
	color bool

	clock  []byte // 2026/11/21 02:03:04.000000 and a space, of sec
	micros int    // where the six digits stand; 0 if they do not
	sec    int64

	tag    []byte
	prefix []byte // of the keys in nested groups: user.
}

// NewText returns a Text with options; nil is the default ones.
func NewText(o *TextOptions) *Text {
	t := &Text{}
	if o != nil {
		t.flags, t.color = o.Flags, o.Color
	}
	return t
}

// AppendLine appends the line of one event, its newline included. It keeps neither the tag nor the
// entry.
//
// A time of zero is left out. Attributes are written as key=value, those of groups as
// group.key=value. A text is quoted where it would be taken for something else; in quotes,
// backslash and quote are escaped. Everywhere controls, bytes that are no UTF-8, and what turns the
// direction of writing are: \n, \x1b, \u202e. Lists are [1,two,"and three"].
func (t *Text) AppendLine(dst []byte, tag string, entry forward.Entry) []byte {
	dst, _ = t.appendEvent(dst, tag, &entry)
	return dst
}

// appendEvent appends a line. n is how much of entry.Record the record takes, which may be followed
// by something; 0 if it cannot be read to its end.
func (t *Text) appendEvent(dst []byte, tag string, entry *forward.Entry) (_ []byte, n int) {
	flags := t.flags
	if flags == 0 {
		flags = StdFlags
	}
	start := len(dst)
	if flags.has(Date|Time|Micros) && (entry.Sec != 0 || entry.Nsec != 0) {
		dst = t.appendClock(dst, flags, entry.Sec, entry.Nsec)
	}
	p := partsOf(entry.Record)
	if p.bad {
		dst = append(dst, "undecodable="...)
		dst = base64.StdEncoding.AppendEncode(dst, entry.Record)
		return append(dst, '\n'), 0
	}
	if p.level != nil && flags.has(Level) {
		dst = t.appendLevel(dst, p.level)
		dst = append(dst, ' ')
	}
	if flags.has(Tag) {
		t.tag = append(t.tag[:0], tag...)
		dst = appendWord(dst, t.tag, false)
		dst = append(dst, ' ')
	}
	if p.source != nil && flags.has(Source|ShortSource) {
		if flags.has(ShortSource) {
			p.source = p.source[bytes.LastIndexAny(p.source, `/\`)+1:]
		}
		dst = appendEscaped(dst, p.source, false)
		dst = append(dst, ':', ' ')
	}
	if p.message != nil {
		dst = appendEscaped(dst, p.message, false)
		dst = append(dst, ' ')
	}
	dst, n = t.appendPairs(dst, &p)
	if len(dst) > start && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	if n >= 0 {
		n += len(entry.Record) - len(p.pairs)
	} else {
		n = 0
	}
	return append(dst, '\n'), n
}

// parts is what a record consists of.
type parts struct {
	level, message, source []byte // texts; nil when there are none
	levelAt, messageAt     int    // which pair
	sourceAt               int
	pairs                  []byte // all of them
	n                      int
	lead, leadBytes        int  // how many of them at the start are parts, and what they take
	bad                    bool // it is no map, or cut off
}

// partsOf finds the parts. A user's attributes named like a part stand behind the parts, so that
// they stay attributes.
func partsOf(record []byte) (p parts) {
	t, n, err := msgpack.ReadToken(record)
	if err != nil || t.Kind != msgpack.KindMap {
		p.bad = true
		return p
	}
	p.pairs, p.n = record[n:], t.Len
	p.levelAt, p.messageAt, p.sourceAt = -1, -1, -1
	rest := p.pairs
	i := 0
	for ; i < min(p.n, 3); i++ {
		key, k := readText(rest)
		if k == 0 {
			break
		}
		value, v := readText(rest[k:])
		if v == 0 {
			break
		}
		switch {
		case string(key) == "level" && p.levelAt < 0:
			p.level, p.levelAt = value, i
		case string(key) == "msg" && p.messageAt < 0:
			p.message, p.messageAt = value, i
		case string(key) == "source" && p.sourceAt < 0:
			p.source, p.sourceAt = value, i
		default:
			v = 0
		}
		if v == 0 {
			break
		}
		rest = rest[k+v:]
	}
	if p.levelAt >= 0 && p.messageAt >= 0 {
		p.lead, p.leadBytes = i, len(p.pairs)-len(rest)
		return p
	}
	p.level, p.message, p.source = nil, nil, nil
	p.levelAt, p.messageAt, p.sourceAt = -1, -1, -1
	rest = p.pairs
	for i := range p.n {
		key, k := readText(rest)
		if string(key) == "msg" || string(key) == "message" {
			if value, v := readText(rest[k:]); v > 0 {
				p.message, p.messageAt = value, i
				return p
			}
		}
		for range 2 {
			k, err := msgpack.Skip(rest)
			if err != nil {
				p.bad = true
				return p
			}
			rest = rest[k:]
		}
	}
	return p
}

// readText reads a text; n is 0 if there stands none.
func readText(b []byte) (text []byte, n int) {
	t, n, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindStr || t.Len > len(b)-n {
		return nil, 0
	}
	return b[n : n+t.Len], n + t.Len
}

// appendClock appends the time and a space.
func (t *Text) appendClock(dst []byte, flags Flags, sec int64, nsec uint32) []byte {
	if sec != t.sec || len(t.clock) == 0 {
		t.tick(flags, sec)
	}
	at := len(dst) + t.micros
	dst = append(dst, t.clock...)
	if t.micros > 0 {
		n := nsec / 1000 % 1e6
		for i := 5; i >= 0; i-- {
			dst[at+i] = byte('0' + n%10)
			n /= 10
		}
	}
	return dst
}

// tick writes the clock of a new second.
func (t *Text) tick(flags Flags, sec int64) {
	at := time.Unix(sec, 0)
	if flags.has(UTC) {
		at = at.UTC()
	}
	b := t.clock[:0]
	t.sec, t.micros = sec, 0
	if t.color {
		b = append(b, dim...)
	}
	if flags.has(Date) {
		b = at.AppendFormat(b, "2006/01/02 ")
	}
	if flags.has(Time | Micros) {
		b = at.AppendFormat(b, "15:04:05")
		if flags.has(Micros) {
			b = append(b, '.')
			t.micros = len(b)
			b = append(b, "000000"...)
		}
		b = append(b, ' ')
	}
	if t.color {
		b = append(b[:len(b)-1], plain...)
		b = append(b, ' ')
	}
	t.clock = b
}

// What a terminal understands.
const (
	plain = "\x1b[0m"
	dim   = "\x1b[90m"
	cyan  = "\x1b[36m"
)

func (t *Text) appendLevel(dst, level []byte) []byte {
	if !t.color {
		return appendWord(dst, level, false)
	}
	colour := ""
	name, _, _ := bytes.Cut(level, []byte("+")) // INFO+2
	var upper [8]byte                           // other loggers write info
	for i := range min(len(name), len(upper)) {
		if upper[i] = name[i]; 'a' <= upper[i] && upper[i] <= 'z' {
			upper[i] -= 'a' - 'A'
		}
	}
	switch string(upper[:min(len(name), len(upper))]) {
	case "TRACE":
		colour = dim
	case "DEBUG":
		colour = cyan
	case "INFO":
		colour = "\x1b[32m"
	case "WARN", "WARNING":
		colour = "\x1b[33m"
	case "ERROR":
		colour = "\x1b[31m"
	case "FATAL", "PANIC":
		colour = "\x1b[1;31m"
	}
	dst = append(dst, colour...)
	dst = appendWord(dst, level, false)
	return append(dst, plain...)
}
