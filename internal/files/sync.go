// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
)

// Sync writes all that waits, makes it durable, and returns the state to be committed, in one piece with the position up
// to which lines were appended, before the next Append or Write.
func (s *Set) Sync() ([]byte, error) {
	if err := s.Write(); err != nil {
		return nil, err
	}
	open := make([]*file, 0, s.openFiles.n)
	for f := s.openFiles.newest; f != nil; f = f.older {
		open = append(open, f)
	}
	if err := s.sync(open); err != nil {
		return nil, err
	}
	if err := s.syncDirs(); err != nil {
		return nil, err
	}
	if err := s.settle(); err != nil {
		return nil, err
	}
	return s.state(), nil
}

// settle makes the present the state that is known of each file, and forgets those that need none.
func (s *Set) settle() error {
	for _, f := range s.files {
		if f.handle == nil || !f.touched || f.expected {
			continue
		}
		info, err := f.handle.Stat()
		if err != nil {
			return err // nothing has changed yet, but for files that are as they are said to be
		}
		f.found = info.Size()
	}
	for path, f := range s.files {
		if f.expected && f.handle == nil && s.now.Sub(s.opened) > patience {
			f.expected = false
		}
		if f.touched {
			f.length, f.doubt = f.found, false
			f.touched = false
		}
		f.appended, f.cuts, f.parted = int64(len(f.lines)), f.cuts[:0], false
		if f.expected || f.handle != nil && f.writer == s.self {
			continue
		}
		if f.handle != nil {
			if err := s.close(f); err != nil {
				s.o.Report(err) // it is on disk
			}
		}
		delete(s.files, path)
		if s.routes[f.route] == f {
			delete(s.routes, f.route)
		}
	}
	s.last, s.hasty, s.marks = nil, false, 0
	clear(s.announced)
	return nil
}

// WantSync reports that a Sync and a commit should come soon: the state has grown, because many files were opened since
// the last; or what was written since would be written again after a crash, because a file was moved away, or because
// others had written where lines were expected.
func (s *Set) WantSync() bool { return s.hasty || len(s.files)-s.openFiles.n > 4*s.o.MaxOpen }

// sync brings what files got to the disk. Several at once cost the disk little more than one: file systems commit their
// changes together.
func (s *Set) sync(files []*file) error {
	if s.o.NoSync {
		return nil
	}
	var dirty []*file
	for _, f := range files {
		if f.dirty {
			dirty = append(dirty, f)
		}
	}
	errs := make([]error, len(dirty))
	if workers := min(len(dirty), s.o.kernel.atOnce); workers <= 1 {
		for i, f := range dirty {
			errs[i] = s.o.kernel.sync(f.handle)
		}
	} else {
		var next atomic.Int32 // taken by the workers
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for i := next.Add(1) - 1; int(i) < len(dirty); i = next.Add(1) - 1 {
					errs[i] = s.o.kernel.sync(dirty[i].handle)
				}
			})
		}
		wg.Wait()
	}
	failed := false
	for i, f := range dirty {
		if errs[i] != nil {
			f.doubt, failed = true, true
		} else {
			f.dirty = false
		}
	}
	if !failed {
		return nil
	}
	return s.fail(errors.Join(errs...))
}

// fail makes the Set fail for good: the kernel forgets what it could not write.
func (s *Set) fail(err error) error {
	s.failed = fmt.Errorf("%w: %w", ErrSync, err)
	if err := s.o.Record(s.state()); err != nil {
		s.failed = errors.Join(s.failed, fmt.Errorf("files: record: %w", err))
	}
	return s.failed
}

// syncDirs makes the names of new files durable. A directory that was removed meanwhile has none.
func (s *Set) syncDirs() error {
	if s.o.NoSync {
		clear(s.dirs)
		return nil
	}
	for dir := range s.dirs {
		if err := s.o.kernel.syncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s.fail(err)
		}
		delete(s.dirs, dir)
	}
	return nil
}

// state is what is known of all files as of the last Sync.
func (s *Set) state() []byte { return s.stateOf(func(f *file) int64 { return f.length }) }

func (s *Set) stateOf(length func(*file) int64) []byte {
	entries := make([]entry, 0, len(s.files))
	writers := make([]identity, 0, 1)
	index := make([]int, len(s.writers)) // into writers, plus 1
	for i := range s.writers {
		for _, f := range s.files {
			if !f.known || f.writer != i {
				continue
			}
			if index[i] == 0 {
				writers = append(writers, s.writers[i])
				index[i] = len(writers)
			}
			entries = append(entries, entry{writer: index[i] - 1, path: f.path, inode: f.inode, length: length(f), doubt: f.doubt})
		}
	}
	return appendState(nil, writers, entries)
}
