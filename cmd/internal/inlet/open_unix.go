// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package inlet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open makes the file and its folder, or takes over what a dead process left. The error wraps
// [ErrInUse] where another process has it. What cannot be read is renamed, and told.
func Open(path string, report func(error)) (*Inlet, error) {
	if err := ensureDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	for range 10 {
		f, err := lockedFile(path)
		if err != nil {
			return nil, err
		}
		in, err := open(f)
		if err == nil {
			return in, nil
		}
		if errors.Is(err, errCorrupt) {
			aside := fmt.Sprintf("%s.bad-%d", path, os.Getpid())
			if moved := os.Rename(path, aside); moved != nil {
				return nil, errors.Join(err, moved, f.Close())
			}
			report(fmt.Errorf("%s: %w; it is %s now", path, err, aside))
			_ = f.Close() // it has no name any more
			continue
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return nil, fmt.Errorf("%s: it is removed again and again", path)
}

// ensureDir makes the folder, and refuses one in which others could put things.
func ensureDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.IsDir() || !ok || st.Uid != uint32(os.Geteuid()) || fi.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a folder of this user alone", dir)
	}
	return nil
}

// lockedFile opens the file that the path leads to, and locks it.
func lockedFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = ErrInUse
			}
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
		}
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Lstat(path); err == nil && os.SameFile(mine, there) {
			return f, nil
		}
		_ = f.Close() // it was removed while this waited for nothing
	}
}

func open(f *os.File) (*Inlet, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, len(magic))
	if n, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	} else if n < len(head) || string(head) == string(make([]byte, len(head))) {
		// New, or its maker was killed. Written and not mapped: then no room is an error, no fault.
		if _, err := f.WriteAt(fresh(), 0); err != nil {
			return nil, err
		}
		if _, err := f.WriteAt([]byte(magic), 0); err != nil {
			return nil, err
		}
	} else if fi.Size() != fileSize {
		return nil, errCorrupt
	}
	in := &Inlet{f: f}
	if in.mem, err = unix.Mmap(int(f.Fd()), 0, fileSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	if err := in.begin(); err != nil {
		return nil, errors.Join(err, unix.Munmap(in.mem))
	}
	return in, nil
}

// Close lets go of the inlet. One that holds nothing is removed.
func (in *Inlet) Close() error {
	var err error
	if in.Left() == 0 {
		err = os.Remove(in.f.Name())
	}
	return errors.Join(err, unix.Munmap(in.mem), in.f.Close())
}

// PipeOf tells what a file reads from: a pipe, a socket. Of others it is nothing: to open them
// again is to begin anew.
func PipeOf(f *os.File) (s Pipe) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Pipe{}
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFIFO && kind != unix.S_IFSOCK {
		return Pipe{}
	}
	return Pipe{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // not so on every system
}
