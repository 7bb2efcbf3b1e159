// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// An Entry is one event without its tag: [time, record], or [[time, metadata], record]
// (docs/forward.md rules 9, 10, 13).
type Entry struct {
	// Sec and Nsec are the time since 1970. A time that came as a float has the precision that a
	// float has.
	Sec  int64
	Nsec uint32
	// Meta is the MessagePack map of metadata, nil when the entry has none.
	Meta []byte
	// Record is the MessagePack map of keys and values.
	Record []byte
	// Raw is the whole entry.
	Raw []byte
}

// Time returns the entry's time in UTC.
func (e *Entry) Time() time.Time { return time.Unix(e.Sec, int64(e.Nsec)).UTC() }

// An EntryReader reads packed entries one after another. What it returns aliases the bytes that it
// reads.
type EntryReader struct {
	rest []byte
	at   int
	err  error
}

// ReadEntries returns a reader of packed entries, as in Chunk.Entries.
func ReadEntries(b []byte) EntryReader { return EntryReader{rest: b} }

// Next returns the next entry, or false at the end and at the first byte that is no entry, see Err.
func (r *EntryReader) Next() (e Entry, ok bool) {
	if len(r.rest) == 0 || r.err != nil {
		return Entry{}, false
	}
	s := shapeOf(r.rest)
	if s.verdict != good && s.verdict != timeless {
		r.err = fmt.Errorf("%w: entry at byte %d: %w", ErrMalformed, r.at, s.reason())
		return Entry{}, false
	}
	n, err := msgpack.Skip(r.rest[s.record:])
	if err != nil {
		r.err = fmt.Errorf("%w: entry at byte %d: %w", ErrMalformed, r.at, err)
		return Entry{}, false
	}
	n += s.record
	e.Raw = r.rest[:n:n]
	e.Sec, e.Nsec = s.sec, s.nsec
	if s.meta > 0 {
		e.Meta = e.Raw[s.meta:s.record:s.record]
	}
	e.Record = e.Raw[s.record:]
	r.rest = r.rest[n:]
	r.at += n
	return e, true
}

// Err returns what Next stumbled over; it wraps ErrMalformed.
func (r *EntryReader) Err() error { return r.err }

// verdict is what becomes of an entry.
type verdict uint8

const (
	good     verdict = iota
	timeless         // time 0: means now (rule 11)
	skipped          // nil record: left out silently (rule 12)
	large            // longer than Server.MaxEvent: set aside
	invalid          // wrong type of time or record: left out and counted (rule 23)
)

// reasons is what makes an entry invalid.
var reasons = [...]error{
	errors.New("an entry that is no array of time and record"),
	errors.New("no time where the time belongs"),
	errors.New("no metadata map behind the time"),
	errors.New("no map where the record belongs"),
}

// shape is where the parts of an entry stand.
type shape struct {
	verdict verdict
	why     uint8 // which reason, if invalid
	time    int   // offset of the time
	meta    int   // offset of the metadata, 0 if none; the time ends here, or at record
	record  int   // offset of the record
	sec     int64
	nsec    uint32
}

func (s *shape) reason() error { return reasons[s.why] }

func (s *shape) timeEnd() int {
	if s.meta > 0 {
		return s.meta
	}
	return s.record
}

// shapeOf looks at what stands where an entry should, b[0:]. Only for a value that is complete is
// its verdict right; the record itself, if it is a map, may be cut off.
func shapeOf(b []byte) (s shape) {
	if b[0] == codeNil {
		s.verdict = skipped // nothing stands where an entry should: nothing is lost
		return s
	}
	if _, _ = s.open(b); s.verdict == invalid {
		return s
	}
	if s.meta > 0 {
		n, err := msgpack.Skip(b[s.meta:])
		if err != nil {
			s.verdict, s.why = invalid, 2
			return s
		}
		s.record += n
	}
	s.end(b, s.record)
	return s
}

// open looks at the header of an entry, of so many bytes, and at its time. The verdict is invalid,
// or open until judge. short: b may be too short to tell, and the verdict is that of b as it is.
func (s *shape) open(b []byte) (header int, short bool) {
	t, n, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.Array || t.Len != 2 {
		s.verdict = invalid
		return 0, errors.Is(err, msgpack.ErrShort)
	}
	return n, s.begin(b, n)
}

// begin looks at a time, or time and metadata, at b[at]. See open. Behind metadata the record's
// offset is not known yet: it is that of meta.
func (s *shape) begin(b []byte, at int) (short bool) {
	s.verdict = good
	s.time = at
	t, n, err := msgpack.ReadToken(b[at:])
	nested := err == nil && t.Kind == msgpack.Array
	if nested {
		if t.Len != 2 {
			s.verdict, s.why = invalid, 2
			return false
		}
		s.time += n
	}
	sec, nsec, n, err := readTime(b[s.time:])
	if err != nil {
		s.verdict, s.why = invalid, 1
		return errors.Is(err, msgpack.ErrShort)
	}
	s.sec, s.nsec = sec, nsec
	if sec == 0 && nsec == 0 {
		s.verdict = timeless
	}
	s.record = s.time + n
	if nested {
		s.meta = s.record
		if short = s.meta == len(b); short || !isMap(b[s.meta]) {
			s.verdict, s.why = invalid, 2
		}
	}
	return short
}

