// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// alone runs fn with the latch of f locked.
func (s *sharer) alone(f *file, fn func(*latch) error) error {
	for range 10 {
		if f.latch == nil {
			if err := s.openLatch(f); err != nil {
				return err
			}
		}
		ok, err := f.latch.lock()
		if err == nil && ok {
			err = fn(f.latch)
			f.latch.unlock()
			return err
		}
		f.closeLatch()
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("files: %s: somebody removes it again and again", f.path+latchEnding)
}

func (s *sharer) openLatch(f *file) error {
	if f.handle == nil { // which makes the directory
		if err := s.rotator.open(f); err != nil {
			return err
		}
	}
	l, err := openLatch(f.path, s.o)
	if err != nil {
		return err
	}
	f.latch = l
	s.handles.dirs.named(f.path)
	return nil
}

func (f *file) closeLatch() {
	if f.latch != nil {
		f.latch.file.Close()
		f.latch = nil
	}
}

// appendAlone writes a batch under the lock.
func (s *sharer) appendAlone(f *file) error {
	return s.alone(f, func(l *latch) error {
		size, err := s.begin(f, l)
		if err != nil {
			return err
		}
		b := f.lines[:s.fitting(f)]
		n := len(b)
		if err := l.take(); err != nil {
			return err
		}
		f.lot.intend(b, place{l.head.id, l.head.number})
		if err := s.record(); err != nil {
			f.lot.forget()
			return err
		}
		if err := l.make(b, f.id.inode, size); err != nil {
			f.lot.forget()
			return err
		}
		if _, err := s.put(f, b); err != nil {
			return err // in doubt: who comes next completes it, and this process sees that it is there
		}
		f.lot.written()
		s.taken(f, n)
		if err := l.wrote(); err != nil {
			s.o.Report(err) // the next looks at the file, and sees it
		}
		return nil
	})
}

// settled opens the file, and has what a killed process left in it whole.
func (s *sharer) settled(f *file, l *latch) error {
	if _, err := s.reach(f); err != nil || l.head.phase != made {
		return err
	}
	return s.mend(f, l)
}

// begin makes the file ready for a batch, and returns where it ends, at the end of a line.
func (s *sharer) begin(f *file, l *latch) (size int64, err error) {
	if err := s.settled(f, l); err != nil {
		return 0, err
	}
	if size, err = s.ready(f); err != nil {
		return 0, err
	}
	ends, err := s.endsLine(f, size)
	if err != nil || ends {
		return size, err
	}
	s.tear(f) // somebody writes without the lock
	if _, err := s.put(f, []byte{'\n'}); err != nil {
		return 0, err
	}
	return size + 1, nil
}

// mend completes the batch that is in the latch, if the process that made it was killed before it
// had written all of it.
func (s *sharer) mend(f *file, l *latch) error {
	h := &l.head
	to, size := f.handle, f.end
	if h.inode != f.id.inode {
		if path, n := movedAs(f.path, h.inode); path != "" { // another program renamed it
			moved, err := os.OpenFile(path, openFlags, 0)
			if err != nil {
				return err
			}
			defer moved.Close()
			to, size = moved, n
		} else {
			h.offset = uint64(size) // it is gone, with what was in it
		}
	}
	if uint64(size) < h.offset {
		h.offset = uint64(size) // somebody has cut it
	}
	if done := uint64(size) - h.offset; done < h.length {
		b, err := l.batch()
		if err != nil {
			return err
		}
		if b == nil {
			s.o.Report(fmt.Errorf("files: %s is damaged; what a process was killed at may be torn in %s", l.file.Name(), f.path))
			return l.wrote()
		}
		f.dirty = true
		n, err := s.o.kernel.write(to, b[done:])
		if err == nil && n < len(b[done:]) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return err
		}
	}
	return l.wrote()
}

// end closes the latches.
func (s *sharer) end() error {
	var errs []error
	for _, f := range s.index.order {
		if f.latch != nil {
			errs = append(errs, f.latch.file.Close())
			f.latch = nil
		}
	}
	return errors.Join(errs...)
}
