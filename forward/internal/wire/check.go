// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/spillwaylog/spillway/msgpack"
)

// NoLimit says to check that all entries are to be seen.
const NoLimit = math.MaxInt64

// Check goes over entries that stand one after another in bytes that keep arriving, and looks at
// every one of them: that it ends, and that it is a time and a record. It walks over no byte twice,
// however the entries are cut; only the header and the time of an entry that is not written as
// nearly all are may be read again.
//
//	92       time             record       of an entry as it should be
//	92    92 time metadata    record
//	▲     ▲                   ▲
//	atEntry  inMeta           inRecord     where a scan begins; inOther: at the entry, of any that is something else
type Check struct {
	Pos   int64 // where the entry begins that is to be looked at
	off   int64 // how far scan got in it; until it has begun, pos or less
	stage checkStage
	entry Shape // of the entry in progress, as far as it is known: verdict and why alone
	ready bool  // scan has its limits

	Events  int64 // good ones, those without a time included
	Invalid int64
	Skipped int64
	Zeros   int64 // good ones without a time
	Large   int64 // longer than the limit
	Odd     int64 // invalid ones that are no arrays at all
	Why     uint8 // the reason of the last invalid one

	Most  int64  // bytes of an entry; 0: any number
	lost  int64  // bytes of the entry in progress that were let go, see lose
	Spans []Span // of the large ones, in their order

	anew *anewList // those that cannot stay as they are; nil: none
	rest int64     // there may be more of them from here on; 0: all are in anew
}

// A Span is where a large entry stands, or what is left of it, and how long it is.
type Span struct{ Start, End, Size int64 }

// Values is the number of entries seen, whatever they are.
func (c *Check) Values() int64 { return c.Events + c.Invalid + c.Skipped + c.Large }

// Clean tells whether the entries can stay byte for byte as they are.
func (c *Check) Clean() bool { return c.Invalid|c.Skipped|c.Zeros|c.Large == 0 }

// Alien tells whether there is something, and not a single array in it: then it is no stream of
// entries with some invalid ones among them, but something else, like text, or compressed data that
// does not say so.
func (c *Check) Alien() bool { return c.Odd > 0 && c.Odd == c.Values() }

// checkStage is what check waits for.
type checkStage uint8

const (
	atEntry  checkStage = iota // what the next entry is
	inMeta                     // the end of time and metadata
	atRecord                   // what the record is
	inRecord                   // the end of the record
	inOther                    // the end of an entry of which no part is wanted
)

// Run looks at the entries of b from where it stopped last, until it has seen limit of them or b
// ends. b begins at the first entry, and never gets longer than size. The scanner must not be used
// for anything else before the last entry is complete.
func (c *Check) Run(b []byte, limit int64, scan *msgpack.Scanner, size int64) error {
	if !c.ready {
		scan.Reset(Claims(MaxDepth, size))
		c.ready = true
	}
	for {
		switch c.stage {
		case atEntry:
			if err := c.quick(b, limit, scan); err != nil {
				return err
			}
			if c.stage != atEntry {
				return nil // cut off
			}
			if c.Values() == limit || !c.begin(b) {
				return nil
			}
			if c.stage == inOther {
				scan.Reset(Claims(MaxDepth+1, size))
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
				c.entry.Record = int(c.off - c.Pos)
				c.stage = atRecord
				continue
			}
			c.count(b[c.Pos])
			if c.stage == inOther {
				scan.Reset(Claims(MaxDepth, size))
			}
			c.stage = atEntry
			c.Pos = c.off
		}
	}
}

// begin looks at the header and the time of an entry, and tells whether enough of it has come to go
// on.
func (c *Check) begin(b []byte) bool {
	if c.Pos == int64(len(b)) {
		return false
	}
	b = b[c.Pos:]
	s := Shape{Verdict: VerdictInvalid}
	header := 0
	c.stage, c.off = inOther, c.Pos
	if b[0] == CodeNil {
		s.Verdict = VerdictSkipped // nothing stands where an entry should: nothing is lost
	} else {
		var short bool
		if header, short = s.open(b); short {
			c.stage = atEntry
			return false
		}
	}
	switch c.entry = s; {
	case s.Verdict == VerdictInvalid, s.Verdict == VerdictSkipped:
	case s.Meta > 0:
		c.stage = inMeta
		c.off += int64(header)
	default:
		c.stage = atRecord
		c.off += int64(s.Record)
	}
	return true
}

