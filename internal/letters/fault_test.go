// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

var errFault = errors.New("the disk does not sync")

// faultFS is the operating system, but for syncs of files whose names begin with one of two
// prefixes: they fail while that is wanted.
type faultFS struct{ cursors, segments atomic.Bool }

type faultFile struct {
	*os.File
	fails *atomic.Bool
}

func (f *faultFS) file(file *os.File, err error) (journal.File, error) {
	if err != nil {
		return nil, err
	}
	fails := &f.segments
	if strings.HasPrefix(filepath.Base(file.Name()), "cursor-") {
		fails = &f.cursors
	}
	return faultFile{file, fails}, nil
}

func (f *faultFS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

func (f *faultFS) Lock(path string) (io.Closer, error) { return os.Create(path) }

func (f *faultFS) Create(path string) (journal.File, error) {
	return f.file(os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

func (f *faultFS) Open(path string) (journal.File, error) {
	return f.file(os.OpenFile(path, os.O_RDWR, 0))
}

func (f *faultFS) Rename(from, to string) error { return os.Rename(from, to) }

func (f *faultFS) Remove(path string) error { return os.Remove(path) }

func (f *faultFS) SyncDir(string) error { return nil }

func (f *faultFS) ReadDir(dir string) (list []journal.DirEntry, err error) {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		list = append(list, journal.DirEntry{Name: e.Name(), Regular: e.Type().IsRegular()})
	}
	return list, err
}

func (f faultFile) Allocate(size int64) error { return f.Truncate(size) }

func (f faultFile) Datasync() error {
	if f.fails.Load() {
		return errFault
	}
	return nil
}

func (f faultFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// TestStoreSyncFails: a letter of which it is not known whether it is stored is put again, and is
// there once.
func TestStoreSyncFails(t *testing.T) {
	dir := t.TempDir()
	fs := new(faultFS)
	s := mustOpen(t, dir, &Options{fs: fs})
	mustPut(t, s, letter("a", 1, 1))
	fs.segments.Store(true)
	for range 2 {
		if err := s.Put(t.Context(), letter("a", 2, 1)); !errors.Is(err, errFault) {
			t.Error(err)
		}
	}
	fs.segments.Store(false)
	deadline := time.Now().Add(4 * time.Minute)
	for err := errFault; err != nil; {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		err = s.Put(t.Context(), letter("a", 2, 1), letter("a", 3, 1))
	}
	if got := list(t, dir); !slices.Equal(got, []string{"a@1", "a@2", "a@3"}) || s.Stats().Letters != 3 {
		t.Errorf("%v, %+v", got, s.Stats())
	}
}

// TestStoreDropFails: nothing is dropped whose end cannot be committed, nor counted twice.
func TestStoreDropFails(t *testing.T) {
	dir := t.TempDir()
	fs := new(faultFS)
	s := mustOpen(t, dir, &Options{MaxBytes: 256 << 10, DropOldest: true, fs: fs})
	put := 0
	for s.Stats().Dropped == 0 {
		mustPut(t, s, letter("a", uint64(put), 100))
		put++
	}
	fs.cursors.Store(true)
	var err error
	for ; err == nil; put++ {
		err = s.Put(t.Context(), letter("a", uint64(put), 100))
	}
	put--
	before := s.Stats()
	for range 3 {
		if err := s.Put(t.Context(), letter("a", uint64(put), 100)); !errors.Is(err, errFault) ||
			!errors.Is(err, ErrFull) {
			t.Error(err)
		}
	}
	if st := s.Stats(); st != before {
		t.Errorf("%+v, before %+v", st, before)
	}
	fs.cursors.Store(false)
	mustPut(t, s, letter("a", uint64(put), 100))
	put++
	if st := s.Stats(); st.Events+st.Dropped != int64(100*put) || st.Dropped <= before.Dropped ||
		len(list(t, dir)) != int(st.Letters) {
		t.Errorf("%d put, %+v, %d letters", put, st, len(list(t, dir)))
	}
}
