// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"strings"
	"time"
)

// The times with which lines of text begin:
//
//	2026-11-21T02:03:04.5+01:00   isoTime: RFC 3339 and its kin, 2026/11/21 02:03:04,123 too
//	Nov 21 02:03:04               monthTime: syslog; Sat Nov 21 02:03:04.5 2026, Nov 21 2026 02:03:04
//	I1121 02:03:04.123456         klogTime: glog and klog
//	1795226584.123                unixTime
//	… [21/Nov/2026:02:03:04 +0100] …   accessTime: the common log format
//
// A bracket or a priority as syslog has it (<13>, <13>1) may stand before the first four. Each
// returns false unless the whole of the time is there and nothing clings to its end.

// before skips what may stand before a time.
func before(line []byte) []byte {
	if len(line) > 2 && line[0] == '<' {
		if n := bytes.IndexByte(line[:min(5, len(line))], '>'); n > 1 && digits(line[1:n]) >= 0 {
			line = bytes.TrimPrefix(line[n+1:], []byte("1 "))
		}
	}
	if len(line) > 0 && (line[0] == '[' || line[0] == '(') {
		line = line[1:]
	}
	return line
}

// A stamp is a time as it is being read: b[at:] is still to come.
type stamp struct {
	b                 []byte
	at                int
	year, month, day  int
	hour, minute, sec int
	nsec              int
	zoned             bool
	offset            int // seconds east of UTC
	failed            bool
}

// number takes n digits.
func (s *stamp) number(n int) int {
	if s.failed || s.at+n > len(s.b) {
		s.failed = true
		return 0
	}
	v := digits(s.b[s.at : s.at+n])
	s.failed = v < 0
	s.at += n
	return int(v)
}

// one takes one of the bytes.
func (s *stamp) one(of string) byte {
	if s.failed || s.at >= len(s.b) || strings.IndexByte(of, s.b[s.at]) < 0 {
		s.failed = true
		return 0
	}
	s.at++
	return s.b[s.at-1]
}

// has takes one of the bytes if it is there.
func (s *stamp) has(of string) bool {
	if s.failed || s.at >= len(s.b) || strings.IndexByte(of, s.b[s.at]) < 0 {
		return false
	}
	s.at++
	return true
}

// clock takes 02:03:04 and a fraction of any length, of which nine digits count.
func (s *stamp) clock() {
	s.hour = s.number(2)
	s.one(":")
	s.minute = s.number(2)
	s.one(":")
	s.sec = s.number(2)
	if s.failed || s.at+1 >= len(s.b) || s.b[s.at] != '.' && s.b[s.at] != ',' || !digit(s.b[s.at+1]) {
		return
	}
	unit := 100_000_000
	for s.at++; s.at < len(s.b) && digit(s.b[s.at]); s.at++ {
		s.nsec += unit * int(s.b[s.at]-'0')
		unit /= 10
	}
}

// zone takes Z, UTC, GMT, +01:00, +0100 or +01, all but the last perhaps behind a space. What is no
// zone stays.
func (s *stamp) zone() {
	if s.failed {
		return
	}
	z := *s
	apart := z.has(" ")
	rest := z.b[z.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("UTC")), bytes.HasPrefix(rest, []byte("GMT")):
		z.at += 3
	case z.has("Zz"):
	case z.has("+-"):
		sign := z.at - 1
		hours, minutes := z.number(2), 0
		if !z.failed && z.at < len(z.b) && (z.b[z.at] == ':' || digit(z.b[z.at])) {
			z.has(":")
			minutes = z.number(2)
		}
		if z.offset = hours*3600 + minutes*60; z.b[sign] == '-' {
			z.offset = -z.offset
		}
		z.failed = z.failed || hours > 23 || minutes > 59 || apart && z.at-sign < 5
	default:
		return
	}
	if z.zoned = true; !z.failed && z.ended() {
		*s = z
	}
}

