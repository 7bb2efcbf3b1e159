// SPDX-License-Identifier: Apache-2.0

//go:build unix

package processes

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// busy says that a server has as many connections to accept as it may have waiting.
func busy(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ECONNREFUSED) }

// ownCPU is what this process has used.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
