// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spillwaylog/spillway/internal/within"
	"github.com/spillwaylog/spillway/journal"
)

// A reach is how files of spills are reached: by their paths, or below an open folder, which may be
// another user's (package within). Paths begin with Dir both ways.
type reach struct {
	in *within.Folder // Dir; nil: by paths
}

// below opens the folder in which something lies that is in Dir, and says what it is called there.
func (r reach) below(path string) (in *within.Folder, name string, err error) {
	rel, err := filepath.Rel(r.in.Path(), path)
	if err != nil {
		return nil, "", err
	}
	if in, err = r.in.Again(); err != nil {
		return nil, "", err
	}
	for {
		first, rest, more := strings.Cut(rel, string(filepath.Separator))
		if !more {
			return in, first, nil
		}
		sub, err := in.Sub(first)
		_ = in.Close() // it was only read
		if err != nil {
			return nil, "", err
		}
		in, rel = sub, rest
	}
}

// folder opens a folder in Dir, or Dir.
func (r reach) folder(path string) (*within.Folder, error) {
	in, name, err := r.below(path)
	if err != nil || name == "." {
		return in, err
	}
	defer in.Close()
	return in.Sub(name)
}

// list lists a folder.
func (r reach) list(dir string) ([]within.Entry, error) {
	if r.in != nil {
		in, err := r.folder(dir)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		return in.List()
	}
	dirs, err := os.ReadDir(dir)
	all := make([]within.Entry, len(dirs))
	for i, d := range dirs {
		all[i] = within.Entry{Name: d.Name(), Dir: d.IsDir(), Regular: d.Type().IsRegular()}
	}
	return all, err
}

// open opens a file, and nothing else: to read from a pipe would be to wait for ever.
func (r reach) open(path string) (*os.File, error) {
	if r.in != nil {
		in, name, err := r.below(path)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		return in.OpenFile(name, os.O_RDONLY)
	}
	fi, err := os.Lstat(path)
	if err == nil && !fi.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: within.ErrKind}
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// move gives something another name in its folder.
func (r reach) move(from, to string) error {
	if r.in == nil {
		return os.Rename(from, to)
	}
	in, name, err := r.below(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return in.Rename(name, filepath.Base(to))
}

// remove removes a file, or an empty folder.
func (r reach) remove(path string) error {
	if r.in == nil {
		return os.Remove(path)
	}
	in, name, err := r.below(path)
	if err != nil {
		return err
	}
	defer in.Close()
	if e, err := in.Lstat(name); err == nil && e.Dir {
		return in.RemoveDir(name)
	}
	return in.Remove(name)
}

// removeAll removes whatever there is.
func (r reach) removeAll(path string) error {
	if r.in == nil {
		return os.RemoveAll(path)
	}
	in, name, err := r.below(path)
	if err != nil {
		return err
	}
	defer in.Close()
	return in.RemoveAll(name)
}

// journals is how a spill's journal reaches its files.
func (r reach) journals(sp *Spill, plain journal.FS) (_ journal.FS, err error) {
	if r.in == nil {
		return plain, nil
	}
	if sp.files, err = r.folder(sp.Dir); err != nil {
		return nil, err
	}
	return journal.Within(sp.files), nil
}
