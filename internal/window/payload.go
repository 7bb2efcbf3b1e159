// SPDX-License-Identifier: Apache-2.0

package window

import (
	"encoding/binary"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// AppendPayload appends what stands before the record in an event's payload: the length of the tag
// as a uvarint, and the tag.
func AppendPayload(dst []byte, tag string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(tag)))
	return append(dst, tag...)
}

// CutPayload returns the tag and the record of a payload.
func CutPayload(p []byte) (tag, record []byte) {
	from, to := tagEnd(p)
	return p[from:to], p[to:]
}

// tagEnd returns where the tag begins and ends in a payload. Ends of 0: it is none.
func tagEnd(p []byte) (from, to int) {
	if len(p) == 0 {
		return 0, 0
	}
	if n := int(p[0]); n < 0x80 {
		if n+1 >= len(p) {
			return 0, 0
		}
		return 1, n + 1
	}
	n, k := binary.Uvarint(p)
	if k <= 0 || n >= uint64(len(p)-k) {
		return 0, 0
	}
	return k, k + int(n)
}

// entryHead is what appendEntry puts before a record.
const entryHead = 11

// deepest is how many maps and arrays a record may have inside each other: more than any that was
// appended has.
const deepest = 4 * msgpack.DefaultDepth

// sound says that b is one map, and nothing else. What was copied out of a ring comes from memory
// which others can write to: what is no record any more is lost, alone, and does not make a chunk
// that a server refuses.
func sound(b []byte) bool {
	if len(b) == 0 || b[0]&0xf0 != 0x80 && b[0]&0xfe != 0xde {
		return false
	}
	n, err := msgpack.Limits{Depth: deepest}.Skip(b)
	return err == nil && n == len(b)
}

// appendEntry appends the MessagePack bytes of an event without its tag. 0 stays 0; times that an
// EventTime cannot say become the nearest that it can.
func appendEntry(dst []byte, t int64, record []byte) []byte {
	sec, nsec := uint32(0), uint32(0)
	switch {
	case t <= 0:
	case t >= 1<<32*int64(time.Second):
		sec = 1<<32 - 1
	default:
		sec, nsec = uint32(t/int64(time.Second)), uint32(t%int64(time.Second))
	}
	dst = append(dst, 0x92, 0xd7, 0,
		byte(sec>>24), byte(sec>>16), byte(sec>>8), byte(sec),
		byte(nsec>>24), byte(nsec>>16), byte(nsec>>8), byte(nsec))
	return append(dst, record...)
}
