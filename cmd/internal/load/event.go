// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// seqKey is the key of an event's number. It stands first in the record, so that its place does not
// depend on what follows.
const seqKey = "seq"

// A stamp is where in a message the time and the number of an event stand, to be written over.
//
//	d7 00 <seconds> <nanoseconds>   8x a3 "seq" cf <number> …
//	      └ time, 8 bytes                          └ seq, 8 bytes
type stamp struct{ time, seq uint32 }

// put writes both into b.
func (s stamp) put(b []byte, when uint64, seq int64) {
	binary.BigEndian.PutUint64(b[s.time:], when)
	binary.BigEndian.PutUint64(b[s.seq:], uint64(seq))
}

// eventTime is t as the eight bytes of an EventTime (docs/forward.md rule 10).
func eventTime(t time.Time) uint64 { return uint64(t.Unix())<<32 | uint64(t.Nanosecond()) }

// maker appends events: their time and their record.
type maker struct {
	size    int
	records [][]byte
	when    time.Time // of all; a time of 0 would have the server set its own (docs/forward.md rule 11)
	n       int       // made so far
	bytes   int       // of them
}

const placeholder = 0x0102030405060708 // of nine bytes in MessagePack, as numbers are

func (m *maker) append(b []byte) ([]byte, stamp, error) {
	var at stamp
	start := len(b)
	b = forward.AppendEventTime(b, m.when.Unix(), uint32(m.when.Nanosecond()))
	at.time = uint32(len(b) - 8)
	i := m.n
	m.n++
	var pairs int
	var rest []byte
	if len(m.records) > 0 {
		var err error
		if pairs, rest, err = split(m.records[i%len(m.records)]); err != nil {
			return b, at, fmt.Errorf("event %d: %w", i%len(m.records)+1, err)
		}
	} else if pairs = 1; m.size >= roomy {
		pairs = 4
	}
	b = msgpack.AppendMapHeader(b, pairs+1)
	b = msgpack.AppendString(b, seqKey)
	b = append(b, 0xcf)
	at.seq = uint32(len(b))
	b = binary.BigEndian.AppendUint64(b, placeholder)
	if rest != nil {
		b = append(b, rest...)
	} else {
		b = appendMade(b, start+m.size, pairs > 1, uint32(i))
	}
	m.bytes += len(b) - start
	return b, at, nil
}

// split returns how many pairs a record has, and their bytes.
func split(record []byte) (pairs int, rest []byte, err error) {
	t, n, err := msgpack.ReadToken(record)
	if err != nil {
		return 0, nil, err
	}
	if t.Kind != msgpack.KindMap {
		return 0, nil, errors.New("no record: not a map")
	}
	if k, err := msgpack.Skip(record); err != nil || k != len(record) {
		return 0, nil, errors.Join(err, fmt.Errorf("a record of %d bytes ends at %d", len(record), k))
	}
	return t.Len, record[n:], nil
}

// roomy is the size from which on a made record has four keys besides its number, like a line of an
// access log.
const roomy = 110

// appendMade appends pairs up to the length end. Lines differ as those of a log do: so they can be
// compressed as well as those, not better.
func appendMade(b []byte, end int, four bool, i uint32) []byte {
	r := i * 2654435761 // spreads
	r ^= r >> 15
	if four {
		b = msgpack.AppendString(msgpack.AppendString(b, "method"), [...]string{"GET", "PUT"}[r%7/6])
		b = msgpack.AppendString(msgpack.AppendString(b, "path"), fmt.Sprintf("/api/v1/orders/%04d/", r%10000))
		b = append(msgpack.AppendString(b, "status"), 0xcd, 0, 200)
	}
	b = msgpack.AppendString(b, "message")
	left := end - len(b)
	var n int
	switch { // the length of the header must not depend on that of the text
	case left-2 < 1<<8:
		n = left - 2
		b = append(b, 0xd9, byte(n))
	case left-3 < 1<<16:
		n = left - 3
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		n = left - 5
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	for text := 0; n > 0; n -= text {
		line := fmt.Sprintf("user %05d fetched the items of order %04d in %02d ms, cached; ", r%99991, r%10000, r%97)
		text = min(n, len(line))
		b = append(b, line[:text]...)
		r = r*1664525 + 1013904223
	}
	return b
}
