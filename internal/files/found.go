// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spillwaylog/spillway/internal/codes"
)

// A finder looks for lines that come again after a crash in what an earlier process wrote.
type finder struct {
	o        *Options
	index    *index
	waiting  *waiting
	recorder *recorder
}

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
// foreign writer's, or of a line that was lost and does not come again, and the first line that is
// not in the file as a whole goes to its end, with all later ones. Those are not looked for further
// on: an equal line may be another one.
//
// NULs are no foreign writer's: lines have none, and after a power cut a file system leaves NULs
// where bytes were that it had not written yet. The lines are written over them. They are also
// written over themselves where a sync has failed: what can be read is equal, but the kernel takes
// it for written.
func (s *finder) find(f *file, size int64) error {
	more := size > f.limit // which others wrote
	size = min(size, f.limit)
	n := 0 // bytes of f.lines found
	var buf [32 << 10]byte
	equal := true
	over := overwriter{kernel: s.o.kernel, f: f}
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
		// What goes to the end now is not behind length in one piece: after another crash it would
		// not be found.
		s.recorder.hasty = true
		if !equal {
			s.o.Report(errForeign(f))
		}
		if f.found == f.length {
			f.touched = false // nothing of ours is behind length, so that the end can be recorded as the new one
		}
	case f.found+int64(rest) == size:
		f.expected = false
		f.torn, f.end = rest, size
	}
	if x := s.index; !f.expected && f.writer != x.self && x.writers[f.writer] == x.writers[x.self] {
		s.recorder.hasty = true // lines that stand in files of another path come before the next of this one
	}
	return nil
}

// errForeign says that a file has other bytes than the lines that come again. Whether the journal
// has lost some of these is known to its reader alone.
func errForeign(f *file) error {
	return codes.FileForeign.Errorf("files: %s: others wrote behind byte %d, or lines that stand there do not come again, "+
		"because they were lost; going on at its end, where lines may come twice", f.path, f.found)
}

// handOver moves lines that wait for a file of an earlier identity to where they belong now, but
// for one that it has a part of.
func (s *finder) handOver(f *file) {
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
	kernel *kernel
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
	_, err := o.kernel.writeAt(o.handle, b, at)
	return err
}

func (o *overwriter) close() {
	if o.handle != nil {
		o.handle.Close()
	}
}

// compare returns how many bytes of want, which is no longer than buf, stand in the file: those
// that do, and those where it has NULs, which are written over.
func (s *finder) compare(f *file, over *overwriter, buf, want []byte, at int64) (same int, err error) {
	got, err := f.handle.ReadAt(buf[:len(want)], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	for same < len(want) {
		n := common(want[same:], buf[same:got])
		if f.doubt {
			if err := over.write(want[same:same+n], at+int64(same)); err != nil {
				return same, err
			}
		}
		same += n
		nuls := len(buf[same:got]) - len(bytes.TrimLeft(buf[same:got], "\x00"))
		nuls = min(nuls, len(want)-same)
		if nuls == 0 {
			break
		}
		if err := over.write(want[same:same+nuls], at+int64(same)); err != nil {
			return same, err
		}
		same += nuls
	}
	return same, nil
}
