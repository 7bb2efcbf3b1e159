// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package journal

import "golang.org/x/sys/unix"

type statBuffer unix.Stat_t

// links is how many names a file has.
func (b *statBuffer) links(fd uintptr) (uint64, error) {
	err := unix.Fstat(int(fd), (*unix.Stat_t)(b))
	return uint64(b.Nlink), err
}
