// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// allocate reserves the file's memory. It does so in steps: tmpfs undoes all of a call that a
// signal interrupts, and a profiler's come each 10 ms.
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

// populate is false where the kernel (before 5.14) cannot; then appends fault each page in.
// (MAP_POPULATE would only read: the first write to a page of a shared file faults again.)
func populate(mem []byte) bool {
	for {
		if err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
