// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// field returns the value of the first key of an object that is key, as it stands in the line. What
// comes behind the value is not looked at.
func field(line []byte, key string) (value []byte, ok bool) {
	i := space(line, 0)
	if i >= len(line) || line[i] != '{' {
		return nil, false
	}
	for i++; ; i++ {
		i = space(line, i)
		end := skipString(line, i)
		if end < 0 {
			return nil, false
		}
		found := sameKey(line[i:end], key)
		if i = space(line, end); i >= len(line) || line[i] != ':' {
			return nil, false
		}
		i = space(line, i+1)
		if end = skipValue(line, i); end < 0 {
			return nil, false
		}
		if found {
			return line[i:end], true
		}
		if i = space(line, end); i >= len(line) || line[i] != ',' {
			return nil, false
		}
	}
}

// sameKey compares a key with its quotes.
func sameKey(quoted []byte, key string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == key
	}
	var s string
	return json.Unmarshal(quoted, &s) == nil && s == key
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at i, -1 if there is none.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		slash := bytes.IndexByte(b[i:i+n], '\\')
		if slash < 0 {
			return i + n + 1
		}
		if i += slash + 2; i > len(b) {
			return -1
		}
	}
}

// skipValue returns the index behind the value that begins at i, -1 if it has no end.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && space(b, i) == i {
		i++
	}
	if i == start || i == len(b) {
		return -1
	}
	return i
}

func skipNested(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = skipString(b, i) - 1; i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// parseTime reads a value: a text as parseText does, or a number as parseUnix does. The result is
// in nanoseconds since 1970.
func parseTime(v []byte, w *finder) (ns int64, ok bool) {
	if len(v) > 2 && v[0] == '"' {
		return parseText(v[1:len(v)-1], w)
	}
	return parseUnix(v)
}

// parseText reads a time as RFC 3339 has it, as isoTime reads it, or as parseUnix does, and nothing
// behind it.
func parseText(v []byte, w *finder) (ns int64, ok bool) {
	if ns, ok := parseUTC(v); ok {
		return ns, true
	}
	if ns, n, ok := iso(v, w); ok {
		return ns, n == len(v)
	}
	return parseUnix(v)
}

var (
	earliest = time.Unix(0, math.MinInt64)
	latest   = time.Unix(0, math.MaxInt64)
)

// parseUTC reads 2006-01-02T15:04:05Z with up to nine digits behind the seconds, of the years 1970
// to 2199; everything else is left to package time.
func parseUTC(v []byte) (ns int64, ok bool) {
	n := len(v)
	if n < 20 || v[4] != '-' || v[7] != '-' || v[10] != 'T' || v[13] != ':' || v[16] != ':' || v[n-1] != 'Z' {
		return 0, false
	}
	year, month, day := int(digits(v[:4])), int(digits(v[5:7])), int(digits(v[8:10]))
	hour, minute, sec := int(digits(v[11:13])), int(digits(v[14:16])), int(digits(v[17:19]))
	if year < 1970 || year > 2199 || month < 1 || month > 12 || day < 1 || day > 28 ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 || sec < 0 || sec > 59 {
		return 0, false // days beyond the 28th depend on the month
	}
	if n > 20 {
		part := v[20 : n-1]
		if v[19] != '.' || len(part) == 0 || len(part) > 9 {
			return 0, false
		}
		d := digits(part)
		if d < 0 {
			return 0, false
		}
		for range 9 - len(part) {
			d *= 10
		}
		ns = d
	}
	return ns + 1e9*(int64(civil(year, month, day))*86400+int64(hour*3600+minute*60+sec)), true
}

// digits returns the number, -1 if there is something else than digits.
func digits(v []byte) int64 {
	n := int64(0)
	for _, c := range v {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// parseUnix reads what has passed since 1970: seconds, or by their size milliseconds, microseconds
// or nanoseconds. A plain decimal is exact.
func parseUnix(v []byte) (ns int64, ok bool) {
	whole, part, _ := bytes.Cut(v, []byte{'.'})
	ago, frac := int64(-1), digits(part)
	if len(whole) > 0 && len(whole) <= 19 && len(part) <= 9 {
		ago = digits(whole) // of 19 digits all fit, or have become less than nothing
	}
	if ago >= 0 && frac >= 0 {
		unit := int64(1e9)
		for limit := 10; len(whole) > limit && unit > 1; limit += 3 {
			unit /= 1000
		}
		if ago > math.MaxInt64/unit-1 {
			return 0, false
		}
		for range 9 - len(part) {
			frac *= 10
		}
		return ago*unit + frac/(1e9/unit), true
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !(math.Abs(f) < 9.2e9) {
		return 0, false
	}
	return int64(f * 1e9), true
}

// A finder is what a format needs to find the time of a line.
type finder struct {
	key    string
	zone   *time.Location // of times that say none
	latest time.Time      // times that say no year are at most a day later
}
