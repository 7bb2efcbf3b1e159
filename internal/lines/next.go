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

// AppendRun appends the lines of the first of packed entries, as AppendLine does with what a
// forward.EntryReader reads, in one pass over their bytes: of one, and of those behind it that have
// the same second, until dst has limit bytes. n is what these entries take: 0 if the first is not
// as nearly all write it or cannot be read; then nothing is appended, and an EntryReader knows
// more.
func (t *Text) AppendRun(dst []byte, tag string, entries []byte, limit int) (_ []byte, n, events int) {
	sec, nsec, head := headOf(entries)
	for first := sec; head > 0 && sec == first; sec, nsec, head = headOf(entries[n:]) {
		start, k := len(dst), 0
		if dst, k = t.appendEvent(dst, tag, &forward.Entry{Sec: sec, Nsec: nsec, Record: entries[n+head:]}); k == 0 {
			return dst[:start], n, events
		}
		n += head + k
		events++
		if len(dst) >= limit {
			break
		}
	}
	return dst, n, events
}

// AppendRun appends the lines of the first of packed entries, see [Text.AppendRun].
func (e *Encoder) AppendRun(dst []byte, tag string, entries []byte, limit int) (_ []byte, n, events int) {
	sec, nsec, head := headOf(entries)
	for first := sec; head > 0 && sec == first; sec, nsec, head = headOf(entries[n:]) {
		start := len(dst)
		if events > 0 && e.digits == 9 && sec != 0 { // the second and the tag are those before
			dst = append(dst, e.envelope...)
			putNanos(dst[start+e.at:], nsec)
		} else {
			dst = e.appendEnvelope(dst, tag, sec, nsec)
		}
		dst = e.comma(dst, start)
		before := len(dst)
		out, k, err := msgpack.AppendJSONPairs(dst, entries[n+head:], e.names, forward.AppendExtJSON)
		if err != nil {
			return dst[:start], n, events
		}
		if len(out) == before && before > start+1 {
			out = dst[:before-1]
		}
		dst = append(out, '}', '\n')
		n += head + k
		events++
		if len(dst) >= limit {
			break
		}
	}
	return dst, n, events
}
