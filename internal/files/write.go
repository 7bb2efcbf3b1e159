// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// Write hands all that waits to the kernel. An error is the first of those that there were; the
// files that had none got their lines, and the others keep them for the next Write, which goes on
// where this one stopped.
//
// A Write with nothing waiting closes files that were not used for long, and rotates those whose
// time has come: call it now and then.
func (s *Set) Write() error {
	if err := s.usable(); err != nil {
		return err
	}
	if s.sharer != nil {
		return s.sharer.write(false)
	}
	if err := s.recorder.keep(); err != nil {
		return err
	}
	s.handles.now = time.Now()
	s.rotator.tendLeft()
	idle := len(s.waiting.files) == 0
	first := s.rotator.release()
	var stuck []*file
	for len(s.waiting.files) > 0 {
		queue := s.waiting.files
		s.waiting.files = nil
		for _, group := range groups(queue, s.o.MaxOpen) {
			if err := s.writeGroup(group); err != nil && first == nil {
				first = err
			}
		}
		for _, f := range queue {
			switch {
			case len(f.lines) == 0:
				f.queued = false
			case f.stuck:
				stuck = append(stuck, f)
			default: // it got lines that another file handed over
				s.waiting.files = append(s.waiting.files, f)
			}
		}
	}
	s.waiting.files = stuck
	if idle {
		if err := s.rotator.rotateIdle(); err != nil && first == nil {
			first = err
		}
	}
	if err := s.handles.closeIdle(); err != nil && first == nil {
		first = err
	}
	return first
}

// groups parts the queue into at most so many files, which can be open at once, the open ones
// first.
func groups(queue []*file, limit int) [][]*file {
	sorted := make([]*file, 0, len(queue))
	for _, open := range []bool{true, false} {
		for _, f := range queue {
			if (f.handle != nil) == open && len(f.lines) > 0 {
				sorted = append(sorted, f)
			}
		}
	}
	var groups [][]*file
	for len(sorted) > 0 {
		n := min(len(sorted), limit)
		groups = append(groups, sorted[:n:n])
		sorted = sorted[n:]
	}
	return groups
}

// writeGroup writes what waits for files that can be open at once.
func (s *Set) writeGroup(group []*file) (first error) {
	failed := func(f *file, err error) {
		f.stuck = true
		if first == nil {
			first = err
		}
	}
	closed := 0
	for _, f := range group {
		f.stuck = false
		if f.handle == nil {
			closed++
		} else {
			s.handles.touch(f) // so that none is closed to make room for another of the group
		}
	}
	if err := s.handles.makeRoom(closed); err != nil {
		for _, f := range group {
			failed(f, err)
		}
		return first
	}
	var unknown []*file
	for _, f := range group {
		if err := s.prepare(f); err != nil {
			failed(f, err)
		} else if len(f.lines) > 0 && !f.known {
			unknown = append(unknown, f)
		}
	}
	if err := s.recorder.name(unknown); err != nil {
		for _, f := range unknown {
			failed(f, err)
		}
	}
	for _, f := range group {
		if len(f.lines) == 0 || f.stuck {
			continue
		}
		if err := s.write(f); err != nil {
			failed(f, err)
		}
	}
	return first
}

// prepare makes the file at the path of f ready to take its lines: open, the same that is at the
// path, its end known. Lines that were found in it are gone from f afterwards.
func (s *Set) prepare(f *file) error {
	s.rotator.pursue(f)
	var size int64
	if f.handle != nil || f.touched {
		id, now, err := idAt(f.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && id == f.id {
			size = now
			if f.handle != nil {
				s.handles.touch(f)
			}
		} else {
			if s.rotator.pursue(f) {
				return s.prepare(f)
			}
			if f.handle != nil && !s.o.Rotation.on() { // else it is what other processes may do
				s.o.Report(codes.FileMoved.Errorf("files: %s was moved away or replaced; going on in a new file",
					f.path))
			}
			if err := s.rotator.moved(f); err != nil {
				return err
			}
		}
	}
	if f.handle == nil {
		err := s.rotator.open(f)
		if errors.Is(err, fs.ErrNotExist) && s.index.foreign(f) {
			if s.rotator.pursue(f) {
				return s.prepare(f)
			}
			f.expected, f.torn = false, 0
			s.finder.handOver(f)
			return nil
		}
		if err != nil {
			return err
		}
		if size, err = f.handle.Seek(0, io.SeekEnd); err != nil {
			return err
		}
	}
	f.used = s.handles.now
	if f.known && f.inode != f.id.inode && s.rotator.pursue(f) { // renamed this moment
		if err := s.handles.close(f); err != nil {
			return err
		}
		return s.prepare(f)
	}
	if f.known && f.inode != f.id.inode { // another file than the state knows: what is in it is not ours
		f.known, f.expected, f.touched = false, false, false
	}
	if f.expected && size < f.found && s.index.goOnInCopy(f) {
		s.finder.handOver(f)
		return nil
	}
	if f.expected && size < f.found {
		s.o.Report(codes.FileCut.Errorf("files: %s was cut from at least %d to %d bytes; lines may be in it twice",
			f.path, f.found, size))
		f.expected = false
	}
	if f.expected {
		if err := s.finder.find(f, size); err != nil {
			return err
		}
	}
	// Cut: what was written since the last Sync could not be found there any more.
	if f.touched && size < max(f.end, f.length) {
		s.recorder.hasty = true
	}
	if size != f.end { // others wrote
		f.torn, f.long, f.end = 0, 0, -1
	}
	if s.index.foreign(f) && !f.expected {
		s.finder.handOver(f)
	}
	if len(f.lines) == 0 {
		return nil
	}
	if s.rotator.due(f, size) {
		return s.rotator.change(f)
	}
	return f.continueAt(s.o.kernel, size)
}

// write hands the waiting lines to the kernel, in one piece unless the last write was cut short or
// the file gets too large. What the kernel took is gone from f.lines, but for the part of a line at
// its end.
func (s *Set) write(f *file) error {
	if f.torn > 0 {
		if err := s.writeRest(f); err != nil {
			return err
		}
	}
	for len(f.lines) > 0 {
		if f.end < 0 {
			size, err := f.handle.Seek(0, io.SeekEnd)
			if err != nil {
				return err
			}
			if _, err := f.endLine(s.o.kernel, size); err != nil {
				return err
			}
		}
		n := s.rotator.fitting(f)
		if n == 0 {
			if err := s.rotator.rotateMidWrite(f); err != nil {
				return err
			}
			continue
		}
		if err := s.writeLines(f, n); err != nil {
			return err
		}
	}
	return nil
}

// writeLines writes the first n bytes of what waits, whole lines.
func (s *Set) writeLines(f *file, n int) error {
	n, err := f.put(s.o.kernel, f.lines[:n])
	if err == nil {
		s.waiting.taken(f, n)
		return nil
	}
	whole := bytes.LastIndexByte(f.lines[:n], '\n') + 1
	s.waiting.taken(f, whole)
	if f.end >= 0 {
		f.torn = n - whole
	}
	return err
}

// writeRest completes a line of which a part is in the file. If bytes of others came in between,
// the line is whole nowhere, and stays first of those that wait.
func (s *Set) writeRest(f *file) error {
	first := bytes.IndexByte(f.lines, '\n') + 1
	expected := f.end
	n, err := f.put(s.o.kernel, f.lines[f.torn:first])
	f.torn += n
	if f.end != expected+int64(n) {
		f.torn, f.end = 0, -1
		return err
	}
	if err != nil {
		return err
	}
	s.waiting.taken(f, first)
	f.torn = 0
	return nil
}
