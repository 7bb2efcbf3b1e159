// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// The locked byte lies far behind the text, so that others can still read which process holds the
// lock.
const lockOffset = 1 << 30

func lockFile(f *os.File) error {
	return control(f, func(fd uintptr) error {
		return windows.LockFileEx(windows.Handle(fd), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
			0, 1, 0,
			&windows.Overlapped{Offset: lockOffset})
	})
}

// unlockFile has nothing to do: a lock goes with the handle, which no child has.
func unlockFile(*os.File) error { return nil }

func isLockHeld(err error) bool {
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING)
}

func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// syncDir has no counterpart: NTFS logs its directories.
func syncDir(string) error { return nil }
