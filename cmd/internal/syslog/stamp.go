// SPDX-License-Identifier: Apache-2.0

package syslog

import "time"

// stamp reads a time at the start of b, and returns how long it is, 0 if there is none:
//
//	Nov 24 14:05:06    Nov  4 14:05:06.123    Nov 24 14:05:06.123 UTC: %SYS-5-…
//	Nov 24 2026 14:05:06    Nov 24 14:05:06 2026    2026 Nov 24 14:05:06
//	2026-11-24T14:05:06.123456+01:00    2026-11-24 14:05:06
//
// A time without a zone is of the given one, and so is one with a name that is not UTC or GMT: a
// name such as CST is of several zones. A time without a year is of the year that has its day and
// brings it nearest to now. A year behind the time is one only near to now: other digits are a
// host.
func stamp(b []byte, now time.Time, zone *time.Location) (time.Time, int) {
	if len(b) < 15 {
		return time.Time{}, 0
	}
	switch {
	case !isDigit(b[0]):
		return oldStamp(b, 0, now, zone)
	case b[4] != ' ':
		return isoStamp(b, zone)
	}
	year, ok := four(b)
	if !ok || len(b) < 20 {
		return time.Time{}, 0
	}
	when, n := oldStamp(b[5:], year, now, zone)
	if n > 0 {
		n += 5
	}
	return when, n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

const (
	halfYear  = 182 * 24 * time.Hour
	nearYears = 2 // how far from now a year may be that a host could be as well
	leapYears = 8 // at most, from one to the next
)

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

// oldStamp reads a time that begins with a month, in a year that is known if it is not 0.
func oldStamp(b []byte, year int, now time.Time, zone *time.Location) (time.Time, int) {
	month := 0
	for m := range 12 {
		if string(b[:3]) == months[3*m:3*m+3] {
			month = m + 1
		}
	}
	day, ok := two(b[4:], true)
	if month == 0 || b[3] != ' ' || !ok || day < 1 || day > 31 || b[6] != ' ' {
		return time.Time{}, 0
	}
	i := 7
	if year == 0 && len(b) >= 20 && b[11] == ' ' {
		if year, ok = four(b[7:]); !ok {
			return time.Time{}, 0
		}
		i = 12
	}
	hour, minute, second, nanos, n := clock(b[i:])
	if n == 0 {
		return time.Time{}, 0
	}
	i += n
	if year == 0 && len(b) >= i+6 && b[i] == ' ' && b[i+5] == ' ' {
		if y, ok := four(b[i+1:]); ok && max(y-now.Year(), now.Year()-y) <= nearYears {
			year = y
			i += 5
		}
	}
	if n, utc := zoneName(b[i:]); n > 0 {
		i += n
		if utc {
			zone = time.UTC
		}
	}
	if i < len(b) && b[i] != ' ' {
		return time.Time{}, 0
	}
	at := func(year int) time.Time {
		return time.Date(year, time.Month(month), day, hour, minute, second, nanos, zone)
	}
	switch {
	case year > 0 && exists(year, month, day):
		return at(year), i
	case year > 0 || !exists(2000, month, day):
		return time.Time{}, 0
	}
	var best time.Time
	if exists(now.Year(), month, day) {
		if best = at(now.Year()); best.Sub(now).Abs() <= halfYear {
			return best, i
		}
	}
	reach := 1
	if month == 2 && day == 29 {
		reach = leapYears
	}
	for y := now.Year() - reach; y <= now.Year()+reach; y++ {
		if !exists(y, month, day) {
			continue
		}
		if t := at(y); best.IsZero() || t.Sub(now).Abs() < best.Sub(now).Abs() {
			best = t
		}
	}
	return best, i
}

// exists says whether a month has a day, which is at most 31, in a year.
func exists(year, month, day int) bool {
	return day <= 28 || time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() == day
}

// zoneName reads " CET:", if a message of a router stands behind it: else it may be a program.
func zoneName(b []byte) (n int, utc bool) {
	if len(b) == 0 || b[0] != ' ' {
		return 0, false
	}
	for n = 1; n < len(b) && n <= 5 && b[n] >= 'A' && b[n] <= 'Z'; {
		n++
	}
	if n < 3 || n+3 >= len(b) || string(b[n:n+3]) != ": %" || b[n+3] < 'A' || b[n+3] > 'Z' {
		return 0, false
	}
	name := string(b[1:n])
	return n + 1, name == "UTC" || name == "GMT"
}

func isoStamp(b []byte, zone *time.Location) (time.Time, int) {
	year, ok1 := four(b)
	month, ok2 := two(b[5:], false)
	day, ok3 := two(b[8:], false)
	form := b[4] == '-' && b[7] == '-' && (b[10] == 'T' || b[10] == ' ')
	if !ok1 || !ok2 || !ok3 || !form || month < 1 || month > 12 || day < 1 || day > 31 || !exists(year, month, day) {
		return time.Time{}, 0
	}
	hour, minute, second, nanos, n := clock(b[11:])
	if n == 0 {
		return time.Time{}, 0
	}
	i := 11 + n
	if i < len(b) && b[i] == 'Z' {
		zone = time.UTC
		i++
	} else if i+3 <= len(b) && (b[i] == '+' || b[i] == '-') {
		hours, ok := two(b[i+1:], false)
		n, minutes := 3, 0
		if ok && i+6 <= len(b) && b[i+3] == ':' {
			minutes, ok = two(b[i+4:], false)
			n = 6
		} else if ok && i+5 <= len(b) && isDigit(b[i+3]) {
			minutes, ok = two(b[i+3:], false)
			n = 5
		}
		if !ok || hours > 15 || minutes > 59 {
			return time.Time{}, 0
		}
		seconds := 3600*hours + 60*minutes
		if b[i] == '-' {
			seconds = -seconds
		}
		zone = time.FixedZone("", seconds)
		i += n
	}
	if i < len(b) && b[i] != ' ' {
		return time.Time{}, 0
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanos, zone), i
}

// clock reads 14:05:06 and 14:05:06.123456, perhaps with a colon behind it, as some routers write.
func clock(b []byte) (hour, minute, second, nanos, n int) {
	if len(b) < 8 || b[2] != ':' || b[5] != ':' {
		return 0, 0, 0, 0, 0
	}
	hour, ok1 := two(b, false)
	minute, ok2 := two(b[3:], false)
	second, ok3 := two(b[6:], false)
	if !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 60 {
		return 0, 0, 0, 0, 0
	}
	n = 8
	if n+1 < len(b) && (b[n] == '.' || b[n] == ',') && isDigit(b[n+1]) {
		n++
		for unit := 100_000_000; n < len(b) && isDigit(b[n]); n++ {
			nanos += unit * int(b[n]-'0')
			unit /= 10
		}
	}
	if n < len(b) && b[n] == ':' {
		n++
	}
	return hour, minute, second, nanos, n
}

// two reads two digits; the first may be a space, if so allowed.
func two(b []byte, space bool) (v int, ok bool) {
	if len(b) < 2 || !isDigit(b[1]) {
		return 0, false
	}
	if space && b[0] == ' ' {
		return int(b[1] - '0'), true
	}
	return 10*int(b[0]-'0') + int(b[1]-'0'), isDigit(b[0])
}

func four(b []byte) (v int, ok bool) {
	high, ok1 := two(b, false)
	if !ok1 || len(b) < 4 {
		return 0, false
	}
	low, ok2 := two(b[2:], false)
	return 100*high + low, ok2
}
