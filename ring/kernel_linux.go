// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// allocate reserves the file's memory.
func allocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
			return writeZeros(f, size)
		}
		return os.NewSyscallError("fallocate", err)
	}
}

// keepFromChildren keeps a forked child from writing into its parent's ring.
func keepFromChildren(mem []byte) error {
	return os.NewSyscallError("madvise", unix.Madvise(mem, unix.MADV_DONTFORK))
}

// populate is false where the kernel (before 5.14) cannot; then appends fault each page in. (MAP_POPULATE would only read: the first write to a page of
// a shared file faults again.)
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