// quick goes on as long as entries are written as nearly all of them are: 92, a usual time, a map.
// It stops at the first entry that is different or wrong, and within one that is cut off.
func (c *Check) quick(b []byte, limit int64, scan *msgpack.Scanner) error {
	pos, left := int(c.Pos), limit-c.Values()
	large := math.MaxInt
	if c.Most > 0 {
		large = int(min(c.Most, math.MaxInt))
	}
	events := int64(0)
	var failed error
	for events < left && len(b)-pos > maxUsual && b[pos] == CodeArray2 {
		e := b[pos:]
		record := 1 + eventTimeSize
		if !usualEventTime(e[1:]) {
			record = 1 + usualTime(e[1:])
		}
		if record == 1 || !IsMap(e[record]) {
			break
		}
		n, done, err := scan.Scan(e[record:])
		if !done {
			c.stage, c.entry, c.off = inRecord, Shape{}, int64(pos+record+n)
			failed = err
			break
		}
		if record+n > large {
			c.Events += events
			events = 0
			c.Pos, c.off, c.entry = int64(pos), int64(pos+record+n), Shape{}
			c.count(CodeArray2)
			left = limit - c.Values()
		} else {
			events++
		}
		pos += record + n
	}
	c.Pos = int64(pos)
	c.Events += events
	return failed
}

// count notes what the entry that begins with a code is.
func (c *Check) count(code byte) {
	size := c.lost + c.off - c.Pos
	if c.Most > 0 && size > c.Most && (c.entry.Verdict == VerdictGood || c.entry.Verdict == VerdictTimeless) {
		c.entry.Verdict = large
		c.Large++
		c.Spans = append(c.Spans, Span{c.Pos, c.off, size})
	}
	c.lost = 0
	if c.entry.Verdict != VerdictGood {
		c.note()
	}
	switch c.entry.Verdict {
	case VerdictGood:
		c.Events++
	case VerdictTimeless:
		c.Events++
		c.Zeros++
	case large:
	case VerdictSkipped:
		c.Skipped++
	case VerdictInvalid:
		c.Invalid++
		c.Why = c.entry.Why
		if !IsArray(code) {
			c.Odd++
		}
	}
}

// note keeps where the entry stands that is just complete, and not good.
func (c *Check) note() {
	if c.rest > 0 {
		return
	}
	if c.anew == nil {
		c.anew = anewLists.Get().(*anewList)
		c.anew.entries = c.anew.entries[:0]
	}
	a := anewEntry{start: uint32(c.Pos), end: uint32(c.off)}
	if c.entry.Verdict == VerdictTimeless {
		a.meta, a.record = uint32(c.entry.Meta), uint32(c.entry.Record)
	}
	if !c.anew.add(a) {
		c.rest = c.Pos
	}
}

// Slide forgets the entries that are complete: what b begins with from here on is the one in
// progress.
func (c *Check) Slide() {
	c.rest = 0
	if c.anew != nil {
		c.anew.entries = c.anew.entries[:0]
	}
	c.Spans = c.Spans[:0]
	c.off = max(c.off-c.Pos, 0)
	c.Pos = 0
}

// BrokenOff tells whether what there is, n bytes, ends within an entry.
func (c *Check) BrokenOff(n int) bool { return c.Pos != int64(n) || c.lost > 0 }

// Overdue tells whether the entry in progress, of which n bytes are there, is too large already.
func (c *Check) Overdue(n int) bool {
	return c.stage != atEntry && c.off == int64(n) && c.Most > 0 && c.lost+c.off > c.Most
}

// Lose forgets what there is of the entry in progress. Its size is remembered.
func (c *Check) Lose() {
	c.lost += c.off
	c.off = 0
}

// Drop gives the list back.
func (c *Check) Drop() {
	if c.anew != nil {
		anewLists.Put(c.anew)
		c.anew = nil
	}
}