// ended says that nothing clings to the end.
func (s *stamp) ended() bool {
	if s.at >= len(s.b) {
		return true
	}
	c := s.b[s.at]
	return !digit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c < 0x80
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// unix is the time that was read; ok says that it is one.
func (s *stamp) unix(w *finder) (ns int64, ok bool) {
	if s.failed || !s.ended() || s.hour > 23 || s.minute > 59 || s.sec > 60 || s.month < 1 || s.month > 12 ||
		s.day < 1 {
		return 0, false
	}
	if s.year == 0 {
		return s.guessed(w)
	}
	if s.year < 1678 || s.year > 2261 || s.day > days(s.year, s.month) {
		return 0, false
	}
	return s.in(w), true
}

func (s *stamp) in(w *finder) int64 {
	if s.zoned {
		of := int64(s.hour*3600 + s.minute*60 + s.sec - s.offset)
		return 1e9*(int64(civil(s.year, s.month, s.day))*86400+of) + int64(s.nsec)
	}
	return time.Date(s.year, time.Month(s.month), s.day, s.hour, s.minute, s.sec, s.nsec, w.zone).UnixNano()
}

// guessed is a time without a year: the last one that is not more than a day later than the file.
func (s *stamp) guessed(w *finder) (ns int64, ok bool) {
	limit := w.latest.Add(24 * time.Hour)
	s.year = limit.In(w.zone).Year()
	for range 9 { // between two leap days lie at most eight years
		if s.year < 1678 || s.year > 2261 {
			return 0, false
		}
		if s.day <= days(s.year, s.month) {
			if ns := s.in(w); ns <= limit.UnixNano() {
				return ns, true
			}
		}
		s.year--
	}
	return 0, false
}

// isoTime reads 2026-11-21T02:03:04, with any fraction and zone.
func isoTime(line []byte, w *finder) (ns int64, ok bool) {
	ns, _, ok = iso(before(line), w)
	return ns, ok
}

func iso(b []byte, w *finder) (ns int64, n int, ok bool) {
	s := stamp{b: b}
	s.year = s.number(4)
	if s.year == 0 {
		return 0, 0, false
	}
	s.month, s.day = s.dashed(s.one("-/"))
	s.one("Tt ")
	s.clock()
	s.zone()
	ns, ok = s.unix(w)
	return ns, s.at, ok
}

// dashed takes the 11-21 of a date.
func (s *stamp) dashed(dash byte) (month, day int) {
	month = s.number(2)
	s.one(string(rune(dash)))
	return month, s.number(2)
}

const months = "janfebmaraprmayjunjulaugsepoctnovdec"

// monthName takes the first three letters of a month, 0 if they are none.
func (s *stamp) monthName() int {
	if s.failed || s.at+3 > len(s.b) {
		s.failed = true
		return 0
	}
	name := [3]byte(s.b[s.at : s.at+3])
	for i := range name {
		name[i] |= 0x20
	}
	for m := 0; m < 12; m++ {
		if string(name[:]) == months[3*m:3*m+3] {
			s.at += 3
			return m + 1
		}
	}
	s.failed = true
	return 0
}

// monthTime reads Nov 21 02:03:04, with a year behind the day, or with a weekday before it and a
// year behind it.
func monthTime(line []byte, w *finder) (ns int64, ok bool) {
	s := stamp{b: before(line)}
	weekday := len(s.b) > 3 && s.b[3] == ' ' && bytes.Contains([]byte("sunmontuewedthufrisat"), bytes.ToLower(s.b[:3]))
	if weekday {
		s.at = 4
	}
	s.month = s.monthName()
	s.one(" ")
	s.has(" ")
	s.day = s.number(1)
	if s.at < len(s.b) && digit(s.b[s.at]) {
		s.day = s.day*10 + s.number(1)
	}
	s.has(",")
	s.one(" ")
	if s.at+4 < len(s.b) && s.b[s.at+4] == ' ' {
		s.year = s.number(4)
		s.one(" ")
	}
	s.clock()
	if weekday && s.year == 0 {
		s.zone()
		y := s
		y.one(" ")
		if y.year = y.number(4); !y.failed && y.year > 0 && y.ended() {
			s = y
		}
	}
	s.zone()
	return s.unix(w)
}

// klogTime reads I1121 02:03:04.123456.
func klogTime(line []byte, w *finder) (ns int64, ok bool) {
	s := stamp{b: line}
	s.one("IWEF")
	s.month, s.day = s.number(2), s.number(2)
	s.one(" ")
	s.clock()
	return s.unix(w)
}

// unixTime reads seconds since 1970, of the years 2001 to 2286, with up to nine digits more.
func unixTime(line []byte, _ *finder) (ns int64, ok bool) {
	s := stamp{b: before(line)}
	if s.at = 10; len(s.b) < s.at || digits(s.b[:s.at]) < 1e9 {
		return 0, false
	}
	if s.has(".") {
		for s.at < len(s.b) && digit(s.b[s.at]) {
			s.at++
		}
	}
	if !s.ended() {
		return 0, false
	}
	return parseUnix(s.b[:s.at])
}

const accessWithin = 512 // bytes, in which the common log format has its time

// accessTime reads the first [21/Nov/2026:02:03:04 +0100].
func accessTime(line []byte, w *finder) (ns int64, ok bool) {
	line = line[:min(len(line), accessWithin)]
	for {
		n := bytes.IndexByte(line, '[')
		if n < 0 {
			return 0, false
		}
		line = line[n+1:]
		s := stamp{b: line}
		s.day = s.number(2)
		s.one("/")
		s.month = s.monthName()
		s.one("/")
		s.year = s.number(4)
		s.one(":")
		s.clock()
		s.zone()
		if s.year > 0 && s.has("]") {
			s.at--
			return s.unix(w)
		}
	}
}

// civil are the days since 1970 until a day, of the years from 1 on.
func civil(year, month, day int) int {
	y, m := year, month-3 // years that begin with March
	if m < 0 {
		y, m = y-1, m+12
	}
	return 365*y + y/4 - y/100 + y/400 + (153*m+2)/5 + day - 1 - 719468
}

// days are those of a month.
func days(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}
