// SPDX-License-Identifier: Apache-2.0

//go:build unix

package spill

import (
	"os"

	"golang.org/x/sys/unix"
)

// writable says why nothing can be made in a folder, without making anything.
func writable(dir string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}
