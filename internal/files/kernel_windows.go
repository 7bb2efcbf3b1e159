// SPDX-License-Identifier: Apache-2.0

//go:build windows

package files

import (
	"io/fs"
	"os"
	"syscall"
)

const openFlags = os.O_RDWR | os.O_APPEND

const readFlags = os.O_RDONLY

const removeOpen = false

// fileID is what a file is, whatever it is called.
type fileID struct{ dev, inode uint64 }

func idOf(f *os.File, _ fs.FileInfo) (fileID, error) {
	var d syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &d); err != nil {
		return fileID{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return fileID{dev: uint64(d.VolumeSerialNumber), inode: uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)}, nil
}

func isOurs(fs.FileInfo) bool { return true }

// idAt returns what is at a path now.
func idAt(path string) (id fileID, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return fileID{}, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileID{}, 0, err
	}
	id, err = idOf(f, info)
	return id, info.Size(), err
}

func writeOnce(f *os.File, b []byte) (int, error) { return f.Write(b) }

func isLink(error) bool { return false }

// syncDir: Windows has no such thing.
func syncDir(string) error { return nil }
