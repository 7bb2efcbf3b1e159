// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// ErrTimeFormat says that a format of times cannot be used.
var ErrTimeFormat = errors.New("unusable time format")

// A timeFormat is how a time stands in a line. The zero value is RFC 3339.
//
//	rfc3339   "2026-11-21T02:03:04.123456789Z"     read with any fraction and zone
//	unix      1795226584.123456789                 read also as text, with any fraction, with an exponent
//	unix_ms   1795226584123                        unix_us and unix_ns have three and six digits more
//	a layout  "21/Nov/2026:02:03:04 +0000"         02/Jan/2006:15:04:05 -0700: what package time takes
//
// A text can say the years 0 to 9999; other times are the text of their seconds,
// "253402300800.000000000".
type timeFormat struct {
	kind   timeKind
	scale  int    // of a number: it counts 10^-scale s
	layout string // of a layout
	text   []byte // what append wrote last by it
}

type timeKind uint8

const (
	rfc3339 timeKind = iota
	number
	layout
)

// numbers are the scales of the formats that are numbers.
var numbers = map[string]int{"unix": 0, "unix_ms": 3, "unix_us": 6, "unix_ns": 9}

// parseTimeFormat reads the name of a format, or a layout. The error wraps ErrTimeFormat.
func parseTimeFormat(text string) (timeFormat, error) {
	if text == "" || text == "rfc3339" {
		return timeFormat{}, nil
	}
	if scale, ok := numbers[text]; ok {
		return timeFormat{kind: number, scale: scale}, nil
	}
	if strings.Contains(text, "MST") {
		return timeFormat{}, fmt.Errorf("%w: %q: the abbreviation of a zone, MST, does not say how far from UTC it is, as -0700 does", ErrTimeFormat, text)
	}
	sample := time.Date(2026, 11, 21, 14, 3, 4, 0, time.UTC) // after noon, so that hours of a clock of twelve want PM
	if back, err := time.Parse(text, sample.Format(text)); err != nil || !back.Equal(sample) {
		return timeFormat{}, fmt.Errorf("%w: %q is none of rfc3339, unix, unix_ms, unix_us and unix_ns, "+
			"nor a layout of Go that says date and time of day, such as 2006-01-02 15:04:05", ErrTimeFormat, text)
	}
	return timeFormat{kind: layout, layout: text}, nil
}

// TimeReader returns what reads times of a format, as ReadOptions has it: raw is a number or a
// text, and text what it says if it is a text.
func TimeReader(format string) (read func(raw, text []byte, isText bool) (sec int64, nsec uint32, ok bool), err error) {
	f, err := parseTimeFormat(format)
	return f.read, err
}

// The seconds that RFC 3339 has words for.
const (
	yearZero  = -62167219200
	year10000 = 253402300800
)

func sayable(sec int64) bool { return yearZero <= sec && sec < year10000 }

const (
	nanos = 1_000_000_000
	day   = 24 * 60 * 60 // in seconds
)

// append appends a time as a JSON value. In all of the same second the value is the same but for n
// digits at b[at:], the first of the nine of the nanoseconds; n is 0 if the value is only of this
// very time.
func (f *timeFormat) append(b []byte, sec int64, nsec uint32) (_ []byte, at, n int) {
	switch {
	case f.kind == number:
		return appendUnix(b, sec, nsec, f.scale)
	case !sayable(sec):
		b, at, n = appendUnix(append(b, '"'), sec, nsec, 0)
		return append(b, '"'), at, n
	case f.kind == layout:
		f.text = time.Unix(sec, int64(nsec)).UTC().AppendFormat(f.text[:0], f.layout)
		return msgpack.AppendJSONString(b, f.text), 0, 0
	}
	b = append(b, '"')
	b = time.Unix(sec, 0).UTC().AppendFormat(b, time.RFC3339) // for which there is a fast way
	at = len(b)
	b = append(b, "000000000Z\""...)
	b[at-1] = '.'
	putDigits(b[at:at+9], nsec)
	return b, at, 9
}

// appendUnix appends a number of 10^-scale s. One of seconds has nine digits behind a point.
func appendUnix(b []byte, sec int64, nsec uint32, scale int) (_ []byte, at, n int) {
	n = scale
	if scale == 0 {
		n = 9
	}
	whole := uint64(sec)
	if sec < 0 { // it has its fraction above it
		b = append(b, '-')
		whole = -whole
		unit := uint32(math.Pow10(9 - n))
		if nsec = nsec / unit * unit; nsec > 0 {
			whole--
			nsec = nanos - nsec
		}
	}
	if whole > 0 || scale == 0 {
		b = strconv.AppendUint(b, whole, 10)
	}
	if scale == 0 {
		b = append(b, '.')
	}
	at = len(b)
	b = append(b, "000000000"[:n]...)
	putDigits(b[at:], nsec)
	if whole == 0 && scale > 0 { // it begins with the first digit that is not 0
		digits := bytes.TrimLeft(b[at:len(b)-1], "0")
		b = append(append(b[:at], digits...), b[len(b)-1])
	}
	if sec < 0 || whole == 0 {
		n = 0
	}
	return b, at, n
}

