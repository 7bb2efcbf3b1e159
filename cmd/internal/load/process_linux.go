// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// clockTick is the unit of /proc/PID/stat: USER_HZ, which is 100 on every architecture that Go runs
// on.
const clockTick = time.Second / 100

func readUsage(pid int) (usage, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return usage{}, fmt.Errorf("no process %d: %w", pid, err)
	}
	u, err := parseStat(text, int64(os.Getpagesize()))
	if err != nil {
		return usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return u, nil
}

// parseStat reads what proc(5) says of /proc/PID/stat: the second field is the program's name in
// parentheses, in which any byte may be.
func parseStat(text []byte, page int64) (usage, error) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return usage{}, errors.New("its stat has no name")
	}
	const firstField, utime, stime, rss = 3, 14, 15, 24
	fields := bytes.Fields(text[end+1:])
	var numbers [rss + 1]int64
	for _, i := range [...]int{utime, stime, rss} {
		if len(fields) <= i-firstField {
			return usage{}, fmt.Errorf("its stat has %d fields", len(fields)+firstField-1)
		}
		n, err := strconv.ParseInt(string(fields[i-firstField]), 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("field %d of its stat: %w", i, err)
		}
		numbers[i] = n
	}
	return usage{cpu: time.Duration(numbers[utime]+numbers[stime]) * clockTick, resident: numbers[rss] * page}, nil
}
