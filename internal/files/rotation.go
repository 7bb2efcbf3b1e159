// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// Rotation says when a file gets another name and a new one is begun, and what becomes of those
// that were rotated. The zero value never rotates.
//
// A rotated file has the time of its rotation, in UTC, in its name: app.jsonl becomes
// app-20261121T020304.123.jsonl, and app-20261121T020304.123.jsonl.gz when it is compressed. Such
// names sort by time. Only regular files with such a name are ever compressed or deleted.
type Rotation struct {
	Size     int64         // no file gets larger, but for one line that is larger alone; 0: however large
	Every    time.Duration // and at each multiple of that since 1970, in UTC; 0: however old
	Keep     int           // rotated files kept of one path; 0: all
	MaxAge   time.Duration // those rotated longer ago are deleted; 0: none
	Compress bool          // with gzip, in the background
}

// on reports whether files are rotated.
func (r *Rotation) on() bool { return r.Size > 0 || r.Every > 0 }

// tends reports whether something is done with rotated files.
func (r *Rotation) tends() bool { return r.on() && (r.Keep > 0 || r.MaxAge > 0 || r.Compress) }

func (r *Rotation) check() error {
	if r.Size < 0 || r.Every < 0 || r.Keep < 0 || r.MaxAge < 0 {
		return fmt.Errorf("files: rotation: a size, time or number is negative")
	}
	if r.Every > 0 && r.Every < time.Second {
		return fmt.Errorf("files: rotation every %v, which is less than a second", r.Every)
	}
	return nil
}

// period numbers the times between two rotations.
func (r *Rotation) period(t time.Time) int64 {
	if r.Every == 0 {
		return 0
	}
	step := int64(r.Every / time.Second)
	sec := t.Unix()
	n := sec / step
	if sec%step < 0 {
		n--
	}
	return n
}

// due reports whether f, of the given size, is to be rotated before what waits is written: its time
// is over, or not one line has room. It is not while lines are expected in it, or when it ends in a
// part of one.
func (s *Set) due(f *file, size int64) bool {
	r := &s.o.Rotation
	if !r.on() || size == 0 || f.handle == nil || s.index.foreign(f) || f.expected || f.torn > 0 || f.long > 0 || s.now.Before(s.unable) {
		return false
	}
	if r.Every > 0 && r.period(s.now) != f.period {
		return true
	}
	line := bytes.IndexByte(f.lines, '\n') + 1
	return r.Size > 0 && line > 0 && size+int64(line) > r.Size
}

// fitting returns how many bytes of what waits may be written to f, whole lines: 0 if it must be
// rotated first.
func (s *Set) fitting(f *file) int {
	room := s.o.Rotation.Size - f.end
	if s.o.Rotation.Size == 0 || room >= int64(len(f.lines)) || s.index.foreign(f) || s.now.Before(s.unable) {
		return len(f.lines)
	}
	n := bytes.LastIndexByte(f.lines[:max(room, 0)], '\n') + 1
	if n == 0 && f.end == 0 { // one line that no file has room for
		n = bytes.IndexByte(f.lines, '\n') + 1
	}
	return n
}

// goOn rotates f in the middle of what waits, and makes the new file ready.
func (s *Set) goOn(f *file) error {
	if err := s.change(f); err != nil || f.known {
		return err
	}
	return s.name([]*file{f})
}

// change rotates f and opens the new file. It keeps the one that it has where that cannot be: see
// Set.unable.
func (s *Set) change(f *file) error {
	if err := s.rotate(f); err != nil {
		return err
	}
	if f.handle == nil {
		if err := s.open(f); err != nil {
			return err
		}
	}
	size, err := f.handle.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if f.known && f.inode != f.id.inode {
		f.known, f.touched = false, false
	}
	if f.end != size {
		f.end = -1
	}
	return f.continueAt(s.o.kernel, size)
}

// rotate renames f's file and leaves it. Another process may do so at the same time: who has the
// directory's lock does it, and only if the path is still that of the file.
func (s *Set) rotate(f *file) error {
	unlock, ok := awaitDir(f.path)
	if !ok {
		s.unable = s.now.Add(time.Second)
		return nil
	}
	defer unlock()
	if id, _, err := idAt(f.path); err != nil || id != f.id {
		return s.moved(f) // it is done
	}
	if !f.touched || !removeOpen {
		if err := s.close(f); err != nil {
			return err
		}
	}
	to, err := freeName(f.path, s.now)
	if err == nil {
		s.keeper.hold(to)
		err = s.o.kernel.rename(f.path, to)
	}
	if err != nil {
		s.keeper.free(to)
		s.unable = s.now.Add(time.Minute)
		s.o.Report(fmt.Errorf("files: rotation, tried again in a minute: %w", err))
		return nil
	}
	s.dirs[filepath.Dir(to)] = struct{}{}
	if f.touched {
		s.retire(f, to)
	} else {
		f.renew()
		s.keeper.free(to)
	}
	s.keeper.tend(f.path)
	return nil
}

// awaitDir locks the directory of a path. Nobody has that lock for long.
func awaitDir(path string) (unlock func(), ok bool) {
	const tries = 100
	for range tries {
		if unlock, ok = lockDir(path); ok {
			return unlock, true
		}
		<-time.After(time.Millisecond)
	}
	return nil, false
}

// rotateIdle rotates open files that wait for nothing but whose time has come, and notices those
// that others rotated.
func (s *Set) rotateIdle() error {
	if !s.o.Rotation.on() {
		return nil
	}
	var errs []error
	for f := s.openFiles.newest; f != nil; {
		next := f.older
		if len(f.lines) == 0 && !s.index.foreign(f) && !f.expected {
			id, size, err := idAt(f.path)
			switch {
			case (err != nil || id != f.id) && f.touched: // the next line tells
			case err != nil || id != f.id:
				errs = append(errs, s.close(f))
			case s.due(f, size):
				errs = append(errs, s.rotate(f))
			}
		}
		f = next
	}
	return errors.Join(errs...)
}
