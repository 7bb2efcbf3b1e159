// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"log/slog"
	"strconv"
	"strings"
)

// The levels that slog has no names for. In records the levels are TRACE, DEBUG, INFO, WARN, ERROR and FATAL; those between
// are written like INFO+2.
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
	i := min(max(int(l-LevelTrace)/apart, 0), len(named)-1)
	if l < LevelTrace {
		i = 0
	}
	d := int(l) - (int(LevelTrace) + i*apart)
	if d < 0 {
		return named[i] + strconv.Itoa(d)
	}
	return named[i] + "+" + strconv.Itoa(d)
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
