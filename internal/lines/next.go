// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"encoding/binary"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// headOf reads what stands before the record in the first of packed entries, if that is as nearly
// all senders write it: [EventTime, or [[EventTime, {}], or [uint32. n is its length, 0 for any
// other.
func headOf(b []byte) (sec int64, nsec uint32, n int) {
	var at int // of the seconds
	switch {
	case len(b) > 11 && b[0] == 0x92 && b[1] == 0xd7 && b[2] == 0:
		at, n = 3, 11
	case len(b) > 6 && b[0] == 0x92 && b[1] == 0xce:
		return int64(binary.BigEndian.Uint32(b[2:])), 0, 6
	case len(b) > 13 && b[0] == 0x92 && b[1] == 0x92 && b[2] == 0xd7 && b[3] == 0 && b[12] == 0x80:
		at, n = 4, 13
	default:
		return 0, 0, 0
	}
	sec, nsec = int64(binary.BigEndian.Uint32(b[at:])), binary.BigEndian.Uint32(b[at+4:])
	if nsec >= nanos {
		return 0, 0, 0
	}
	return sec, nsec, n
}

// TimeOf reads the time at the start of packed entries, if the first of them is as nearly all
// senders write it.
func TimeOf(entries []byte) (sec int64, nsec uint32, ok bool) {
	sec, nsec, n := headOf(entries)
	return sec, nsec, n > 0
}

// AppendNext appends the line of the first of packed entries, as AppendLine does with what a
// forward.EntryReader reads, in one pass over its bytes. n is what the entry takes: 0 if it is not
// as nearly all write it or cannot be read; then nothing is appended, and an EntryReader knows
// more.
func (t *Text) AppendNext(dst []byte, tag string, entries []byte) (_ []byte, n int) {
	sec, nsec, head := headOf(entries)
	if head == 0 {
		return dst, 0
	}
	start := len(dst)
	if dst, n = t.appendEvent(dst, tag, &forward.Entry{Sec: sec, Nsec: nsec, Record: entries[head:]}); n == 0 {
		return dst[:start], 0
	}
	return dst, head + n
}

// AppendNext appends the line of the first of packed entries, see [Text.AppendNext].
func (e *Encoder) AppendNext(dst []byte, tag string, entries []byte) (_ []byte, n int) {
	sec, nsec, head := headOf(entries)
	if head == 0 {
		return dst, 0
	}
	start := len(dst)
	dst = e.appendEnvelope(dst, tag, sec, nsec)
	dst = e.comma(dst, start)
	before := len(dst)
	out, n, err := msgpack.AppendJSONPairs(dst, entries[head:], e.names, forward.AppendExtJSON)
	if err != nil {
		return dst[:start], 0
	}
	if len(out) == before && before > start+1 {
		out = dst[:before-1]
	}
	return append(out, '}', '\n'), head + n
}
