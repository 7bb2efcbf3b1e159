// SPDX-License-Identifier: Apache-2.0

//go:build unix

package within

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Folder is open. Its methods may be called by many goroutines.
type Folder struct {
	f    *os.File
	path string
	uid  uint32
	gid  uint32
	mode fs.FileMode
}

const openFolder = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// Open opens a folder. The last element of the path may not be a symbolic link.
func Open(path string) (*Folder, error) { return open(unix.AT_FDCWD, path, path) }

// OpenAny opens a folder, whatever leads to it.
func OpenAny(path string) (*Folder, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return Open(path)
}

// Walk opens a folder by an absolute path, no element of which may be a symbolic link.
func Walk(path string) (*Folder, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, fmt.Errorf("%q is no plain absolute path", path)
	}
	d, err := Open("/")
	for _, name := range strings.FieldsFunc(path, func(c rune) bool { return c == '/' }) {
		if err != nil {
			return nil, err
		}
		next, nextErr := d.Enter(name)
		_ = d.Close() // it was only read
		d, err = next, nextErr
	}
	return d, err
}

func open(at int, name, path string) (*Folder, error) {
	fd, err := again(func() (int, error) { return unix.Openat(at, name, openFolder, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d := &Folder{f: os.NewFile(uintptr(fd), path), path: path}
	fi, err := d.f.Stat()
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err != nil {
		return nil, errors.Join(err, d.f.Close())
	}
	d.uid, d.gid, d.mode = st.Uid, st.Gid, fi.Mode()
	return d, nil
}

// again calls fn until no signal interrupts it.
func again[T any](fn func() (T, error)) (T, error) {
	for {
		v, err := fn()
		if !errors.Is(err, unix.EINTR) {
			return v, err
		}
	}
}

// element says that a name is one of an entry of a folder.
func element(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// Path is what it was opened by.
func (d *Folder) Path() string { return d.path }

// UID is its owner.
func (d *Folder) UID() int { return int(d.uid) }

// Mode is what it was when it was opened.
func (d *Folder) Mode() fs.FileMode { return d.mode }

// Close closes it.
func (d *Folder) Close() error { return d.f.Close() }

// Again opens it once more.
func (d *Folder) Again() (*Folder, error) { return open(d.fd(), ".", d.path) }

func (d *Folder) fd() int { return int(d.f.Fd()) } // a folder's is never one that Fd changes

func (d *Folder) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: filepath.Join(d.path, name), Err: err}
}

// Enter opens a folder in it, whatever owner that has.
func (d *Folder) Enter(name string) (*Folder, error) {
	if !element(name) {
		return nil, d.fail("open", name, fs.ErrInvalid)
	}
	return open(d.fd(), name, filepath.Join(d.path, name))
}

// Sub opens a folder in it that has the same owner.
func (d *Folder) Sub(name string) (*Folder, error) {
	sub, err := d.Enter(name)
	if err == nil && sub.uid != d.uid {
		return nil, errors.Join(d.fail("open", name, ErrOwner), sub.Close())
	}
	return sub, err
}

// OpenFile opens a regular file of the folder's owner. One that it makes (os.O_CREATE) becomes
// that owner's, with mode 0600.
func (d *Folder) OpenFile(name string, flag int) (*os.File, error) {
	if !element(name) {
		return nil, d.fail("open", name, fs.ErrInvalid)
	}
	for {
		// What is there is not made, and what is made was not there: a file of another owner never
		// gets this one.
		f, err := d.openOnce(name, flag&^os.O_CREATE)
		if flag&os.O_CREATE == 0 || err == nil && flag&os.O_EXCL == 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		if err == nil {
			return nil, errors.Join(d.fail("open", name, fs.ErrExist), f.Close())
		}
		f, err = d.openOnce(name, flag|os.O_EXCL)
		if flag&os.O_EXCL != 0 || !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

func (d *Folder) openOnce(name string, flag int) (*os.File, error) {
	// A pipe is not waited for.
	flags := flag | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := again(func() (int, error) { return unix.Openat(d.fd(), name, flags, 0o600) })
	if err != nil {
		return nil, d.fail("open", name, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && flag&os.O_CREATE != 0 && st.Uid != d.uid {
		if err = unix.Fchown(fd, int(d.uid), int(d.gid)); err == nil {
			st.Uid = d.uid
		}
	}
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = ErrKind
	case st.Uid != d.uid:
		err = ErrOwner
	default:
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was written
		return nil, d.fail("open", name, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.path, name)), nil
}

// Mkdir makes a folder of the owner's, mode 0700. One that is there will do.
func (d *Folder) Mkdir(name string) error {
	if !element(name) {
		return d.fail("mkdir", name, fs.ErrInvalid)
	}
	err := unix.Mkdirat(d.fd(), name, 0o700)
	switch {
	case errors.Is(err, unix.EEXIST):
		return nil
	case err == nil && int(d.uid) != os.Geteuid():
		return d.give(name)
	}
	return d.fail("mkdir", name, err)
}

// give makes a folder that was made just now the owner's. He may have put something else there
// meanwhile: only an empty folder of ours is given away, and what was looked at is what is given.
func (d *Folder) give(name string) error {
	made, err := d.Enter(name)
	if err != nil {
		return err
	}
	defer made.Close()
	names, err := made.Names(1)
	switch {
	case err != nil:
	case int(made.uid) != os.Geteuid() || len(names) > 0:
		err = ErrOwner
	default:
		err = unix.Fchown(made.fd(), int(d.uid), int(d.gid))
	}
	return d.fail("mkdir", name, err)
}

// An Entry is what has a name in a folder.
type Entry struct {
	Name     string
	Dir      bool
	Regular  bool
	Size     int64
	Modified time.Time
}

// Lstat looks at an entry.
func (d *Folder) Lstat(name string) (Entry, error) {
	var st unix.Stat_t
	err := fs.ErrInvalid
	if element(name) {
		err = unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return Entry{}, d.fail("stat", name, err)
	}
	return Entry{
		Name: name, Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, Regular: st.Mode&unix.S_IFMT == unix.S_IFREG,
		Size: st.Size, Modified: time.Unix(st.Mtim.Unix()),
	}, nil
}

// Is says that a name still leads to an open file.
func (d *Folder) Is(name string, f *os.File) bool {
	var a, b unix.Stat_t
	return element(name) && unix.Fstatat(d.fd(), name, &a, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		unix.Fstat(int(f.Fd()), &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// Leads says that a name still leads to an open folder.
func (d *Folder) Leads(name string, to *Folder) bool { return d.Is(name, to.f) }

// maxListed is how many entries List looks at: it has them all in memory.
const maxListed = 1 << 16

// Names lists the entries, at most so many; 0: all.
func (d *Folder) Names(limit int) ([]string, error) {
	again, err := d.Again() // for it has its own place in the list
	if err != nil {
		return nil, err
	}
	defer again.Close()
	if limit == 0 {
		return again.f.Readdirnames(-1)
	}
	names, err := again.f.Readdirnames(limit)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// List looks at all entries, sorted by name. More than maxListed are an error.
func (d *Folder) List() ([]Entry, error) {
	names, err := d.Names(maxListed + 1)
	if err == nil && len(names) > maxListed {
		err = d.fail("list", "", fmt.Errorf("it has more than %d entries", maxListed))
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	all := make([]Entry, 0, len(names))
	for _, name := range names {
		e, err := d.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// Rename gives an entry another name, which may be taken.
func (d *Folder) Rename(from, to string) error { return d.Move(from, d, to) }

// Move moves an entry to another folder, under a name that may be taken.
func (d *Folder) Move(from string, to *Folder, name string) error {
	if !element(from) || !element(name) {
		return d.fail("rename", from, fs.ErrInvalid)
	}
	return d.fail("rename", from, unix.Renameat(d.fd(), from, to.fd(), name))
}

// Remove removes an entry that is no folder.
func (d *Folder) Remove(name string) error { return d.remove(name, 0) }

// RemoveDir removes an empty folder.
func (d *Folder) RemoveDir(name string) error { return d.remove(name, unix.AT_REMOVEDIR) }

func (d *Folder) remove(name string, flags int) error {
	if !element(name) {
		return d.fail("remove", name, fs.ErrInvalid)
	}
	return d.fail("remove", name, unix.Unlinkat(d.fd(), name, flags))
}

// deepest is how deep RemoveAll goes: no user of this package has deeper folders.
const deepest = 8

// RemoveAll removes an entry, and all that is in it. What is not there is no error.
func (d *Folder) RemoveAll(name string) error { return d.removeAll(name, deepest) }

func (d *Folder) removeAll(name string, deep int) error {
	e, err := d.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !e.Dir:
		err = d.Remove(name)
	case deep == 0:
		return d.fail("remove", name, errors.New("it is too deep"))
	default:
		sub, openErr := d.Enter(name)
		if openErr != nil {
			return openErr
		}
		defer sub.Close()
		for err == nil {
			var names []string
			if names, err = sub.Names(maxListed); len(names) == 0 {
				break
			}
			for _, n := range names {
				err = errors.Join(err, sub.removeAll(n, deep-1))
			}
		}
		if err == nil {
			err = d.RemoveDir(name)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Sync makes what was made, renamed and removed in it durable.
func (d *Folder) Sync() error {
	err := d.f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // a file system that keeps directories in order itself
	}
	return err
}
