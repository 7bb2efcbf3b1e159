// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"math"

	"github.com/spillwaylog/spillway/msgpack"
)

// maxDepth is how deep a record may nest. An entry has one level more.
const maxDepth = msgpack.DefaultDepth

// check goes over entries that stand one after another in bytes that keep arriving, and looks at
// every one of them: that it ends, and that it is a time and a record. It walks over no byte twice,
// however the entries are cut; only the header and the time of an entry that is not written as
// nearly all are may be read again.
//
//	92       time             record       of an entry as it should be
//	92    92 time metadata    record
//	▲     ▲                   ▲
//	atEntry  inMeta           inRecord     where a scan begins; inOther: at the entry, of any that is something else
type check struct {
	pos   int64 // where the entry begins that is to be looked at
	off   int64 // how far scan got in it; until it has begun, pos or less
	stage checkStage
	entry shape // of the entry in progress, as far as it is known: verdict and why alone
	ready bool  // scan has its limits

	events  int64 // good ones, those without a time included
	invalid int64
	skipped int64
	zeros   int64 // good ones without a time
	large   int64 // longer than most
	odd     int64 // invalid ones that are no arrays at all
	why     uint8 // the reason of the last invalid one

	most  int64  // bytes of an entry; 0: any number
	lost  int64  // bytes of the entry in progress that were let go, see sift.go
	spans []span // of the large ones, in their order

	anew *anewList // those that cannot stay as they are; nil: none
	rest int64     // there may be more of them from here on; 0: all are in anew
}

// A span is where a large entry stands, or what is left of it, and how long it is.
type span struct{ start, end, size int64 }

// values is the number of entries seen, whatever they are.
func (c *check) values() int64 { return c.events + c.invalid + c.skipped + c.large }

// clean tells whether the entries can stay byte for byte as they are.
func (c *check) clean() bool { return c.invalid|c.skipped|c.zeros|c.large == 0 }

// alien tells whether there is something, and not a single array in it: then it is no stream of
// entries with some invalid ones among them, but something else, like text, or compressed data that
// does not say so.
func (c *check) alien() bool { return c.odd > 0 && c.odd == c.values() }

// checkStage is what check waits for.
type checkStage uint8

const (
	atEntry  checkStage = iota // what the next entry is
	inMeta                     // the end of time and metadata
	atRecord                   // what the record is
	inRecord                   // the end of the record
	inOther                    // the end of an entry of which no part is wanted
)

// run looks at the entries of b from where it stopped last, until it has seen most of them or b
// ends. b begins at the first entry, and never gets longer than size. The scanner must not be used
// for anything else before the last entry is complete.
func (c *check) run(b []byte, most int64, scan *msgpack.Scanner, size int64) error {
	if !c.ready {
		scan.Reset(claims(maxDepth, size))
		c.ready = true
	}
	for {
		switch c.stage {
		case atEntry:
			if err := c.quick(b, most, scan); err != nil {
				return err
			}
			if c.stage != atEntry {
				return nil // cut off
			}
			if c.values() == most || !c.begin(b) {
				return nil
			}
			if c.stage == inOther {
				scan.Reset(claims(maxDepth+1, size))
			}
		case atRecord:
			if c.off == int64(len(b)) {
				return nil
			}
			c.entry.judge(b[c.off])
			c.stage = inRecord
		case inMeta, inRecord, inOther:
			n, done, err := scan.Scan(b[c.off:])
			c.off += int64(n)
			if err != nil || !done {
				return err
			}
			if c.stage == inMeta {
				c.entry.record = int(c.off - c.pos)
				c.stage = atRecord
				continue
			}
			c.count(b[c.pos])
			if c.stage == inOther {
				scan.Reset(claims(maxDepth, size))
			}
			c.stage = atEntry
			c.pos = c.off
		}
	}
}

// begin looks at the header and the time of an entry, and tells whether enough of it has come to go
// on.
func (c *check) begin(b []byte) bool {
	if c.pos == int64(len(b)) {
		return false
	}
	b = b[c.pos:]
	s := shape{verdict: invalid}
	header := 0
	c.stage, c.off = inOther, c.pos
	if b[0] == codeNil {
		s.verdict = skipped // nothing stands where an entry should: nothing is lost
	} else {
		var short bool
		if header, short = s.open(b); short {
			c.stage = atEntry
			return false
		}
	}
	switch c.entry = s; {
	case s.verdict == invalid, s.verdict == skipped:
	case s.meta > 0:
		c.stage = inMeta
		c.off += int64(header)
	default:
		c.stage = atRecord
		c.off += int64(s.record)
	}
	return true
}

// quick goes on as long as entries are written as nearly all of them are: 92, a usual time, a map.
// It stops at the first entry that is different or wrong, and within one that is cut off.
func (c *check) quick(b []byte, most int64, scan *msgpack.Scanner) error {
	pos, left := int(c.pos), most-c.values()
	large := math.MaxInt
	if c.most > 0 {
		large = int(min(c.most, math.MaxInt))
	}
	events := int64(0)
	var failed error
	for events < left && len(b)-pos > usualMost && b[pos] == codeArray2 {
		e := b[pos:]
		record := 1 + eventTimeSize
		if !usualEventTime(e[1:]) {
			record = 1 + usualTime(e[1:])
		}
		if record == 1 || !isMap(e[record]) {
			break
		}
		n, done, err := scan.Scan(e[record:])
		if !done {
			c.stage, c.entry, c.off = inRecord, shape{}, int64(pos+record+n)
			failed = err
			break
		}
		if record+n > large {
			c.events += events
			events = 0
			c.pos, c.off, c.entry = int64(pos), int64(pos+record+n), shape{}
			c.count(codeArray2)
			left = most - c.values()
		} else {
			events++
		}
		pos += record + n
	}
	c.pos = int64(pos)
	c.events += events
	return failed
}

// count notes what the entry that begins with a code is.
func (c *check) count(code byte) {
	size := c.lost + c.off - c.pos
	if c.most > 0 && size > c.most && (c.entry.verdict == good || c.entry.verdict == timeless) {
		c.entry.verdict = large
		c.large++
		c.spans = append(c.spans, span{c.pos, c.off, size})
	}
	c.lost = 0
	if c.entry.verdict != good {
		c.note()
	}
	switch c.entry.verdict {
	case good:
		c.events++
	case timeless:
		c.events++
		c.zeros++
	case large:
	case skipped:
		c.skipped++
	case invalid:
		c.invalid++
		c.why = c.entry.why
		if !isArray(code) {
			c.odd++
		}
	}
}
