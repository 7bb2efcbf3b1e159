// SPDX-License-Identifier: Apache-2.0

//go:build unix

package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func lockFile(f *os.File) error {
	return control(f, func(fd uintptr) error { return unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
}

func unlockFile(f *os.File) error {
	return control(f, func(fd uintptr) error { return unix.Flock(int(fd), unix.LOCK_UN) })
}

func isLockHeld(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }

// isNoSpace tells a full disk or quota from other errors.
func isNoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil // a file system that keeps directories in order itself
	}
	return errors.Join(err, d.Close())
}
