// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"log/slog"
	"strconv"
	"strings"
)

// The levels that slog has no names for. In records the levels are TRACE, DEBUG, INFO, WARN, ERROR
// and FATAL; those between are written like INFO+2.
const (
	LevelTrace = slog.Level(-8)
	LevelFatal = slog.Level(12)
)

// named are the levels with a name, four apart.
var named = [...]string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}

const apart = 4

// nth returns which of the named levels l is.
func nth(l slog.Level) (i int, ok bool) {
	d := uint(l - LevelTrace)
	return int(d / apart), d%apart == 0 && d/apart < uint(len(named))
}

// levelText returns the text of any level.
func levelText(l slog.Level) string {
	if i, ok := nth(l); ok {
		return named[i]
	}
	var b [maxLevelText]byte
	return string(appendLevelText(b[:0], l))
}

// maxLevelText is the length of the longest level: a name, a sign and 19 digits.
const maxLevelText = 25

func appendLevelText(b []byte, l slog.Level) []byte {
	i := int(min(max(l, LevelTrace), LevelFatal)-LevelTrace) / apart
	b = append(b, named[i]...)
	d := int64(l) - (int64(LevelTrace) + int64(i*apart))
	if d == 0 {
		return b
	}
	if d > 0 {
		b = append(b, '+')
	}
	return strconv.AppendInt(b, d, 10)
}

// parseLevel is the reverse of levelText.
func parseLevel(s string) (slog.Level, bool) {
	for i, name := range named {
		rest, ok := strings.CutPrefix(s, name)
		if !ok {
			continue
		}
		l := LevelTrace + slog.Level(i*apart)
		if rest == "" {
			return l, true
		}
		d, err := strconv.Atoi(rest)
		return l + slog.Level(d), err == nil
	}
	return 0, false
}
