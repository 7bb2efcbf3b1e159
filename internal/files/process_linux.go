// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of times in /proc.
const tick = time.Second / 100

// processBegan says when the process began that has an id now, to some hundredths of a second.
func processBegan(pid int) (began time.Time, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Time{}, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // a name may have anything in it
	const start = 22 - 3                                            // proc(5) counts from 1, and the state is the third
	if len(fields) <= start {
		return time.Time{}, false
	}
	ticks, err := strconv.ParseInt(string(fields[start]), 10, 64)
	var up unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}, false
	}
	return time.Now().Add(time.Duration(ticks)*tick - time.Duration(up.Nano())), true
}
