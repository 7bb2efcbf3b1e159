// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// append writes a batch at the end of the file, which others may do at the same time.
func (s *sharer) append(f *file) error {
	size, err := s.ready(f)
	if err != nil {
		return err
	}
	lead, size, err := s.follows(f, size)
	if err != nil {
		return err
	}
	b := f.lines[:s.fitting(f)]
	n := len(b)
	f.lot.intend(b, place{f.id.inode, uint64(size)})
	if err := s.record(); err != nil {
		f.lot.forget()
		return err
	}
	if lead {
		s.buf = append(append(s.buf[:0], '\n'), b...)
		b = s.buf
	}
	wrote, err := s.put(f, b)
	if err == nil && !lead {
		err = s.unglue(f, b)
	}
	if err == nil {
		f.lot.written()
		s.taken(f, n)
		return nil
	}
	// Whole lines of it stand in the file. What follows them is a fragment, and so may be what
	// precedes them.
	f.lot.forget()
	if lead {
		wrote = max(wrote-1, 0)
	} else if ends, lost := endsLine(f.handle, f.end-int64(wrote)); wrote > 0 && (!ends || lost != nil) {
		return err
	}
	if whole := bytes.LastIndexByte(f.lines[:min(wrote, n)], '\n') + 1; whole > 0 && wrote < n {
		f.lot.intend(f.lines[:whole], place{})
		f.lot.written()
		s.taken(f, whole)
	}
	return err
}

// put writes, and notes in f.end where that ended.
func (s *sharer) put(f *file, b []byte) (n int, err error) {
	n, err = s.o.kernel.write(f.handle, b)
	if n > 0 {
		f.dirty = true
		f.lookEnd()
	}
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// follows says whether a batch has to begin with a newline, since the file ends in a fragment: what
// a killed process wrote of its batch. What a write that runs has written so far looks like one,
// and is waited for.
func (s *sharer) follows(f *file, size int64) (lead bool, _ int64, err error) {
	const looks = 100 // then others write all the time; an empty line harms nobody
	for range looks {
		if ends, err := endsLine(f.handle, size); err != nil || ends {
			return false, size, err
		}
		before := size
		for range 2 { // the second time where nothing can be waited for
			awaitWrites(f.handle)
			if size, err = f.handle.Seek(0, io.SeekEnd); err != nil {
				return false, size, err
			}
			if size != before {
				break
			}
			<-time.After(time.Millisecond)
		}
		if size == before {
			s.tear(f)
			return true, size, nil
		}
	}
	return true, size, nil
}

// endsLine reports whether a line ends at a place in a file, or the file begins there.
func endsLine(r io.ReaderAt, at int64) (bool, error) {
	var last [1]byte
	if at <= 0 {
		return true, nil
	}
	if n, err := r.ReadAt(last[:], at-1); err != nil || n < 1 {
		if errors.Is(err, io.EOF) { // it was cut
			err = nil
		}
		return true, err
	}
	return last[0] == '\n', nil
}

// unglue writes the first line of a batch again, where a process was killed within the write right
// before it: behind that one's fragment it is no line.
func (s *sharer) unglue(f *file, b []byte) error {
	const often = 10 // then the batch comes again, whole
	for range often {
		if f.end < 0 {
			return nil
		}
		if ends, err := endsLine(f.handle, f.end-int64(len(b))); err != nil || ends {
			return err
		}
		s.tear(f)
		b = b[:bytes.IndexByte(b, '\n')+1]
		if _, err := s.put(f, b); err != nil {
			return err
		}
	}
	return fmt.Errorf("files: %s: parts of lines stand before each write", f.path)
}

// tear counts a fragment.
func (s *sharer) tear(f *file) {
	s.torn++
	s.o.Report(codes.FileTorn.Errorf("files: %s ends in a part of a line that a process was killed at; it comes again, whole", f.path))
}