// end looks at the record, at b[record], after begin.
func (s *shape) end(b []byte, record int) {
	s.record = record
	if record == len(b) {
		s.verdict, s.why = invalid, 3
		return
	}
	s.judge(b[record])
}

// judge takes in with which code the record begins.
func (s *shape) judge(code byte) {
	switch {
	case code == codeNil:
		s.verdict = skipped
	case !isMap(code):
		s.verdict, s.why = invalid, 3
	}
}

// The few MessagePack codes that are looked at without the package's help, because they are looked
// at for every event.
const (
	codeNil     = 0xc0
	codeExt8    = 0xc7
	codeUint32  = 0xce
	codeFixExt8 = 0xd7
	codeArray0  = 0x90
	codeArray2  = 0x92
	codeStr0    = 0xa0
	codeStr8    = 0xd9
	codeArray16 = 0xdc
	codeArray32 = 0xdd
	codeMap0    = 0x80
	codeMap16   = 0xde
	codeMap32   = 0xdf
)

func isArray(code byte) bool { return code&0xf0 == 0x90 || code == codeArray16 || code == codeArray32 }

func isMap(code byte) bool { return code&0xf0 == codeMap0 || code == codeMap16 || code == codeMap32 }

// usualMost is how many bytes a time that usualTime knows takes at most, with the first byte of the
// record behind it.
const usualMost = 13

const eventTimeSize = 10

// usualEventTime tells whether b begins with an EventTime in its shortest form, good and not 0. It
// is what nearly all senders write, and small enough to be inlined where events are counted in
// millions a second.
func usualEventTime(b []byte) bool {
	t := binary.BigEndian.Uint64(b[2:])
	return b[0] == codeFixExt8 && b[1] == 0 && t != 0 && uint32(t) < 1e9
}

// usualTime returns the length of a time that is written as nearly all of them are, EventTime or
// uint32, or of an EventTime with empty metadata: 92 time 80. It is 0 for any other, for a time of
// 0 and for one that is wrong. b is usualMost bytes or more.
func usualTime(b []byte) int {
	b = b[:usualMost]
	switch {
	case usualEventTime(b):
		return eventTimeSize
	case b[0] == codeUint32 && binary.BigEndian.Uint32(b[1:]) != 0:
		return 5
	case b[0] == codeArray2 && b[11] == codeMap0 && usualEventTime(b[1:]):
		return 12
	}
	return 0
}

// Seconds that a float may say: beyond them it has no whole seconds any more.
const maxFloatSec = 1 << 53

// errTime says that a value is no time.
var errTime = errors.New("no time")

// readTime reads a time of any kind: EventTime, an integer or a float (docs/forward.md rules 5, 9,
// 10). The error is that of msgpack.ReadToken, with ErrShort also if b ends within an EventTime, or
// errTime.
func readTime(b []byte) (sec int64, nsec uint32, n int, err error) {
	t, n, err := msgpack.ReadToken(b)
	if err != nil {
		return 0, 0, 0, err
	}
	switch t.Kind {
	case msgpack.Int, msgpack.Uint:
		if sec, ok := t.Int(); ok {
			return sec, 0, n, nil
		}
	case msgpack.Float32, msgpack.Float64:
		f := t.Float()
		if !(math.Abs(f) <= maxFloatSec) { // NaN too
			return 0, 0, 0, errTime
		}
		whole := math.Floor(f)
		frac := math.Round((f - whole) * 1e9)
		if frac >= 1e9 {
			whole, frac = whole+1, 0
		}
		return int64(whole), uint32(frac), n, nil
	case msgpack.Ext:
		if t.Ext != 0 || t.Len != 8 {
			return 0, 0, 0, errTime
		}
		if len(b) < n+8 {
			return 0, 0, 0, msgpack.ErrShort
		}
		if nsec = binary.BigEndian.Uint32(b[n+4:]); nsec < 1e9 {
			return int64(binary.BigEndian.Uint32(b[n:])), nsec, n + 8, nil
		}
	}
	return 0, 0, 0, errTime
}

// AppendEventTime appends a time as EventTime in its shortest form, fixext8 of type 0. Seconds are
// unsigned 32 bits: others are cut to that.
func AppendEventTime(dst []byte, sec int64, nsec uint32) []byte {
	sec = min(max(sec, 0), math.MaxUint32)
	dst = append(dst, codeFixExt8, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(sec))
	return binary.BigEndian.AppendUint32(dst, nsec)
}

// AppendExtJSON appends an extension value as JSON, for msgpack.AppendJSON: an EventTime as a
// string of RFC 3339, any other as "ext:<type>:<base64>" (docs/forward.md rule 22).
func AppendExtJSON(dst []byte, typ int8, data []byte) []byte {
	if typ == 0 && len(data) == 8 {
		if nsec := binary.BigEndian.Uint32(data[4:]); nsec < 1e9 {
			dst = append(dst, '"')
			dst = time.Unix(int64(binary.BigEndian.Uint32(data)), int64(nsec)).UTC().AppendFormat(dst, time.RFC3339Nano)
			return append(dst, '"')
		}
	}
	dst = append(dst, `"ext:`...)
	dst = strconv.AppendInt(dst, int64(typ), 10)
	dst = append(dst, ':')
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, '"')
}
