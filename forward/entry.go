// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
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
	s := wire.ShapeOf(r.rest)
	if s.Verdict != wire.VerdictGood && s.Verdict != wire.VerdictTimeless {
		r.err = fmt.Errorf("%w: entry at byte %d: %w", ErrMalformed, r.at, s.Reason())
		return Entry{}, false
	}
	n, err := msgpack.Skip(r.rest[s.Record:])
	if err != nil {
		r.err = fmt.Errorf("%w: entry at byte %d: %w", ErrMalformed, r.at, err)
		return Entry{}, false
	}
	n += s.Record
	e.Raw = r.rest[:n:n]
	e.Sec, e.Nsec = s.Sec, s.Nsec
	if s.Meta > 0 {
		e.Meta = e.Raw[s.Meta:s.Record:s.Record]
	}
	e.Record = e.Raw[s.Record:]
	r.rest = r.rest[n:]
	r.at += n
	return e, true
}

// Err returns what Next stumbled over; it wraps ErrMalformed.
func (r *EntryReader) Err() error { return r.err }

// AppendEventTime appends a time as EventTime in its shortest form, fixext8 of type 0. Seconds are
// unsigned 32 bits: others are cut to that.
func AppendEventTime(dst []byte, sec int64, nsec uint32) []byte {
	return wire.AppendEventTime(dst, sec, nsec)
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
