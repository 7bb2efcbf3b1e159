// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spillwaylog/spillway/internal/within"
)

// Within is the operating system below an open folder, for a journal in the folder's own path: what
// lies elsewhere is out of reach, no symbolic link is followed, and what is made becomes the
// folder's owner's. The caller closes the folder, once the journal is closed.
func Within(folder *within.Folder) FS { return withinFS{folder} }

type withinFS struct{ folder *within.Folder }

// reach opens the folder in which a path lies, and says what it is called there: empty, if it is
// the folder itself.
func (w withinFS) reach(path string) (in *within.Folder, name string, err error) {
	rest, ok := strings.CutPrefix(path, w.folder.Path())
	if !ok || rest != "" && rest[0] != filepath.Separator {
		return nil, "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	}
	if in, err = w.folder.Again(); err != nil {
		return nil, "", err
	}
	names := strings.FieldsFunc(rest, func(c rune) bool { return c == filepath.Separator })
	for i, n := range names {
		if i == len(names)-1 {
			return in, n, nil
		}
		sub, err := in.Sub(n)
		_ = in.Close() // it was only read
		if err != nil {
			return nil, "", err
		}
		in = sub
	}
	return in, "", nil
}

func (w withinFS) open(path string, flag int) (*os.File, error) {
	in, name, err := w.reach(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return in.OpenFile(name, flag)
}

func (w withinFS) MkdirAll(dir string) error {
	in, name, err := w.reach(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	if name == "" {
		return nil
	}
	return in.Mkdir(name)
}

func (w withinFS) Lock(path string) (io.Closer, error) {
	f, err := w.open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return lockOpen(f, path)
}

func (w withinFS) Create(path string) (File, error) {
	f, err := w.open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	return newFile(f)
}

func (w withinFS) Open(path string) (File, error) {
	f, err := w.open(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	return newFile(f)
}

// Rename moves within a folder, or into another one: what is set aside.
func (w withinFS) Rename(oldpath, newpath string) error {
	from, oldname, err := w.reach(oldpath)
	if err != nil {
		return err
	}
	defer from.Close()
	to, newname, err := w.reach(newpath)
	if err != nil {
		return err
	}
	defer to.Close()
	return from.Move(oldname, to, newname)
}

func (w withinFS) Remove(path string) error {
	in, name, err := w.reach(path)
	if err != nil {
		return err
	}
	defer in.Close()
	return in.Remove(name)
}

func (w withinFS) ReadDir(dir string) ([]DirEntry, error) {
	in, name, err := w.reach(dir)
	if err != nil {
		return nil, err
	}
	defer func() { in.Close() }()
	if name != "" {
		sub, err := in.Sub(name)
		if err != nil {
			return nil, err
		}
		_ = in.Close() // it was only read
		in = sub
	}
	list, err := in.List()
	all := make([]DirEntry, len(list))
	for i, e := range list {
		all[i] = DirEntry{Name: e.Name, Regular: e.Regular, Modified: e.Modified}
	}
	return all, err
}

func (w withinFS) SyncDir(dir string) error {
	in, name, err := w.reach(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // the folders above are not this journal's
	}
	if err != nil {
		return err
	}
	defer func() { in.Close() }()
	if name != "" {
		sub, err := in.Sub(name)
		if err != nil {
			return err
		}
		_ = in.Close() // it was only read
		in = sub
	}
	return in.Sync()
}
