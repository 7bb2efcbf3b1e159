// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io"

	"github.com/spillwaylog/spillway/internal/codes"
)

// How this file is organised. A line that is too long for memory is a batch of its own: all that
// waits is written first, and then the line, as it is rendered, in pieces. So nothing of it ever
// waits, and a Write that was cut short goes on by rendering it again from its start, and leaving
// out what the file has:
//
//	            length      found or end
//	┌───────────┬───────────┬────────────────────────────────┐
//	│ committed │ new lines │ long line, as far as it is there│ ◄── the rest
//	└───────────┴───────────┴────────────────────────────────┘
//	                        └──────────── long ──────────────┘
//
// After a crash it is compared with what stands there, as every line is. Where others write in
// between two pieces, it is whole nowhere, and begins anew at the end.

// longTries is how often a line begins anew because others write in between.
const longTries = 3

// ErrBetween says that others wrote to a file between the pieces of a line, time and again.
var ErrBetween = errors.New("files: others write in between the pieces of a long line")

var (
	errOthers = errors.New("others wrote in between")
	errDiffer = errors.New("other bytes stand there")
	errEnds   = errors.New("the file ends there")
)

// Long writes one line for the file of a tag and the time of an event to the kernel, behind all
// that waits. render writes the line to w, its newline included; it is called once or several
// times, and returns the error of w as it is. After an error the same line comes again, before
// anything else, or Drop is called: then a part of it may stay in the file, as a line that ends
// there. The error is ErrCrowded as that of Extend is, that of render, or as those of Write are. n
// is how long the line is.
func (s *Set) Long(tag string, sec int64, render func(w io.Writer) error) (n int64, err error) {
	if s.sharer != nil {
		return 0, fmt.Errorf("%w: it is shared", ErrBetween)
	}
	if err := s.Write(); err != nil {
		return 0, err
	}
	f, err := s.fileOf(tag, sec)
	if err != nil {
		return 0, err
	}
	for range longTries {
		n, err = s.tryLong(f.route, render)
		if !errors.Is(err, errOthers) {
			return n, err
		}
	}
	return 0, fmt.Errorf("%w: %s", ErrBetween, f.path)
}

// tryLong writes the line for a route, or what its file lacks of it.
func (s *Set) tryLong(r route, render func(w io.Writer) error) (n int64, err error) {
	f := s.index.lookUp(r)
	for {
		if err := s.prepare(f); err != nil {
			return 0, err
		}
		if f.handle != nil && f.expected {
			done, n, err := s.finder.findLong(f, render)
			if done || err != nil {
				return n, err
			}
		}
		if f.handle != nil && (!s.index.foreign(f) || f.long > 0) {
			break
		}
		s.index.leave(f)
		next := s.index.lookUp(r)
		if next == f {
			return 0, fmt.Errorf("files: %s is not there", f.path)
		}
		f = next
	}
	if err := s.rotator.dueLong(f, render); err != nil {
		return 0, err
	}
	size, err := f.handle.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if size != f.end {
		f.long, f.end = 0, -1
	}
	if err := f.continueAt(s.o.kernel, size); err != nil {
		return 0, err
	}
	if !f.known {
		if err := s.recorder.name([]*file{f}); err != nil {
			return 0, err
		}
	}
	w := longWriter{kernel: s.o.kernel, f: f, skip: f.long}
	if err := render(&w); err != nil {
		if errors.Is(err, errOthers) {
			s.o.Report(codes.FileTorn.Errorf("files: %s: %w: a line of which %d bytes are there begins anew", f.path,
				err, f.long))
			f.long, f.end = 0, -1
			s.recorder.hasty = true
		}
		return 0, err
	}
	f.long = 0
	return w.n, nil
}

// longWriter writes a line to a file, piece by piece, but for its first bytes, which are there.
type longWriter struct {
	kernel *kernel
	f      *file
	skip   int64
	n      int64 // bytes of the line so far
}

func (w *longWriter) Write(b []byte) (n int, err error) {
	over := int(min(int64(len(b)), max(w.skip-w.n, 0)))
	w.n += int64(over)
	if over == len(b) {
		return over, nil
	}
	f := w.f
	expected := f.end
	n, err = f.put(w.kernel, b[over:])
	switch {
	case n > 0 && w.n == 0: // which process wrote before it does not matter
	case n > 0 && f.end != expected+int64(n):
		return over, errOthers
	}
	w.n += int64(n)
	f.long = w.n
	if f.end < 0 {
		f.long = 0
	}
	return over + n, err
}

// findLong compares a long line with what stands where it is expected. done: the file has all of
// it. Otherwise nothing is expected in the file any more, and f.long is what the file ends in.
func (s *finder) findLong(f *file, render func(w io.Writer) error) (done bool, n int64, err error) {
	size, err := f.handle.Seek(0, io.SeekEnd)
	if err != nil {
		return false, 0, err
	}
	more := size > f.limit
	m := longMatcher{finder: s, f: f, size: min(size, f.limit), over: overwriter{kernel: s.o.kernel, f: f}}
	defer m.over.close()
	if err := render(&m); err != nil && !errors.Is(err, errDiffer) && !errors.Is(err, errEnds) {
		return false, 0, err
	}
	if m.same > 0 {
		f.touched, f.dirty = true, true
	}
	at := f.found + m.same
	whole := !m.differ && !m.ended
	if whole {
		f.found = at
	}
	switch {
	case m.differ || more && at == m.size:
		f.expected, f.end, f.long = false, -1, 0
		s.recorder.hasty = true
		if m.differ {
			s.o.Report(errForeign(f))
		}
		if f.found == f.length {
			f.touched = false
		}
	case at == m.size:
		f.expected, f.end = false, m.size
		if !whole {
			f.long = m.same
		}
	}
	return whole, m.same, nil
}

// longMatcher compares a line with a file, piece by piece.
type longMatcher struct {
	finder *finder
	f      *file
	size   int64 // of what is to be compared
	same   int64 // bytes of the line that are there
	ended  bool  // the file ends within the line
	differ bool
	over   overwriter
	buf    [32 << 10]byte
}

func (m *longMatcher) Write(b []byte) (n int, err error) {
	for n < len(b) {
		at := m.f.found + m.same
		want := b[n:min(n+len(m.buf), len(b))]
		want = want[:min(int64(len(want)), m.size-at)]
		if len(want) == 0 {
			m.ended = true
			return n, errEnds
		}
		same, err := m.finder.compare(m.f, &m.over, m.buf[:len(want)], want, at)
		n += same
		m.same += int64(same)
		if err != nil {
			return n, err
		}
		if same < len(want) {
			m.differ = true
			return n, errDiffer
		}
	}
	return n, nil
}
