// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/spillwaylog/spillway/msgpack"
)

// maxUsual is how many bytes a time that usualTime knows takes at most, with the first byte of the
// record behind it.
const maxUsual = 13

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
// 0 and for one that is wrong. b is maxUsual bytes or more.
func usualTime(b []byte) int {
	b = b[:maxUsual]
	switch {
	case usualEventTime(b):
		return eventTimeSize
	case b[0] == codeUint32 && binary.BigEndian.Uint32(b[1:]) != 0:
		return 5
	case b[0] == CodeArray2 && b[11] == CodeMap0 && usualEventTime(b[1:]):
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
	case msgpack.KindInt, msgpack.KindUint:
		if sec, ok := t.Int(); ok {
			return sec, 0, n, nil
		}
	case msgpack.KindFloat32, msgpack.KindFloat64:
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
	case msgpack.KindExt:
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

// AppendEventTime appends a time as EventTime in its shortest form. Seconds are cut to 32 bits.
func AppendEventTime(dst []byte, sec int64, nsec uint32) []byte {
	sec = min(max(sec, 0), math.MaxUint32)
	dst = append(dst, codeFixExt8, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(sec))
	return binary.BigEndian.AppendUint32(dst, nsec)
}
