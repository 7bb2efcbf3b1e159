// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error {
	err := control(f, func(fd uintptr) error {
		for {
			if err := unix.Fdatasync(int(fd)); err != unix.EINTR {
				return err
			}
		}
	})
	return os.NewSyscallError("fdatasync "+f.Name(), err)
}

func allocate(f *os.File, size int64) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	err = control(f, func(fd uintptr) error {
		for {
			if err := unix.Fallocate(int(fd), 0, 0, size); err != unix.EINTR {
				return err
			}
		}
	})
	// Not every file system can reserve; there the length alone must do, and a full disk is met by
	// a write.
	if (errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)) && fi.Size() < size {
		return f.Truncate(size)
	}
	if err != nil && fi.Size() < size {
		// A refused fallocate may have reserved a part: give it back, or a full disk stays full.
		_ = f.Truncate(fi.Size())
	}
	return os.NewSyscallError("fallocate "+f.Name(), err)
}
