// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
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
			s.handles.now = time.Now()
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
	if errors.Is(err, fs.ErrNotExist) && s.handles.dirs.makeDir(filepath.Dir(f.path), s.o.DirMode) == nil {
		l, err = openLatch(f.path, s.o) // the directory had been removed while the file was open
	}
	if err != nil {
		return err
	}
	f.latch = l
	s.handles.dirs.named(f.path)
	return nil
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
		if err := l.load(b); err != nil { // the first that fails where there is no room
			return err
		}
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
			return err // in doubt: the next process completes it, and this process sees that it is there
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
	ends, err := endsLine(f.handle, size)
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
	b, err := l.batch()
	if err != nil {
		return err
	}
	if b == nil {
		s.o.Report(codes.FileTorn.Errorf("files: %s is damaged; what a process was killed at may be torn in %s",
			l.file.Name(), f.path))
		return l.unmake()
	}
	h := &l.head
	to, size := f.handle, f.end
	if h.inode != f.id.inode { // another program renamed it
		moved, n, err := openMoved(f.path, h.inode)
		if err != nil {
			return err
		}
		if moved != nil {
			defer moved.Close()
			to, size = moved, n
		} else {
			h.inode, h.offset = f.id.inode, math.MaxUint64 // it is gone, with what was in it
		}
	}
	rest, whole := restOf(to, h.offset, size, b)
	if !whole { // from here on it stands at the end
		ends, err := endsLine(to, size)
		if err != nil {
			return err
		}
		if !ends {
			s.tear(f)
			if err := s.complete(f, to, []byte{'\n'}); err != nil {
				return err
			}
			size++
		}
		h.offset, rest = uint64(size), b
		if err := l.put(); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		if err := s.complete(f, to, rest); err != nil {
			return err
		}
	}
	return l.wrote()
}

// openMoved opens the file that was at a path, nil if there is none that may be written.
func openMoved(path string, inode uint64) (f *os.File, size int64, err error) {
	name, size := appendableAs(path, inode)
	if name == "" {
		return nil, 0, nil
	}
	if f, err = os.OpenFile(name, openFlags, 0); errors.Is(err, fs.ErrPermission) {
		return nil, 0, nil
	}
	return f, size, err
}

// restOf returns what a file of the given size lacks of a batch that was begun at a place. whole is
// false if that is not known, and all of it has to come: the file was cut, or somebody wrote
// without the lock what stands there.
func restOf(r io.ReaderAt, at uint64, size int64, b []byte) (rest []byte, whole bool) {
	if at > uint64(size) {
		return b, false
	}
	there := make([]byte, min(int64(len(b)), size-int64(at)))
	if n, _ := r.ReadAt(there, int64(at)); n == len(there) && bytes.Equal(there, b[:n]) {
		return b[n:], true
	}
	first := b[:bytes.IndexByte(b, '\n')+1]
	return nil, batchIn(r, int64(at), first, []stretch{stretchOf(b)})
}

// complete writes to the file of a batch, wherever that is.
func (s *sharer) complete(f *file, to *os.File, b []byte) error {
	f.dirty = true
	n, err := s.o.kernel.write(to, b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
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
