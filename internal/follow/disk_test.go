// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spillwaylog/spillway/journal"
)

// A disk is the file system under a journal in a test. It syncs nothing, since no test here cuts
// the power. Once it is dead it takes nothing any more, as if the process had been killed.
type disk struct {
	dead   atomic.Bool
	cursor func() error // called before a cursor is written; nil: always fine
}

var errDead = errors.New("killed")

func (d *disk) check(path string) error {
	if d.dead.Load() {
		return errDead
	}
	if d.cursor != nil && strings.HasPrefix(filepath.Base(path), "cursor-") {
		return d.cursor()
	}
	return nil
}

func (d *disk) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

func (d *disk) Lock(path string) (io.Closer, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

func (d *disk) Create(path string) (journal.File, error) {
	return d.open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d *disk) Open(path string) (journal.File, error) { return d.open(path, os.O_RDWR) }

func (d *disk) open(path string, flags int) (journal.File, error) {
	if d.dead.Load() {
		return nil, errDead
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return &diskFile{f, d}, nil
}

func (d *disk) Rename(from, to string) error {
	if err := d.check(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (d *disk) Remove(path string) error {
	if d.dead.Load() {
		return errDead
	}
	return os.Remove(path)
}

func (d *disk) ReadDir(dir string) ([]journal.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	names := make([]journal.DirEntry, 0, len(entries))
	for _, e := range entries {
		names = append(names, journal.DirEntry{Name: e.Name(), Regular: e.Type().IsRegular()})
	}
	return names, err
}

func (d *disk) SyncDir(string) error { return nil }

type diskFile struct {
	*os.File
	d *disk
}

func (f *diskFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.d.check(f.Name()); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, at)
}

func (f *diskFile) Allocate(size int64) error {
	if now, err := f.Size(); err != nil || now >= size {
		return err
	}
	return f.Truncate(size)
}

func (f *diskFile) Datasync() error {
	if f.d.dead.Load() {
		return errDead
	}
	return nil
}

func (f *diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
