// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// allocate reserves the file's memory. It does so in steps: tmpfs undoes all of a call that a signal interrupts, and a profiler's come each 10 ms.
func allocate(f *os.File, size int64) error {
	const step = 4 << 20
	for at := int64(0); at < size; {
		n := min(step, size-at)
		err := unix.Fallocate(int(f.Fd()), 0, at, n)
		switch {
		case err == nil:
			at += n
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return writeZeros(f, size)
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
	return nil
}

// keepFromChildren keeps a forked child from writing into its parent's ring.
func keepFromChildren(mem []byte) error {
	return os.NewSyscallError("madvise", unix.Madvise(mem, unix.MADV_DONTFORK))
}

// populate gives memory to a part of a mapping, and maps it, so that appends need not fault for each
// page. The error is errors.ErrUnsupported where the kernel (before 5.14) cannot, and errNoMemory where
// a write there would fault. (MAP_POPULATE would only read: the first write to a page of a shared file
// faults again.)
func populate(mem []byte) error {
	for {
		switch err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
			return errors.ErrUnsupported
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN):
			return fmt.Errorf("%w: %w", errNoMemory, err)
		}
	}
}

// punch takes the memory of a part of a mapping, which is zero from then on.
func punch(mem []byte) error {
	return os.NewSyscallError("madvise", unix.Madvise(mem, unix.MADV_REMOVE))
}

// dataEnd is where what was ever written ends between from and limit in a file of so many bytes: from,
// if there is nothing.
func dataEnd(f *os.File, size, from, limit int64) int64 {
	end := from
	for at := from; at < limit; {
		if at >= size {
			return limit // what the file lacks is met as a fault
		}
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		switch {
		case errors.Is(err, unix.ENXIO) || err == nil && data >= limit:
			return end
		case err != nil:
			return limit
		}
		if at, err = unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE); err != nil {
			return limit
		}
		end = min(at, limit)
	}
	return end
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
