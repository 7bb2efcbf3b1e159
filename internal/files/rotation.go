// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Rotation says when a file gets another name and a new one is begun, and what becomes of those that were rotated. The
// zero value never rotates.
//
// A rotated file has the time of its rotation, in UTC, in its name: app.jsonl becomes app-20261121T020304.123.jsonl, and
// app-20261121T020304.123.jsonl.gz when it is compressed. Such names sort by time. Only regular files with such a name are
// ever compressed or deleted.
type Rotation struct {
	Size     int64         // a file is rotated before it gets larger, but for what one Settle or Sync writes; 0: however large
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

// Announce says how many bytes are about to be appended under a tag until the next Settle, so that a file is rotated
// before them if they would make it too large, and not after.
func (s *Set) Announce(tag string, bytes int64) {
	if s.o.Rotation.Size == 0 {
		return
	}
	if s.announced == nil {
		s.announced = map[string]int64{}
	}
	if !s.pattern.uses[tagPart] {
		tag = ""
	}
	s.announced[tag] += bytes
}

// due reports whether f, of the given size, is to be rotated now. It is not while it holds lines that are not settled: a
// state says where they are by path and inode, and after a crash they are looked for there.
//
//	settled ─→ renamed ─→ new file ─→ Record ─→ written
//	        ↑          ↑          ↑
//	  killed here, the next process finds the old file complete, no file or an empty one
func (s *Set) due(f *file, size int64) bool {
	r := &s.o.Rotation
	if !r.on() || size == 0 || f.handle == nil || f.writer != s.self || f.touched || f.expected || f.torn > 0 || s.now.Before(s.unable) {
		return false
	}
	if r.Every > 0 && r.period(s.now) != f.period {
		return true
	}
	return r.Size > 0 && size+max(int64(len(f.lines)), s.announced[f.route.tag]) > r.Size
}

// rotate renames f's file and closes it. Another process may do so at the same time: who has the directory's lock does it,
// and only if the path is still that of the file.
func (s *Set) rotate(f *file) error {
	unlock, ok := lockDir(f.path)
	if !ok {
		return nil // somebody is at it; the next Write sees what came of it
	}
	defer unlock()
	if id, _, err := idAt(f.path); err != nil || id != f.id {
		return nil // it is done
	}
	if err := s.close(f); err != nil { // an open file cannot be renamed everywhere
		return err
	}
	to, err := freeName(f.path, s.now)
	if err == nil {
		err = os.Rename(f.path, to)
	}
	if err != nil {
		s.unable = s.now.Add(time.Minute)
		s.o.Report(fmt.Errorf("files: rotation, tried again in a minute: %w", err))
		return nil
	}
	f.known, f.doubt, f.length, f.found, f.end = false, false, 0, 0, 0
	s.tend(f.path)
	return nil
}

// rotateIdle rotates open files that wait for nothing but whose time has come, and notices those that others rotated.
func (s *Set) rotateIdle() error {
	if !s.o.Rotation.on() {
		return nil
	}
	var errs []error
	for f := s.openFiles.newest; f != nil; {
		next := f.older
		if len(f.lines) == 0 && !f.touched && !f.expected {
			id, size, err := idAt(f.path)
			switch {
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

// tend has somebody look after the rotated files of a path.
func (s *Set) tend(path string) {
	if !s.o.Rotation.tends() {
		return
	}
	if s.keeper == nil {
		s.keeper = newKeeper(s.o.Rotation, s.o.Report)
	}
	s.keeper.tend(path)
}