// putDigits writes the first of the nine digits of n, as many as dst takes.
func putDigits(dst []byte, n uint32) {
	if len(dst) == 9 {
		putNanos(dst, n)
		return
	}
	var all [9]byte
	putNanos(all[:], n)
	copy(dst, all[:])
}

// putNanos writes nine digits.
func putNanos(dst []byte, n uint32) {
	_ = dst[8]
	high, low := n/10000, n%10000 // five digits and four
	first, a, b := high/10000, high%10000/100, high%100
	c, d := low/100, low%100
	dst[0] = byte('0' + first)
	dst[1], dst[2] = twoDigits[2*a], twoDigits[2*a+1]
	dst[3], dst[4] = twoDigits[2*b], twoDigits[2*b+1]
	dst[5], dst[6] = twoDigits[2*c], twoDigits[2*c+1]
	dst[7], dst[8] = twoDigits[2*d], twoDigits[2*d+1]
}

// read reads what append writes, and more; see timeFormat. raw is a JSON value, and text what it
// says if it is a string.
func (f *timeFormat) read(raw, text []byte, isText bool) (sec int64, nsec uint32, ok bool) {
	if f.kind == number {
		if !isText {
			text = raw
		}
		return readUnix(text, f.scale)
	}
	if !isText {
		return 0, 0, false
	}
	var t time.Time
	if f.kind == rfc3339 {
		t, ok = readRFC3339(text)
	} else {
		var err error
		t, err = time.Parse(f.layout, string(text))
		ok = err == nil
	}
	if ok {
		if t.Location() != time.UTC {
			if _, east := t.Zone(); max(east, -east) >= day { // package time takes +24:00
				return 0, 0, false
			}
		}
		return t.Unix(), uint32(t.Nanosecond()), true
	}
	if len(text) < 11 || text[len(text)-10] != '.' {
		return 0, 0, false
	}
	sec, nsec, ok = readUnix(text, 0)
	return sec, nsec, ok && !sayable(sec)
}

// readRFC3339 reads all that RFC 3339 allows: T and Z may be small letters, T a space, and there
// are leap seconds, which become the second behind them.
func readRFC3339(text []byte) (t time.Time, ok bool) {
	const least = len("2006-01-02T15:04:05Z")
	if len(text) < least {
		return t, false
	}
	if t.UnmarshalText(text) == nil {
		return t, true
	}
	var buf [64]byte
	if len(text) > len(buf) {
		return t, false
	}
	b := append(buf[:0], text...)
	if b[10] == 't' || b[10] == ' ' {
		b[10] = 'T'
	}
	if last := len(b) - 1; b[last] == 'z' {
		b[last] = 'Z'
	}
	leap := bytes.Equal(b[15:19], []byte("9:60"))
	if leap {
		b[17], b[18] = '5', '9'
	}
	if t.UnmarshalText(b) != nil {
		return t, false
	}
	if leap {
		t = t.Add(time.Second)
	}
	return t, true
}

// maxExponent is beyond what any time needs.
const maxExponent = 400

// readUnix reads a decimal number of 10^-scale s by its digits: as a float it would lose some. What
// is less than a nanosecond is left out.
func readUnix(text []byte, scale int) (sec int64, nsec uint32, ok bool) {
	text, negative := bytes.CutPrefix(text, []byte{'-'})
	exponent := 0
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(string(text[i+1:])); err != nil || max(exponent, -exponent) > maxExponent {
			return 0, 0, false
		}
		text = text[:i]
	}
	before, behind, point := bytes.Cut(text, []byte{'.'})
	if len(before) == 0 || point && len(behind) == 0 {
		return 0, 0, false
	}
	digits := len(before) + len(behind)
	digit := func(i int) uint64 {
		switch {
		case i < 0 || i >= digits:
			return 0
		case i < len(before):
			return uint64(before[i] - '0')
		}
		return uint64(behind[i-len(before)] - '0')
	}
	for i := range digits {
		if digit(i) > 9 {
			return 0, 0, false
		}
	}
	seconds := len(before) + exponent - scale // so many digits are of the seconds
	whole := uint64(0)
	for i := range seconds {
		if whole > math.MaxInt64/10 {
			return 0, 0, false
		}
		whole = 10*whole + digit(i)
	}
	n := uint64(0)
	for i := range 9 {
		n = 10*n + digit(seconds+i)
	}
	switch {
	case !negative:
		return int64(whole), uint32(n), whole <= math.MaxInt64
	case n == 0:
		return int64(-whole), 0, whole <= math.MaxInt64+1
	}
	return -int64(whole) - 1, uint32(nanos - n), whole <= math.MaxInt64
}

const twoDigits = "00010203040506070809" +
	"10111213141516171819" +
	"20212223242526272829" +
	"30313233343536373839" +
	"40414243444546474849" +
	"50515253545556575859" +
	"60616263646566676869" +
	"70717273747576777879" +
	"80818283848586878889" +
	"90919293949596979899"
