// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// lockFile locks an open file until it is closed: shared by those that write it, exclusive for the
// one that compresses it. It reports false if others' locks forbid that; a file system without
// locks forbids nothing.
func lockFile(f *os.File, exclusive bool) bool {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	return !errors.Is(control(f, how|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// lockDir locks the directory of a path against others that rotate files in it. ok is false if one
// does so now.
func lockDir(path string) (unlock func(), ok bool) {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return func() {}, true // what follows fails by itself, or needs no more than the right to search
	}
	if !lockFile(d, true) {
		d.Close()
		return nil, false
	}
	return func() { d.Close() }, true
}

// canWait says that awaitFile locks.
const canWait = true

// awaitFile locks a file exclusively, for as long as it takes.
func awaitFile(f *os.File) error { return control(f, syscall.LOCK_EX) }

// claimFile locks a file exclusively, or says why not: errBusy if others' locks forbid it.
func claimFile(f *os.File) error {
	err := control(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errBusy
	}
	if err != nil {
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return nil
}

// processLives reports whether a process has an id, as far as this one can see.
func processLives(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func unlockFile(f *os.File) { _ = control(f, syscall.LOCK_UN) }

func control(f *os.File, how int) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		for {
			if failed = syscall.Flock(int(fd), how); !errors.Is(failed, syscall.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, failed)
}
