// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// A program that copies a file and cuts it to nothing (copytruncate) takes the lines behind the
// committed length away from their place. After a crash they are looked for in the copy, and those
// that were written since in the file, from its start:
//
//	in the state   app.jsonl, inode 7, length 100, a sum of what stands before that
//
//	on disk        app.jsonl.1   ──────── committed ────────│── come again ──│
//	               app.jsonl     ── come again, then ──│
//
// That a file was cut is seen by its length, or, where it has grown again, by the sum. A copy is a
// file in the same directory that begins as the path does, that was not changed after the file was
// cut, and in which the sum stands at the same place. So a state without a sum, which is one of a
// file that had no committed line yet, has no copy.

// isCut reports whether the file of an entry, which is at a path now, was cut since.
func (e *entry) isCut(path string, size int64) bool {
	if size < e.length {
		return true
	}
	if e.tail.size == 0 {
		return false
	}
	f, err := os.OpenFile(path, readFlags, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	in, err := e.tail.in(f)
	return err == nil && !in
}

// limited returns how far lines of the processes before may stand in the file of an entry, which is
// at a path now and has a size, and whether a line ends there.
func (e *entry) limited(path string, size int64) (limit int64, whole bool) {
	if e.limit > 0 {
		return min(size, e.limit), e.limit <= size
	}
	f, err := os.OpenFile(path, readFlags, 0)
	if err != nil {
		return size, false
	}
	defer f.Close()
	var last [1]byte
	_, err = f.ReadAt(last[:], size-1)
	return size, err == nil && last[0] == '\n'
}

// recallCut looks for the copy of a file that was cut and is at a path now, and remembers it, and
// the file as one that was begun anew. ok is false if there is none.
func (x *index) recallCut(e entry, path string, size int64) (copied *file, ok bool) {
	name, id, length := x.copyOf(e, path)
	if name == "" {
		return nil, false
	}
	if length > e.length {
		copied = x.addRetired(&file{
			path: name, of: e.path, writer: e.writer, known: true, inode: id.inode, length: e.length, tail: e.tail,
			expected: true, found: e.length, limit: length,
		})
	}
	f := &file{path: path, writer: e.writer, known: true, inode: e.inode, expected: size > 0, limit: size}
	switch {
	case path != e.path && size > 0:
		f.of = e.path
		x.addRetired(f)
	case path == e.path && (size > 0 || e.writer == x.self):
		x.add(f)
	}
	return copied, true
}

// goOnInCopy has the lines that are expected in f, which was cut before all were found, looked for
// in its copy. It reports whether there is one that has more.
func (x *index) goOnInCopy(f *file) bool {
	if f.of != "" {
		return false
	}
	path, id, length := x.copyOf(entry{path: f.path, length: f.found, tail: f.tailAt(f.found)}, f.path)
	if length <= f.found {
		return false
	}
	x.addRetired(&file{
		path: path, of: f.path, writer: f.writer, known: true, inode: id.inode, length: f.length, tail: f.tail,
		expected: true, found: f.found, last: f.last, limit: length, touched: f.touched,
	})
	f.expected, f.touched, f.length, f.found = false, false, 0, 0
	f.tail, f.last = tail{}, tail{}
	return true
}

// copyOf looks for the copy of a file that was cut and is at a path now.
func (x *index) copyOf(e entry, now string) (path string, id fileID, length int64) {
	if e.tail.size == 0 {
		return "", id, 0
	}
	at, err := os.Lstat(now)
	if err != nil {
		return "", id, 0
	}
	dir, base, _ := splitName(e.path)
	names, err := os.ReadDir(dir)
	if err != nil {
		return "", id, 0
	}
	for _, n := range names {
		name := dir + n.Name()
		if !n.Type().IsRegular() || !strings.HasPrefix(n.Name(), base) || name == now || x.files[name] != nil {
			continue
		}
		candidate, info, err := e.isCopy(name, at)
		if err == nil && info.Size() > length {
			path, id, length = name, candidate, info.Size()
		}
	}
	return path, id, length
}

// errNoCopy says that a file is not the copy that is looked for.
var errNoCopy = errors.New("no copy")

// isCopy looks whether a file is the copy of that of an entry, and can be gone on with.
func (e *entry) isCopy(path string, cut fs.FileInfo) (id fileID, info fs.FileInfo, err error) {
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return id, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return id, nil, err
	}
	if info.Size() < e.length || info.ModTime().After(cut.ModTime()) || !info.Mode().IsRegular() {
		return id, nil, errNoCopy
	}
	if in, err := e.tail.in(f); err != nil || !in {
		return id, nil, errors.Join(errNoCopy, err)
	}
	id, err = idOf(f, info)
	return id, info, err
}
