// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"io"
	"time"
)

// FS is the file seam: every call the journal makes to the kernel goes through it, so that a test
// can cut the power. Paths are as the operating system writes them.
type FS interface {
	// MkdirAll makes the directory and its missing parents, mode 0700.
	MkdirAll(dir string) error
	// Lock takes the lock file, creating it, without waiting. When a living process holds it the
	// error wraps ErrLocked and names the process if that is known. Closing releases.
	Lock(path string) (io.Closer, error)
	// Create makes a new file for reading and writing, mode 0600; it is an error when the name
	// exists.
	Create(path string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(path string) (File, error)
	// Rename replaces newpath. It is durable after SyncDir.
	Rename(oldpath, newpath string) error
	Remove(path string) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(dir string) ([]DirEntry, error)
	// SyncDir makes creations, renames and removals in dir durable.
	SyncDir(dir string) error
}

// File is an open file. One that has a method Linked() (bool, error) is asked after each sync, and
// by [Journal.Check], whether it still has a name: what was removed stores nothing. Methods may be
// called at the same time; Close makes the others fail.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Allocate makes the file at least size bytes long with its blocks reserved where the system
	// can do that, so that a full disk is met here and not while writing. New bytes read as zero;
	// old ones stay.
	Allocate(size int64) error
	// Datasync makes everything written, and the length, durable.
	Datasync() error
	Size() (int64, error)
	Truncate(size int64) error
	Close() error
}

// closeFile closes a file once.
func closeFile(f *File) error {
	c := *f
	*f = nil
	if c == nil {
		return nil
	}
	return c.Close()
}

// DirEntry is a name in a directory.
type DirEntry struct {
	Name     string
	Regular  bool      // a plain file, not a directory, link or device
	Modified time.Time // when it was last written to; zero where that is not known
}
