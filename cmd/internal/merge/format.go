// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"time"
)

// The formats, as Options name them. Auto finds the one of each file by its first lines.
const (
	Auto   = ""
	JSON   = "json"
	Logfmt = "logfmt"
	Text   = "text"
)

// A format finds the time of a line. A file has one, the first whose time is found.
type format struct {
	name string
	time func(line []byte, w *finder) (ns int64, ok bool)
}

var formats = []*format{
	{JSON, jsonTime},
	{Logfmt, logfmtTime},
	{Text, isoTime},
	{Text, monthTime},
	{Text, klogTime},
	{Text, unixTime},
	{Text, accessTime},
}

// detect finds the format of a file by its line and the whole lines behind it that are in memory,
// and the first time that stands there. What it has looked at in vain it does not look at again.
func (f *input) detect(name string) bool {
	if f.number <= f.looked {
		return false
	}
	f.looked = f.number
	for line, rest := f.line, f.buf[f.at:f.end]; ; f.looked++ {
		for _, c := range formats {
			if name != Auto && name != c.name {
				continue
			}
			if ns, ok := c.time(line, &f.finder); ok {
				f.format, f.time = c, ns
				return true
			}
		}
		switch n := bytes.IndexByte(rest, '\n'); {
		case n >= 0:
			line, rest = rest[:n], rest[n+1:]
		case f.ended != nil && len(rest) > 0: // the last line
			line, rest = rest, nil
		default:
			return false
		}
	}
}

// FormatOf is what a line is: JSON and Logfmt are what begins so, Text is all else.
func FormatOf(line []byte, timeKey string) string {
	if start := bytes.TrimLeft(line, " \t"); len(start) > 0 && start[0] == '{' {
		return JSON
	}
	if _, ok := logfmtTime(line, &finder{key: timeKey, zone: time.UTC}); ok {
		return Logfmt
	}
	return Text
}

func jsonTime(line []byte, w *finder) (ns int64, ok bool) {
	value, ok := field(line, w.key)
	if !ok {
		return 0, false
	}
	return parseTime(value, w)
}

func logfmtTime(line []byte, w *finder) (ns int64, ok bool) {
	value, ok := pair(line, w.key)
	if !ok && w.key == "time" {
		value, ok = pair(line, "ts")
	}
	if !ok {
		return 0, false
	}
	if n := len(value); n > 1 && value[0] == '"' {
		value = value[1 : n-1]
	}
	return parseText(value, w)
}

// pair returns the value of the first key of a logfmt line that is key, as it stands there. The
// line has to begin with a key and its value; what comes behind the value is not looked at.
func pair(line []byte, key string) (value []byte, ok bool) {
	for i := 0; i < len(line); i = space(line, i) {
		start := i
		for i < len(line) && line[i] > ' ' && line[i] != '=' && line[i] != '"' {
			i++
		}
		name := line[start:i]
		if len(name) == 0 || i < len(line) && line[i] == '"' {
			return nil, false
		}
		if i == len(line) || line[i] != '=' { // a key without a value
			if start == 0 {
				return nil, false
			}
			continue
		}
		i++
		start = i
		if i < len(line) && line[i] == '"' {
			if i = skipString(line, i); i < 0 {
				return nil, false
			}
		} else {
			for i < len(line) && line[i] > ' ' {
				i++
			}
		}
		if string(name) == key {
			return line[start:i], true
		}
	}
	return nil, false
}
