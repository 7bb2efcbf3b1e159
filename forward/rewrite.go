// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"sync"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// How this file is organised. Entries that are not clean, or get a source, are written anew after
// check has seen the last of them. check notes where the few stand that cannot stay as they are, so
// that all between them is copied without another look. Where they are many, the rest is walked a
// second time: a list of them would take more memory than the entries do. A source has to look at
// the keys of every record.

// anewMost bounds the list, which is in no budget: 16 KiB.
const anewMost = 1024

// anewEntry is an entry, or several in a row, that cannot stay: one to be left out, or one without
// a time.
type anewEntry struct {
	start, end   uint32 // a chunk is shorter than 2 GiB
	meta, record uint32 // from start; record 0: to be left out; meta 0: none
}

// anewList is pooled: hardly any chunk needs one.
type anewList struct{ entries []anewEntry }

var anewLists = sync.Pool{New: func() any { return new(anewList) }}

// note keeps where the entry stands that is just complete, and not good.
func (c *check) note() {
	if c.rest > 0 {
		return
	}
	if c.anew == nil {
		c.anew = anewLists.Get().(*anewList)
		c.anew.entries = c.anew.entries[:0]
	}
	a := anewEntry{start: uint32(c.pos), end: uint32(c.off)}
	if c.entry.verdict == timeless {
		a.meta, a.record = uint32(c.entry.meta), uint32(c.entry.record)
	}
	l := c.anew.entries
	if last := len(l) - 1; a.record == 0 && last >= 0 && l[last].record == 0 && l[last].end == a.start {
		l[last].end = a.end
		return
	}
	if len(l) == anewMost {
		c.rest = c.pos
		return
	}
	c.anew.entries = append(l, a)
}

// forget empties the list: what it speaks of is gone.
func (c *check) forget() {
	c.rest = 0
	if c.anew != nil {
		c.anew.entries = c.anew.entries[:0]
	}
}

// drop gives the list back.
func (c *check) drop() {
	if c.anew != nil {
		anewLists.Put(c.anew)
		c.anew = nil
	}
}

// rewrite appends the good ones of entries, all of which run found complete, with now as the time
// of those that have none, and their source.
func (c *check) rewrite(dst, b []byte, now time.Time, src *source) []byte {
	if src != nil {
		return rewriteEach(dst, b, now, src, c.most)
	}
	from := uint32(0)
	if c.anew != nil {
		for i := range c.anew.entries {
			a := &c.anew.entries[i]
			dst = append(dst, b[from:a.start]...)
			if a.record > 0 {
				s := shape{verdict: timeless, meta: int(a.meta), record: int(a.record)}
				dst, _ = appendAnew(dst, b[a.start:a.end], 0, &s, now, nil)
			}
			from = a.end
		}
	}
	if c.rest == 0 {
		return append(dst, b[from:]...)
	}
	dst = append(dst, b[from:c.rest]...)
	return rewriteEach(dst, b[c.rest:], now, nil, c.most)
}

// rewriteEach is rewrite without a list. Entries of more than most bytes are left out, unless it is
// 0.
func rewriteEach(dst, b []byte, now time.Time, src *source, most int64) []byte {
	for len(b) > 0 {
		n, before := 0, len(dst)
		s := shapeOf(b)
		_, header, _ := msgpack.ReadToken(b)
		switch {
		case s.verdict == skipped, s.verdict == invalid:
			n, _ = msgpack.Limits{Depth: maxDepth + 1}.Skip(b)
		case src != nil: // finds the end itself
			dst, n = appendAnew(dst, b, header, &s, now, src)
		default:
			n, _ = msgpack.Skip(b[s.record:])
			n += s.record
			dst, _ = appendAnew(dst, b[:n], header, &s, now, nil)
		}
		if n == 0 {
			return dst // not after run
		}
		if most > 0 && int64(n) > most {
			dst = dst[:before]
		}
		b = b[n:]
	}
	return dst
}

// appendAnew appends an entry with now as its time, if it has none, and its source. b[at:] is time,
// or time and metadata, and record, at the offsets of s. Without a source the entry is all of b,
// with one it ends at b[n].
func appendAnew(dst, b []byte, at int, s *shape, now time.Time, src *source) (out []byte, n int) {
	dst = append(dst, codeArray2)
	if s.verdict == timeless {
		if s.meta > 0 {
			dst = append(dst, codeArray2)
		}
		dst = AppendEventTime(dst, now.Unix(), uint32(now.Nanosecond()))
		at = s.timeEnd()
	}
	dst = append(dst, b[at:s.record]...)
	if src == nil {
		return append(dst, b[s.record:]...), len(b)
	}
	dst, n = src.appendRecord(dst, b[s.record:])
	return dst, s.record + n
}
