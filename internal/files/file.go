// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A file is one path that lines go to. It stays while it is open, while it has lines that wait, and
// while the state last committed names it; so that a file closed and opened again between two
// commits is still known.
type file struct {
	path   string
	route  route // under which it is found; set when the first line comes
	writer int   // index of the identity in its path

	// What the state says that was last recorded or committed, if it names the file.
	known  bool
	inode  uint64
	length int64 // lines up to the committed position are before it, later ones behind it
	doubt  bool  // a sync failed: later ones may be lost, though they can be read
	tail   tail  // up to length, or of no bytes
	last   tail  // up to where lines were last written or found

	// expected: behind length stand bytes of this or an earlier process that may be lines which
	// will be appended again. Up to found they were. limit is how long the file was when the Set
	// was opened: what came later is not of the process before.
	expected bool
	found    int64
	limit    int64

	lines []byte // waiting, whole lines; of the first, the torn bytes at its start are in the file already
	torn  int    // more than 0 only while the file ends in those bytes
	long  int64  // likewise, of a line that does not wait: see Set.Long
	end   int64  // where our last write ended; below 0 when the file may end within a line of others

	queued bool // in Set.waiting
	stuck  bool // the Write that runs could not write them

	handle  *os.File
	id      fileID
	touched bool // got lines since the last Sync
	dirty   bool // got lines since it was last synced
	used    time.Time
	period  int64 // of rotation, in which it was begun or last written

	newer, older *file // among the open ones

	of string // the path that it had before it was rotated, if it is retired
}

// errMoved says that a file was rotated by another process while it was opened.
var errMoved = errors.New("the file is being rotated by another process")

// open opens the file, or makes it and the directories it is in.
func (s *Set) open(f *file) error {
	const often = 10
	for range often {
		if err := s.openOnce(f); !errors.Is(err, errMoved) {
			return err
		}
	}
	return &fs.PathError{Op: "open", Path: f.path, Err: errMoved}
}

func (s *Set) openOnce(f *file) error {
	if err := s.makeRoom(1); err != nil {
		return err
	}
	h, err := os.OpenFile(f.path, openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) && !s.index.foreign(f) {
		if err := s.makeDir(filepath.Dir(f.path)); err != nil {
			return err
		}
		h, err = os.OpenFile(f.path, openFlags|os.O_CREATE, s.o.FileMode)
	}
	if err != nil {
		if isLink(err) {
			return &fs.PathError{Op: "open", Path: f.path, Err: fmt.Errorf("%w: a symbolic link, which is not followed", ErrKind)}
		}
		return err
	}
	info, err := h.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.path, Err: fmt.Errorf("%w: %s", ErrKind, kindOf(info.Mode()))}
	}
	var id fileID
	if err == nil {
		id, err = idOf(h, info)
	}
	if err != nil {
		h.Close()
		return err
	}
	if s.o.Rotation.on() || s.index.passedOn(f) {
		if now, _, err := idAt(f.path); !lockFile(h, false) || err != nil || now != id {
			h.Close()
			return errMoved
		}
		f.period = s.o.Rotation.period(s.now)
		if info.Size() > 0 {
			f.period = s.o.Rotation.period(info.ModTime())
		}
		if s.o.Rotation.on() && f.of == "" {
			s.keeper.tend(f.path)
		}
	}
	if f.id != id {
		f.torn, f.long, f.end, f.last = 0, 0, 0, tail{}
	}
	f.handle, f.id = h, id
	f.used = s.now
	s.openFiles.push(f)
	s.dirs[filepath.Dir(f.path)] = struct{}{}
	return nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return m.Type().String()
}

// close closes files; what they got must be on disk before anybody may forget them.
func (s *Set) close(files ...*file) error {
	if err := s.sync(files); err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		s.openFiles.remove(f)
		errs = append(errs, f.handle.Close())
		f.handle = nil
	}
	return errors.Join(errs...)
}

// makeRoom closes files that were not used for long until n more may be open.
func (s *Set) makeRoom(n int) error {
	var last []*file
	for f := s.openFiles.oldest; f != nil && s.openFiles.n-len(last)+n > s.o.MaxOpen; f = f.newer {
		last = append(last, f)
	}
	return s.close(last...)
}

