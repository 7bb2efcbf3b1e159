// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package spillway

import "syscall"

// nbFree says how many bytes are free where a folder lies: a logger whose file system is full
// waits, and so would a benchmark.
func nbFree(dir string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // each system has types of its own
}
