// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ring

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time of this process so far.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
