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

// parseTime reads a value: a string of RFC 3339, or seconds since 1970 as a number. The result is
// in nanoseconds since 1970.
func parseTime(v []byte) (ns int64, ok bool) {
	if len(v) > 2 && v[0] == '"' {
		v = v[1 : len(v)-1]
		if ns, ok := parseUTC(v); ok {
			return ns, true
		}
		t, err := time.Parse(time.RFC3339Nano, string(v))
		if err != nil || t.Before(earliest) || t.After(latest) {
			return 0, false
		}
		return t.UnixNano(), true
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
	year, month, day := digits(v[:4]), digits(v[5:7]), digits(v[8:10])
	hour, minute, sec := digits(v[11:13]), digits(v[14:16]), digits(v[17:19])
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
		ns = int64(d)
	}
	// The days since 1970, counted in years that begin with March.
	y, m := year, month-3
	if m < 0 {
		y, m = y-1, m+12
	}
	days := 365*y + y/4 - y/100 + y/400 + (153*m+2)/5 + day - 1 - 719468
	return ns + 1e9*(int64(days)*86400+int64(hour*3600+minute*60+sec)), true
}

// digits returns the number, -1 if there is something else than digits.
func digits(v []byte) int {
	n := 0
	for _, c := range v {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// parseUnix reads seconds with a fraction. A plain decimal is exact.
func parseUnix(v []byte) (ns int64, ok bool) {
	whole, part, _ := bytes.Cut(v, []byte{'.'})
	if len(whole) > 0 && len(whole) <= 10 && len(part) <= 9 {
		sec, frac := digits(whole), digits(part)
		if sec >= 0 && frac >= 0 && int64(sec) < math.MaxInt64/1_000_000_000 {
			for range 9 - len(part) {
				frac *= 10
			}
			return int64(sec)*1e9 + int64(frac), true
		}
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !(math.Abs(f) < 9.2e9) {
		return 0, false
	}
	return int64(f * 1e9), true
}
