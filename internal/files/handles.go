// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Handles are the files that are open, at most MaxOpen, and what the disk has not got of them and
// of their directories.
type handles struct {
	lru
	o        *Options
	index    *index
	recorder *recorder
	gathers  bool // other processes may collect files of the pattern
	dirs     dirs
	now      time.Time // when the call of the Set that runs began, or had the lock of a shared file
	failed   error     // a sync failed
}

// clockTick is how far a file's time of last change may be behind the clock: file systems take it
// from one that the kernel sets some hundred times a second.
const clockTick = 20 * time.Millisecond

// errMoved says that a file was rotated or deleted by another process while it was opened.
var errMoved = errors.New("the file is being rotated or deleted by another process")

// open opens the file, or makes it and the directories it is in. Nobody has the lock for long of a
// file that is at its path and not written.
func (h *handles) open(f *file) error {
	for tries := 100; ; <-time.After(time.Millisecond) {
		err := h.openOnce(f)
		if !errors.Is(err, errMoved) {
			return err
		}
		if tries--; tries == 0 {
			return &fs.PathError{Op: "open", Path: f.path, Err: errMoved}
		}
	}
}

func (h *handles) openOnce(f *file) error {
	if err := h.makeRoom(1); err != nil {
		return err
	}
	handle, err := os.OpenFile(f.path, openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) && !h.index.foreign(f) {
		if err := h.dirs.makeDir(filepath.Dir(f.path), h.o.DirMode); err != nil {
			return err
		}
		handle, err = os.OpenFile(f.path, openFlags|os.O_CREATE, h.o.FileMode)
	}
	if err != nil {
		if isLink(err) {
			return &fs.PathError{
				Op: "open", Path: f.path,
				Err: fmt.Errorf("%w: a symbolic link, which is not followed", ErrKind),
			}
		}
		return err
	}
	info, err := handle.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.path, Err: fmt.Errorf("%w: %s", ErrKind, kindOf(info.Mode()))}
	}
	var id fileID
	if err == nil {
		id, err = idOf(handle, info)
	}
	if err != nil {
		handle.Close()
		return err
	}
	if h.o.Rotation.on() || h.o.Shared != Unshared || h.gathers || h.index.passedOn(f) {
		free := lockFile(handle, false) // before the look: until then others may delete the file
		if now, _, err := idAt(f.path); !free || err != nil || now != id {
			handle.Close()
			return errMoved
		}
		f.period = h.o.Rotation.period(h.now)
		if info.Size() > 0 {
			f.period = h.o.Rotation.period(info.ModTime().Add(clockTick))
		}
	}
	if f.id != id {
		f.torn, f.long, f.end, f.last = 0, 0, 0, tail{}
	}
	f.handle, f.id = handle, id
	f.used = h.now
	h.push(f)
	h.dirs.named(f.path)
	return nil
}

// close closes files; what they got must be on disk before it may be forgotten.
func (h *handles) close(files ...*file) error {
	if err := h.sync(files); err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		h.remove(f)
		errs = append(errs, f.handle.Close())
		f.handle = nil
	}
	return errors.Join(errs...)
}

// makeRoom closes files that were not used for long until n more may be open.
func (h *handles) makeRoom(n int) error {
	var last []*file
	for f := h.oldest; f != nil && h.n-len(last)+n > h.o.MaxOpen; f = f.newer {
		last = append(last, f)
	}
	return h.leave(last)
}

// closeIdle closes files that nobody used for long.
func (h *handles) closeIdle() error {
	var idle []*file
	for f := h.oldest; f != nil && h.now.Sub(f.used) > h.o.Idle; f = f.newer {
		if len(f.lines) == 0 {
			idle = append(idle, f)
		}
	}
	return h.leave(idle)
}

// leave closes files that are not about to be written.
func (h *handles) leave(files []*file) error {
	err := h.close(files...)
	for _, f := range files {
		f.closeLatch()
	}
	return err
}

// end closes all.
func (h *handles) end() error {
	var errs []error
	for f := h.newest; f != nil; f = f.older {
		errs = append(errs, f.handle.Close())
		f.handle = nil
	}
	h.lru = lru{}
	return errors.Join(errs...)
}

// syncAll brings to the disk what all open files got, and the names of those that are new.
func (h *handles) syncAll() error {
	open := make([]*file, 0, h.n)
	for f := h.newest; f != nil; f = f.older {
		open = append(open, f)
	}
	if err := h.sync(open); err != nil {
		return err
	}
	return h.syncDirs()
}

// sync brings what files got to the disk. Several at once cost the disk little more than one: file
// systems commit their changes together.
func (h *handles) sync(files []*file) error {
	if h.o.NoSync {
		return nil
	}
	var dirty []*file
	for _, f := range files {
		if f.dirty {
			dirty = append(dirty, f)
		}
	}
	errs := make([]error, len(dirty))
	if workers := min(len(dirty), h.o.kernel.atOnce); workers <= 1 {
		for i, f := range dirty {
			errs[i] = h.o.kernel.sync(f.handle)
		}
	} else {
		var next atomic.Int32 // taken by the workers
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for i := next.Add(1) - 1; int(i) < len(dirty); i = next.Add(1) - 1 {
					errs[i] = h.o.kernel.sync(dirty[i].handle)
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
	return h.fail(errors.Join(errs...))
}

// syncDirs makes the names of new files durable. A directory that was removed meanwhile has none.
func (h *handles) syncDirs() error {
	if h.o.NoSync {
		clear(h.dirs)
		return nil
	}
	for dir := range h.dirs {
		err := h.o.kernel.syncDir(dir)
		var at *fs.PathError
		if errors.As(err, &at) && at.Op == "open" && !errors.Is(err, fs.ErrNotExist) {
			return err // perhaps there is no descriptor left: nothing was synced, and nothing forgotten
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return h.fail(err)
		}
		delete(h.dirs, dir)
	}
	return nil
}

// fail makes the Set fail for good: the kernel forgets what it could not write.
func (h *handles) fail(err error) error {
	h.failed = fmt.Errorf("%w: %w", ErrSync, err)
	if err := h.recorder.record(); err != nil {
		h.failed = errors.Join(h.failed, err)
	}
	return h.failed
}
