// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openFlags: a symbolic link at the end of the path is not followed, and a FIFO or a terminal found
// there neither makes the open wait nor becomes ours.
const openFlags = os.O_RDWR | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY

// readFlags are those for reading a rotated file.
const readFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// removeOpen: the name of an open file can be removed or changed, while its lock is held.
const removeOpen = true

// fileID is what a file is, whatever it is called.
type fileID struct{ dev, inode uint64 }

func idOf(_ *os.File, info fs.FileInfo) (fileID, error) {
	st := info.Sys().(*syscall.Stat_t)
	return fileID{dev: uint64(st.Dev), inode: st.Ino}, nil
}

// isOurs reports whether a file belongs to the user that the process acts for.
func isOurs(info fs.FileInfo) bool {
	return int(info.Sys().(*syscall.Stat_t).Uid) == os.Geteuid()
}

// idAt returns what is at a path now; a symbolic link is itself.
func idAt(path string) (id fileID, size int64, err error) {
	var st syscall.Stat_t
	for {
		err = syscall.Lstat(path, &st)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return fileID{}, 0, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return fileID{dev: uint64(st.Dev), inode: st.Ino}, st.Size, nil
}

// writeOnce is a Write that does not go on after the kernel took a part: others' lines may be in
// between by then.
func writeOnce(f *os.File, b []byte) (n int, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = c.Write(func(fd uintptr) bool {
		for {
			n, failed = syscall.Write(int(fd), b)
			if !errors.Is(failed, syscall.EINTR) {
				return true
			}
		}
	})
	if failed != nil {
		err = &fs.PathError{Op: "write", Path: f.Name(), Err: failed}
	}
	return max(n, 0), err
}

// isLink reports whether an open failed because a symbolic link was not followed.
func isLink(err error) bool { return errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) }

// syncDir makes the names in a directory durable. File systems that cannot are believed, and so are
// directories that may be written but not read.
func syncDir(path string) error {
	d, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
