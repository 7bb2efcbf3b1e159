// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// osFS is the operating system.
type osFS struct{}

func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

func (osFS) Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lockOpen(f, path)
}

// lockOpen takes the lock of an open file, or closes it.
func lockOpen(f *os.File, path string) (io.Closer, error) {
	if err := lockFile(f); err != nil {
		defer f.Close()
		if !isLockHeld(err) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		b := make([]byte, 32)
		n, _ := f.ReadAt(b, 0)
		who := "another process"
		if pid := strings.TrimSpace(string(b[:n])); pid != "" {
			who = "process " + pid
		}
		return nil, fmt.Errorf("%w: %s holds %s", ErrLocked, who, path)
	}
	// The process number is only a hint for the message above: the lock itself is the kernel's.
	if err := f.Truncate(0); err == nil {
		fmt.Fprintln(f, os.Getpid())
	}
	return lockHolder{f}, nil
}

// A lockHolder is the open file whose lock is held.
type lockHolder struct{ *os.File }

// Close unlocks as well: a child that is being started just now has the file open, too, until it
// runs its program, and closing alone would leave it the lock.
func (h lockHolder) Close() error {
	return errors.Join(unlockFile(h.File), h.File.Close())
}

func (osFS) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return newFile(f)
}

func (osFS) Open(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return newFile(f)
}

func (osFS) Rename(oldpath, newpath string) error { return os.Rename(oldpath, newpath) }
func (osFS) Remove(path string) error             { return os.Remove(path) }

func (osFS) ReadDir(dir string) ([]DirEntry, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	r := make([]DirEntry, len(list))
	for i, e := range list {
		r[i] = DirEntry{Name: e.Name(), Regular: e.Type().IsRegular()}
		if info, err := e.Info(); err == nil {
			r[i].Modified = info.ModTime()
		}
	}
	return r, nil
}

func (osFS) SyncDir(dir string) error { return syncDir(dir) }

type osFile struct {
	*os.File
	conn syscall.RawConn // of the file, for what is asked often
}

func newFile(f *os.File) (File, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f, conn}, nil
}

func (f osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

func (f osFile) Allocate(size int64) error { return allocate(f.File, size) }
func (f osFile) Datasync() error           { return datasync(f.File) }

// Lock takes the lock of a journal's directory without opening the journal, for a caller that
// removes it: until the result is closed, Open of that directory fails with ErrLocked. The error
// wraps ErrLocked when another process has the journal open or replaces the directory just now, and
// fs.ErrNotExist when there is no directory.
func Lock(dir string) (io.Closer, error) {
	path := filepath.Join(dir, "lock")
	lock, err := osFS{}.Lock(path)
	if err != nil {
		return nil, err
	}
	held, err := lock.(lockHolder).Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = os.Stat(path); err == nil && os.SameFile(held, named) {
			return lock, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%w: %s was replaced", ErrLocked, path), err, lock.Close())
}
