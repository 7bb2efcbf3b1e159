// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Sync writes all that waits, makes it durable, and returns the state to be committed, in one piece
// with the position up to which lines were appended, before the next Write.
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
	s.settle()
	s.mark, s.unkept = s.resumed, false
	return s.settled(), nil
}

// State returns what is to be committed if the position is here, behind all that was appended, and
// nothing waits to be written. It settles nothing, makes nothing durable and may be called often: a
// Sync with nothing written in between returns the same, but for files that it closes or rotates
// because their time has come.
func (s *Set) State() []byte {
	now := time.Now()
	closed := s.index.crowd.decide(now)
	return s.index.state(closed, s.resumed, func(f *file) (int64, bool) { return f.present(), s.remembered(f, now) })
}

// settle makes the present the state that is known of each file, and forgets those that need none.
func (s *Set) settle() {
	kept := s.index.order[:0]
	for _, f := range s.index.order {
		if s.remembered(f, s.now) {
			kept = append(kept, f)
			f.length = f.present()
			f.tail = f.tailAt(f.length)
			if f.touched {
				f.found, f.doubt, f.touched = f.length, false, false
			}
			continue
		}
		f.expected = false
		if f.of != "" { // the keepers may have it as soon as this is committed
			s.dismissed = append(s.dismissed, f)
		} else if f.handle != nil {
			if err := s.close(f); err != nil {
				s.o.Report(err) // it is on disk
			}
		}
		s.index.forget(f)
	}
	clear(s.index.order[len(kept):])
	s.index.order, s.index.last = kept, nil
	s.hasty = false
	if s.index.crowd.turn(s.now) {
		s.closes()
	}
}

// present returns where the lines of f end that were written or found so far.
func (f *file) present() int64 {
	switch {
	case !f.touched:
		return f.length
	case f.expected || f.handle == nil:
		return f.found
	case f.end >= 0:
		return f.end
	}
	info, err := f.handle.Stat()
	if err != nil {
		return math.MaxInt64 // no file is that long: nothing will be looked for in it
	}
	return info.Size()
}

// remembered reports whether a settled state names f: lines are expected in it, or more may come
// without a Record.
func (s *Set) remembered(f *file, now time.Time) bool {
	if f.expected && (f.handle != nil || now.Sub(s.opened) <= patience) {
		return true
	}
	return f.handle != nil && !s.index.foreign(f)
}

// WantSync reports that a Sync and a commit should come soon: the state has grown, because many
// files were opened since the last; or what was written since would be written again after a crash,
// because a file was moved away, or because others had written where lines were expected.
func (s *Set) WantSync() bool { return s.hasty || len(s.index.files)-s.openFiles.n > 4*s.o.MaxOpen }

// sync brings what files got to the disk. Several at once cost the disk little more than one: file
// systems commit their changes together.
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
	if err := s.record(); err != nil {
		s.failed = errors.Join(s.failed, err)
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
		err := s.o.kernel.syncDir(dir)
		var at *fs.PathError
		if errors.As(err, &at) && at.Op == "open" && !errors.Is(err, fs.ErrNotExist) {
			return err // for want of a descriptor, perhaps: nothing was synced, and nothing forgotten
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s.fail(err)
		}
		delete(s.dirs, dir)
	}
	return nil
}
