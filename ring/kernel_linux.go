// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// allocate reserves memory for a part of a file. It does so in steps: tmpfs undoes all of a call
// that a signal interrupts, and a profiler's come each 10 ms. The file keeps its length: where
// another process has cut it, zeros would be in place of what faults now.
func allocate(f *os.File, from, to int64) error {
	const step = 4 << 20
	for from < to {
		n := min(step, to-from)
		err := fallocate(f, unix.FALLOC_FL_KEEP_SIZE, from, n)
		switch {
		case err == nil:
			from += n
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return writeZeros(f, from, to)
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
	return nil
}

// allocateOverwrites says that allocate has to write zeros, as in a sandbox with a kernel of its
// own: what is there is gone then. The first page is needed anyway.
func allocateOverwrites(f *os.File) bool {
	err := fallocate(f, unix.FALLOC_FL_KEEP_SIZE, 0, pageSize)
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}

func fallocate(f *os.File, mode uint32, off, n int64) error {
	c, err := f.SyscallConn() // not f.Fd: the file may be closed meanwhile
	if err != nil {
		return err
	}
	ferr := error(nil)
	if err := c.Control(func(fd uintptr) { ferr = unix.Fallocate(int(fd), mode, off, n) }); err != nil {
		return err
	}
	return ferr
}

const canPunch = true

// punch gives the memory of a part of a file back.
func punch(f *os.File, from, to int64) error {
	for {
		if err := fallocate(f, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from); !errors.Is(err,
			unix.EINTR) {
			return err
		}
	}
}

// room is how much more there is in the file system, as far as it says.
func room(f *os.File) int64 {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil || st.Blocks == 0 { // a tmpfs without a limit
		return math.MaxInt64
	}
	return int64(min(st.Bavail, 1<<40)) * int64(st.Bsize)
}

func isTmpfs(f *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && st.Type == unix.TMPFS_MAGIC
}

// dataEnd is where the first hole begins from off on: off itself if it lies in one. What was
// allocated and not touched is one, too.
func dataEnd(f *os.File, off int64) int64 {
	at, err := unix.Seek(int(f.Fd()), off, unix.SEEK_HOLE)
	if err != nil {
		return math.MaxInt64
	}
	return at
}

// keepFromChildren keeps a forked child from writing into its parent's ring.
func keepFromChildren(mem []byte) error {
	return os.NewSyscallError("madvise", unix.Madvise(mem, unix.MADV_DONTFORK))
}

// populate maps memory, so that appends need not fault each page in; they do where the kernel
// (before 5.14) cannot. (MAP_POPULATE would only read: the first write to a page of a shared file
// faults again.)
func populate(mem []byte) {
	for errors.Is(unix.Madvise(mem, unix.MADV_POPULATE_WRITE), unix.EINTR) {
	}
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
