// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"encoding/binary"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// plainHead is the length of what stands before the record in an entry as loggers write it: [EventTime, record].
const plainHead = 11

// TimeOf reads the time at the start of packed entries, if the first of them is as loggers write it.
func TimeOf(entries []byte) (sec int64, nsec uint32, ok bool) {
	if len(entries) <= plainHead || entries[0] != 0x92 || entries[1] != 0xd7 || entries[2] != 0 {
		return 0, 0, false
	}
	nsec = binary.BigEndian.Uint32(entries[7:])
	return int64(binary.BigEndian.Uint32(entries[3:])), nsec, nsec < nanos
}

// AppendNext appends the line of the first of packed entries, as AppendLine does with what a forward.EntryReader reads, in
// one pass over its bytes. n is what the entry takes: 0 if it is not as loggers write it or cannot be read; then nothing is
// appended, and an EntryReader knows more.
func (t *Text) AppendNext(dst []byte, tag string, entries []byte) (_ []byte, n int) {
	sec, nsec, ok := TimeOf(entries)
	if !ok {
		return dst, 0
	}
	start := len(dst)
	if dst, n = t.appendEvent(dst, tag, &forward.Entry{Sec: sec, Nsec: nsec, Record: entries[plainHead:]}); n == 0 {
		return dst[:start], 0
	}
	return dst, plainHead + n
}

// AppendNext appends the line of the first of packed entries, see [Text.AppendNext].
func (e *Encoder) AppendNext(dst []byte, tag string, entries []byte) (_ []byte, n int) {
	sec, nsec, ok := TimeOf(entries)
	if !ok {
		return dst, 0
	}
	start := len(dst)
	dst = e.appendEnvelope(dst, tag, sec, nsec)
	dst = e.comma(dst, start)
	before := len(dst)
	out, n, err := msgpack.AppendJSONPairs(dst, entries[plainHead:], e.names, forward.AppendExtJSON)
	if err != nil {
		return dst[:start], 0
	}
	if len(out) == before && before > start+1 {
		out = dst[:before-1]
	}
	return append(out, '}', '\n'), plainHead + n
}
