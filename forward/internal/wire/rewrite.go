// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// How this file is organised. Entries that are not clean, or get a stamp, are written anew after
// check has seen the last of them. check notes where the few stand that cannot stay as they are, so
// that all between them is copied without another look. Where they are many, the rest is walked a
// second time: a list of them would take more memory than the entries do. A stamp has to look at
// the keys of every record.

// Rewrite appends the good ones of entries, all of which run found complete, with now as the time
// of those that have none, and their stamp.
func (c *Check) Rewrite(dst, b []byte, now time.Time, stamp *Stamp) []byte {
	if stamp != nil {
		return rewriteEach(dst, b, now, stamp, c.Most)
	}
	from := uint32(0)
	if c.anew != nil {
		for i := range c.anew.entries {
			a := &c.anew.entries[i]
			dst = append(dst, b[from:a.start]...)
			if a.record > 0 {
				s := Shape{Verdict: VerdictTimeless, Meta: int(a.meta), Record: int(a.record)}
				dst, _ = AppendAnew(dst, b[a.start:a.end], 0, &s, now, nil)
			}
			from = a.end
		}
	}
	if c.rest == 0 {
		return append(dst, b[from:]...)
	}
	dst = append(dst, b[from:c.rest]...)
	return rewriteEach(dst, b[c.rest:], now, nil, c.Most)
}

// rewriteEach is rewrite without a list. Entries of more than limit bytes are left out, unless it
// is 0.
func rewriteEach(dst, b []byte, now time.Time, stamp *Stamp, limit int64) []byte {
	for len(b) > 0 {
		n, before := 0, len(dst)
		s := ShapeOf(b)
		_, header, _ := msgpack.ReadToken(b)
		switch {
		case s.Verdict == VerdictSkipped, s.Verdict == VerdictInvalid:
			n, _ = msgpack.Limits{Depth: MaxDepth + 1}.Skip(b)
		case stamp != nil: // finds the end itself
			dst, n = AppendAnew(dst, b, header, &s, now, stamp)
		default:
			n, _ = msgpack.Skip(b[s.Record:])
			n += s.Record
			dst, _ = AppendAnew(dst, b[:n], header, &s, now, nil)
		}
		if n == 0 {
			return dst // not after run
		}
		if limit > 0 && int64(n) > limit {
			dst = dst[:before]
		}
		b = b[n:]
	}
	return dst
}

// AppendAnew appends an entry with now as its time, if it has none, and its stamp. b[at:] is time,
// or time and metadata, and record, at the offsets of s. Without a stamp the entry is all of b,
// with one it ends at b[n].
func AppendAnew(dst, b []byte, at int, s *Shape, now time.Time, stamp *Stamp) (out []byte, n int) {
	dst = append(dst, CodeArray2)
	if s.Verdict == VerdictTimeless {
		if s.Meta > 0 {
			dst = append(dst, CodeArray2)
		}
		dst = AppendEventTime(dst, now.Unix(), uint32(now.Nanosecond()))
		at = s.timeEnd()
	}
	dst = append(dst, b[at:s.Record]...)
	if stamp == nil {
		return append(dst, b[s.Record:]...), len(b)
	}
	dst, n = stamp.appendRecord(dst, b[s.Record:])
	return dst, s.Record + n
}
