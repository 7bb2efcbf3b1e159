// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package journal

import "os"

// Sync is F_FULLFSYNC on darwin, FlushFileBuffers on Windows.
func datasync(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error {
	fi, err := f.Stat()
	if err != nil || fi.Size() >= size {
		return err
	}
	return f.Truncate(size)
}
