// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// syncData makes the bytes of a file and its length durable, and leaves out the time of its last
// change.
func syncData(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	if err := c.Control(func(fd uintptr) {
		for {
			if syncErr = syscall.Fdatasync(int(fd)); !errors.Is(syncErr, syscall.EINTR) {
				return
			}
		}
	}); err != nil {
		return err
	}
	if syncErr != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: syncErr}
	}
	return nil
}

// pushData has the kernel begin to write what a file has got, and waits for none of it unless the
// disk has enough to do. Where it cannot be asked for, the kernel begins when it likes.
func pushData(f *os.File) {
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) { _ = unix.SyncFileRange(int(fd), 0, 0, unix.SYNC_FILE_RANGE_WRITE) })
}

// awaitWrites returns when the writes to a file that are under way are through: to look for data,
// ext4 and tmpfs take the lock that a write holds from its first byte to its last.
func awaitWrites(f *os.File) {
	const seekData = 3
	_, _ = f.Seek(0, seekData) // the answer does not matter, nor does the offset: writes append
}

// bootID says which start of the machine this is, 0 if that is not known.
var bootID = sync.OnceValue(func() uint32 {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id, _ := strconv.ParseUint(string(b[:min(8, len(b))]), 16, 32)
	return uint32(id)
})