// prepare makes the file at the path of f ready to take its lines: open, the same that is at the
// path, its end known. Lines that were found in it are gone from f afterwards.
func (s *Set) prepare(f *file) error {
	s.pursue(f)
	var size int64
	if f.handle != nil || f.touched {
		id, now, err := idAt(f.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && id == f.id {
			size = now
			if f.handle != nil {
				s.openFiles.touch(f)
			}
		} else {
			if s.pursue(f) {
				return s.prepare(f)
			}
			if f.handle != nil && !s.o.Rotation.on() { // else it is what other processes may do
				s.o.Report(fmt.Errorf("files: %s was moved away or replaced; going on in a new file", f.path))
			}
			if err := s.moved(f); err != nil {
				return err
			}
		}
	}
	if f.handle == nil {
		err := s.open(f)
		if errors.Is(err, fs.ErrNotExist) && s.index.foreign(f) {
			if s.pursue(f) {
				return s.prepare(f)
			}
			f.expected, f.torn = false, 0
			s.handOver(f)
			return nil
		}
		if err != nil {
			return err
		}
		if size, err = f.handle.Seek(0, io.SeekEnd); err != nil {
			return err
		}
	}
	f.used = s.now
	if f.known && f.inode != f.id.inode && s.pursue(f) { // renamed this moment
		if err := s.close(f); err != nil {
			return err
		}
		return s.prepare(f)
	}
	if f.known && f.inode != f.id.inode { // another file than the state knows: what is in it is not ours
		f.known, f.expected, f.touched = false, false, false
	}
	if f.expected && size < f.found && s.index.goOnInCopy(f) {
		s.handOver(f)
		return nil
	}
	if f.expected && size < f.found {
		s.o.Report(fmt.Errorf("files: %s was cut from at least %d to %d bytes; lines may be in it twice", f.path, f.found, size))
		f.expected = false
	}
	if f.expected {
		if err := s.find(f, size); err != nil {
			return err
		}
	}
	if f.touched && size < max(f.end, f.length) { // cut: what was written since the last Sync could not be found there any more
		s.hasty = true
	}
	if size != f.end { // others wrote
		f.torn, f.long, f.end = 0, 0, -1
	}
	if s.index.foreign(f) && !f.expected {
		s.handOver(f)
	}
	if len(f.lines) == 0 {
		return nil
	}
	if s.due(f, size) {
		return s.change(f)
	}
	return f.continueAt(s.o.kernel, size)
}

// continueAt makes the end of f, which is size bytes long, one where a line may begin.
func (f *file) continueAt(k *kernel, size int64) (err error) {
	if f.end < 0 {
		if size, err = f.endLine(k, size); err != nil {
			return err
		}
	}
	if !f.touched && (f.length != size || f.doubt) {
		f.known, f.length = false, size
	}
	return nil
}

// endLine writes the newline that the last line of somebody else lacks.
//
// While somebody else's write runs, a part of it can be seen, and looks like a line that lacks its
// end. So the end is believed only if it is still there when every write that was under way is
// through.
func (f *file) endLine(k *kernel, size int64) (int64, error) {
	const looks = 100 // then others write all the time, and can be trusted to end their lines
	for range looks {
		var last [1]byte
		if size > 0 {
			if _, err := f.handle.ReadAt(last[:], size-1); err != nil && !errors.Is(err, io.EOF) {
				return size, err
			}
		}
		if size == 0 || last[0] == '\n' {
			break
		}
		awaitWrites(f.handle)
		<-time.After(time.Millisecond)
		before := size
		var err error
		if size, err = f.handle.Seek(0, io.SeekEnd); err != nil {
			return size, err
		}
		if size == before {
			if _, err := k.write(f.handle, []byte{'\n'}); err != nil {
				return size, err
			}
			f.dirty = true
			size++
			break
		}
	}
	f.end = size
	return size, nil
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
		n := s.fitting(f)
		if n == 0 {
			if err := s.goOn(f); err != nil {
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

func (f *file) put(k *kernel, b []byte) (n int, err error) {
	n, err = k.write(f.handle, b)
	if n > 0 {
		f.lookEnd()
		f.last = tailOf(b[:n], f.end)
		f.touched, f.dirty = true, true
	}
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// lookEnd asks where the bytes just written ended: not where expected, if others wrote at the same
// time.
func (f *file) lookEnd() {
	end, err := f.handle.Seek(0, io.SeekCurrent)
	if err != nil {
		end = -1
	}
	f.end = end
}
