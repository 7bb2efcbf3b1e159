// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"

	"github.com/spillwaylog/spillway/msgpack"
)

// Verdict is what becomes of an entry.
type Verdict uint8

// The verdicts.
const (
	VerdictGood     Verdict = iota
	VerdictTimeless         // time 0: means now (rule 11)
	VerdictSkipped          // nil record: left out silently (rule 12)
	large                   // longer than Server.MaxEvent: set aside
	VerdictInvalid          // wrong type of time or record: left out and counted (rule 23)
)

// Reasons is what makes an entry invalid.
var Reasons = [...]error{
	errors.New("an entry that is no array of time and record"),
	errors.New("no time where the time belongs"),
	errors.New("no metadata map behind the time"),
	errors.New("no map where the record belongs"),
}

// Shape is where the parts of an entry stand.
type Shape struct {
	Verdict Verdict
	Why     uint8 // which reason, if invalid
	time    int   // offset of the time
	Meta    int   // offset of the metadata, 0 if none; the time ends here, or at record
	Record  int   // offset of the record
	Sec     int64
	Nsec    uint32
}

// Reason is what makes the entry invalid.
func (s *Shape) Reason() error { return Reasons[s.Why] }

func (s *Shape) timeEnd() int {
	if s.Meta > 0 {
		return s.Meta
	}
	return s.Record
}

// ShapeOf looks at what stands where an entry should, b[0:]. Only for a value that is complete is
// its verdict right; the record itself, if it is a map, may be cut off.
func ShapeOf(b []byte) (s Shape) {
	if b[0] == CodeNil {
		s.Verdict = VerdictSkipped // nothing stands where an entry should: nothing is lost
		return s
	}
	if _, _ = s.open(b); s.Verdict == VerdictInvalid {
		return s
	}
	if s.Meta > 0 {
		n, err := msgpack.Skip(b[s.Meta:])
		if err != nil {
			s.Verdict, s.Why = VerdictInvalid, 2
			return s
		}
		s.Record += n
	}
	s.end(b, s.Record)
	return s
}

// TimeOf returns the time of an entry, which may be cut off behind it.
func TimeOf(entry []byte) (sec int64, nsec uint32) {
	var s Shape
	_, _ = s.open(entry)
	return s.Sec, s.Nsec
}

// open looks at the header of an entry, of so many bytes, and at its time. The verdict is invalid,
// or open until judge. short: b may be too short to tell, and the verdict is that of b as it is.
func (s *Shape) open(b []byte) (header int, short bool) {
	t, n, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindArray || t.Len != 2 {
		s.Verdict = VerdictInvalid
		return 0, errors.Is(err, msgpack.ErrShort)
	}
	return n, s.begin(b, n)
}

// begin looks at a time, or time and metadata, at b[at]. See open. Behind metadata the record's
// offset is not known yet: it is that of meta.
func (s *Shape) begin(b []byte, at int) (short bool) {
	s.Verdict = VerdictGood
	s.time = at
	t, n, err := msgpack.ReadToken(b[at:])
	nested := err == nil && t.Kind == msgpack.KindArray
	if nested {
		if t.Len != 2 {
			s.Verdict, s.Why = VerdictInvalid, 2
			return false
		}
		s.time += n
	}
	sec, nsec, n, err := readTime(b[s.time:])
	if err != nil {
		s.Verdict, s.Why = VerdictInvalid, 1
		return errors.Is(err, msgpack.ErrShort)
	}
	s.Sec, s.Nsec = sec, nsec
	if sec == 0 && nsec == 0 {
		s.Verdict = VerdictTimeless
	}
	s.Record = s.time + n
	if nested {
		s.Meta = s.Record
		if short = s.Meta == len(b); short || !IsMap(b[s.Meta]) {
			s.Verdict, s.Why = VerdictInvalid, 2
		}
	}
	return short
}

// end looks at the record, at b[record], after begin.
func (s *Shape) end(b []byte, record int) {
	s.Record = record
	if record == len(b) {
		s.Verdict, s.Why = VerdictInvalid, 3
		return
	}
	s.judge(b[record])
}

// judge takes in with which code the record begins.
func (s *Shape) judge(code byte) {
	switch {
	case code == CodeNil:
		s.Verdict = VerdictSkipped
	case !IsMap(code):
		s.Verdict, s.Why = VerdictInvalid, 3
	}
}
