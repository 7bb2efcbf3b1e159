// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
)

// find takes away the waiting lines that are in the file already, because they were written after
// the last commit and before a crash. The lines come again in the same order, so that they are
// compared byte by byte as they come, and never searched for:
//
//	           length            found                size
//	┌────────────┬─────────────────┬────────────────────┐
//	│ committed  │ come again,     │ to be compared     │
//	│            │ found equal     │ with what waits    │
//	└────────────┴─────────────────┴────────────────────┘
//
// All that waits is equal: nothing to write, go on comparing the next time. The file ends first:
// the rest is written, and completes a line that the crash tore. A byte differs: it is a
// stranger's, and the first line that is not in the file as a whole goes to its end, with all later
// ones.
//
// A NUL is no stranger's: lines have none, and after a power cut a file system leaves NULs where
// bytes were that it had not written yet. The lines are written over them. They are also written
// over themselves where a sync has failed: what can be read is equal, but the kernel takes it for
// written.
func (s *Set) find(f *file, size int64) error {
	more := size > f.limit // which others wrote
	size = min(size, f.limit)
	n := 0 // bytes of f.lines found
	var buf [32 << 10]byte
	equal := true
	over := overwriter{s: s, f: f}
	defer over.close()
	for equal && n < len(f.lines) && f.found+int64(n) < size {
		at := f.found + int64(n)
		want := f.lines[n:min(n+len(buf), len(f.lines))]
		want = want[:min(int64(len(want)), size-at)]
		same, err := s.compare(f, &over, buf[:], want, at)
		if err != nil {
			return err
		}
		equal = same == len(want)
		n += same
	}
	whole := bytes.LastIndexByte(f.lines[:n], '\n') + 1
	if n > 0 {
		f.touched, f.dirty = true, true // it may be only in memory
	}
	f.found += int64(whole)
	if whole > 0 {
		f.last = tailOf(f.lines[:whole], f.found)
	}
	rest := n - whole
	s.waiting.taken(f, whole)
	switch {
	case !equal, more && f.found+int64(rest) == size:
		f.expected, f.end = false, -1
		s.hasty = true // what goes to the end now is not behind length in one piece: after another crash it would not be found
		if !equal {
			s.o.Report(fmt.Errorf("files: %s: others wrote behind byte %d; going on at its end", f.path, f.found))
		}
		if f.found == f.length {
			f.touched = false // nothing of ours is behind length, so that the end can be recorded as the new one
		}
	case f.found+int64(rest) == size:
		f.expected = false
		f.torn, f.end = rest, size
	}
	return nil
}

// handOver moves lines that wait for a file of an earlier identity to where they belong now, but
// for one that it has a part of.
func (s *Set) handOver(f *file) {
	keep := 0
	if f.torn > 0 {
		keep = bytes.IndexByte(f.lines, '\n') + 1
	}
	s.index.leave(f)
	if rest := f.lines[keep:]; len(rest) > 0 {
		s.waiting.keep(s.index.lookUp(f.route), rest)
		s.waiting.takenEnd(f, len(rest))
	}
}

// common returns how many bytes at the start of both are equal.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// An overwriter writes into a file where something stands already, which its handle, for appending,
// cannot.
type overwriter struct {
	s      *Set
	f      *file
	handle *os.File
}

func (o *overwriter) write(b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	if o.handle == nil {
		h, err := os.OpenFile(o.f.path, openFlags&^os.O_APPEND, 0)
		if err != nil {
			return err
		}
		o.handle = h
		info, err := h.Stat()
		if err != nil {
			return err
		}
		if id, err := idOf(h, info); err != nil || id != o.f.id {
			return &fs.PathError{Op: "open", Path: o.f.path, Err: errMoved}
		}
	}
	o.f.dirty = true
	_, err := o.s.o.kernel.writeAt(o.handle, b, at)
	return err
}

func (o *overwriter) close() {
	if o.handle != nil {
		o.handle.Close()
	}
}
