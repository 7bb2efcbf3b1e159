// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"encoding/binary"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// maxDepth is how deep a record may nest. An entry has one level more.
const maxDepth = msgpack.DefaultDepth

// check goes over entries that stand one after another in bytes that keep arriving, and looks at every one of them: that it ends, and
// that it is a time and a record. It looks at no byte twice, except at the one entry that was cut off by the end of what had arrived.
type check struct {
	pos     int64 // where the entry begins that is to be looked at
	off     int64 // how far scan got in it, if partial
	partial bool

	events  int64 // good ones, those without a time included
	invalid int64
	skipped int64
	zeros   int64 // good ones without a time
	odd     int64 // invalid ones that are no arrays at all
	why     uint8 // the reason of the last invalid one
}

// values is the number of entries seen, whatever they are.
func (c *check) values() int64 { return c.events + c.invalid + c.skipped }

// clean tells whether the entries can stay byte for byte as they are.
func (c *check) clean() bool { return c.invalid|c.skipped|c.zeros == 0 }

// alien tells whether there is something, and not a single array in it: then it is no stream of entries with some invalid ones among them,
// but something else, like text, or compressed data that does not say so.
func (c *check) alien() bool { return c.odd > 0 && c.odd == c.values() }

// run looks at the entries of b from where it stopped last, until it has seen most of them or b ends. b begins at the first entry,
// and never gets longer than size. The scanner must not be used for anything else while c.partial.
func (c *check) run(b []byte, most int64, scan *msgpack.Scanner, size int64) error {
	for c.values() < most {
		if !c.partial {
			c.quick(b, most)
			if c.values() == most || c.pos == int64(len(b)) {
				return nil
			}
			scan.Reset(claims(maxDepth+1, size))
			c.off = c.pos
			c.partial = true
		}
		n, done, err := scan.Scan(b[c.off:])
		c.off += int64(n)
		if err != nil || !done {
			return err
		}
		s := shapeOf(b[c.pos:c.off])
		c.count(&s)
		if s.verdict == invalid && !isArray(b[c.pos]) {
			c.odd++
		}
		c.partial = false
		c.pos = c.off
	}
	return nil
}

// quick goes on as long as entries look as nearly all of them do: 92, a time as EventTime or uint32, a map; or the same with empty
// metadata, 92 92 time 80. It stops at the first entry that is different, wrong or not complete.
func (c *check) quick(b []byte, most int64) {
	pos, left := int(c.pos), most-c.values()
	events := int64(0)
	for events < left && len(b)-pos >= 12 {
		e := b[pos:]
		var record int
		switch {
		case e[0] != codeArray2:
		case e[1] == codeFixExt8 && e[2] == 0:
			if t := binary.BigEndian.Uint64(e[3:]); t != 0 && uint32(t) < 1e9 {
				record = 11
			}
		case e[1] == codeArray2 && e[2] == codeFixExt8 && e[3] == 0 && len(e) >= 14 && e[12] == codeMap0:
			if t := binary.BigEndian.Uint64(e[4:]); t != 0 && uint32(t) < 1e9 {
				record = 13
			}
		case e[1] == codeUint32 && binary.BigEndian.Uint32(e[2:]) != 0:
			record = 6
		}
		if record == 0 || !isMap(e[record]) {
			break
		}
		n, err := msgpack.Skip(e[record:])
		if err != nil {
			break
		}
		pos += record + n
		events++
	}
	c.pos = int64(pos)
	c.events += events
}

// count notes what one entry is.
func (c *check) count(s *shape) {
	switch s.verdict {
	case good:
		c.events++
	case timeless:
		c.events++
		c.zeros++
	case skipped:
		c.skipped++
	case invalid:
		c.invalid++
		c.why = s.why
	}
}

// rewrite appends the good ones of entries that run found complete, with now as the time of those that have none, and their source.
func rewrite(dst, b []byte, now time.Time, src *source) []byte {
	var scan msgpack.Scanner
	scan.Reset(claims(maxDepth+1, int64(len(b))))
	for len(b) > 0 {
		n, _, err := scan.Scan(b)
		if err != nil {
			return dst // not after run
		}
		s := shapeOf(b[:n])
		switch {
		case s.verdict == good && src == nil:
			dst = append(dst, b[:n]...)
		case s.verdict == good, s.verdict == timeless:
			_, header, _ := msgpack.ReadToken(b)
			dst = appendAnew(dst, b[:n], header, &s, now, src)
		}
		b = b[n:]
	}
	return dst
}

// appendAnew appends an entry with now as its time, if it has none, and its source. b[at:] is time, or time and metadata, and record, at the offsets of s.
func appendAnew(dst, b []byte, at int, s *shape, now time.Time, src *source) []byte {
	dst = append(dst, codeArray2)
	if s.verdict == timeless {
		if s.meta > 0 {
			dst = append(dst, codeArray2)
		}
		dst = AppendEventTime(dst, now.Unix(), uint32(now.Nanosecond()))
		at = s.timeEnd()
	}
	dst = append(dst, b[at:s.record]...)
	if src != nil {
		return src.appendRecord(dst, b[s.record:])
	}
	return append(dst, b[s.record:]...)
}
