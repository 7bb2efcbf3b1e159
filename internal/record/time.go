// SPDX-License-Identifier: Apache-2.0

package record

import "time"

const (
	// With the header of a short string before it, if it has at most 31 bytes.
	longTime = len("2006-01-02T15:04:05.999999999-07:00") + 1
	day      = 24 * 60 * 60
	year0    = -62167219200 // 0000-01-01 in Unix time
	year9999 = 253402300799 // the last second of 9999
	cycle400 = 146097       // days in 400 years
)

// appendTime appends a time as encoding/json writes it: RFC 3339, fraction without trailing zeros.
// Years that this does not allow are written all the same.
func appendTime(b []byte, t time.Time) []byte {
	buf, j := full(b, header+longTime)
	if k := putTime(buf, j, t); k > j {
		return buf[:k]
	}
	var text [64]byte
	return appendString(b, string(t.AppendFormat(text[:0], time.RFC3339Nano)))
}

// putTime returns j if the year has not four digits.
func putTime(buf []byte, j int, t time.Time) int {
	offset := 0
	if t.Location() != time.UTC {
		_, offset = t.Zone()
	}
	local := t.Unix() + int64(offset)
	if local < year0 || local > year9999 || offset <= -day || offset >= day {
		return j
	}
	seconds := uint64(local - year0)
	days := uint32(seconds / day)
	second := uint32(seconds % day)

	// Years that begin in March have their leap day at the end. One cycle more, so that nothing is
	// negative.
	z := days + cycle400 - 60
	era, doe := z/cycle400, z%cycle400
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d := doy - (153*mp+2)/5 + 1
	y, m := yoe+era*400-400, mp+3
	if m > 12 {
		y, m = y+1, m-12
	}

	at := j // the header is written when the length is known: 20 to 35 bytes
	s := buf[j+2 : j+2+35]
	put2(s, 0, y/100)
	put2(s, 2, y%100)
	s[4] = '-'
	put2(s, 5, m)
	s[7] = '-'
	put2(s, 8, d)
	s[10] = 'T'
	put2(s, 11, second/3600)
	s[13] = ':'
	put2(s, 14, second/60%60)
	s[16] = ':'
	put2(s, 17, second%60)
	n := 19
	if ns := uint32(t.Nanosecond()); ns != 0 {
		s[19] = '.'
		put2(s, 20, ns/10_000_000)
		put2(s, 22, ns/100_000%100)
		put2(s, 24, ns/1000%100)
		put2(s, 26, ns/10%100)
		s[28] = byte('0' + ns%10)
		n = 29
		for s[n-1] == '0' {
			n--
		}
	}
	if offset == 0 {
		s[n] = 'Z'
		n++
	} else {
		zone := offset / 60
		s[n] = '+'
		if zone < 0 {
			s[n], zone = '-', -zone
		}
		minutes := uint32(zone)
		put2(s, n+1, minutes/60)
		s[n+3] = ':'
		put2(s, n+4, minutes%60)
		n += 6
	}
	if n < 32 {
		buf[at] = 0xa0 | byte(n)
		return at + 1 + copy(buf[at+1:], s[:n])
	}
	buf[at], buf[at+1] = 0xd9, byte(n)
	return at + 2 + n
}

const digits = "00010203040506070809" +
	"10111213141516171819" +
	"20212223242526272829" +
	"30313233343536373839" +
	"40414243444546474849" +
	"50515253545556575859" +
	"60616263646566676869" +
	"70717273747576777879" +
	"80818283848586878889" +
	"90919293949596979899"

// put2 writes two digits.
func put2(s []byte, i int, v uint32) {
	s[i], s[i+1] = digits[2*v], digits[2*v+1]
}
