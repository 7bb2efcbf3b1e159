// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

type statBuffer struct {
	short unix.Statx_t
	long  unix.Stat_t
	path  [1]byte // empty, with the zero that ends it
}

// links is how many names a file has. The number alone is asked for: on a recent kernel, asking for
// the times of a file makes the next write change them, which costs as much as the write.
func (b *statBuffer) links(fd uintptr) (uint64, error) {
	_, _, errno := unix.Syscall6(unix.SYS_STATX, fd, uintptr(unsafe.Pointer(&b.path)), unix.AT_EMPTY_PATH,
		unix.STATX_NLINK,
		uintptr(unsafe.Pointer(&b.short)), 0)
	if errno == 0 && b.short.Mask&unix.STATX_NLINK != 0 {
		return uint64(b.short.Nlink), nil
	}
	err := unix.Fstat(int(fd), &b.long) // an old kernel, or a sandbox that does not know the call
	return uint64(b.long.Nlink), err
}
