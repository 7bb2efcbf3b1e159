// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Usable returns what Open has against a path and options, whatever is on the disk, where it does
// not look.
func Usable(path string, o *Options) error {
	_, err := trial(path, o)
	return err
}

// pattern reads a path for a Set of these options, which are resolved. me is what of this process
// stands in the paths of its files.
func (o *Options) pattern(path string) (p *pattern, me identity, err error) {
	if p, err = parsePattern(path); err != nil {
		return nil, me, err
	}
	if o.Rotation.on() || o.tends(p) {
		p.reserve = rotatedRoom
	}
	if o.Shared == SharedLock {
		p.reserve = max(p.reserve, len(latchEnding))
	}
	me = p.of(*o.self)
	return p, me, p.check(me)
}

// Check is Try, but returns only what waiting does not mend: a path that is wrong, a right that is
// missing, a file system that is read-only, something that is no regular file. A disk that is full
// or fails is no error here, for it may recover.
func Check(path string, o *Options) error {
	try, err := trial(path, o)
	if err != nil {
		return err
	}
	if err = try(); lasting(err) {
		return err
	}
	return nil
}

// Try looks whether files can be made under a path with placeholders, as far as the path is known
// before the first line: its directories up to the first placeholder, and the file itself where
// there is none. It leaves nothing behind.
func Try(path string, o *Options) error {
	try, err := trial(path, o)
	if err != nil {
		return err
	}
	return try()
}

// trial returns what tries a path that can be one.
func trial(path string, o *Options) (try func() error, err error) {
	options, err := o.resolved()
	if err != nil {
		return nil, err
	}
	p, _, err := options.pattern(path)
	if err != nil {
		return nil, err
	}
	return func() error {
		return tryDir(p.base, options.DirMode, func() error {
			if len(p.elements) == 1 && len(p.elements[0]) == 1 && p.elements[0][0].what == literal {
				path := p.path(route{}, identity{})
				if err := tryFile(path); err != nil || options.Shared != SharedLock {
					return err
				}
				return tryFile(path + latchEnding)
			}
			return nil
		})
	}, nil
}

// lasting reports whether an error stays until somebody changes a path, a right or a mount.
func lasting(err error) bool {
	for _, cause := range []error{
		ErrKind, fs.ErrNotExist, fs.ErrPermission,
		syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.EROFS, syscall.ENAMETOOLONG,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// tryDir makes a directory and those it is in, and a file in it, calls then, and takes away what it
// has made: a Set makes them for good, and durable.
func tryDir(dir string, mode fs.FileMode, then func() error) error {
	made, err := makeAll(dir, mode)
	defer func() {
		for _, d := range made {
			_ = os.Remove(d) // unless somebody uses it by now
		}
	}()
	if err == nil {
		err = tryCreate(dir)
	}
	if err != nil {
		return err
	}
	return then()
}

// makeAll makes a directory and those it is in, as far as they are missing, and returns which, the
// innermost first.
func makeAll(dir string, mode fs.FileMode) (made []string, err error) {
	if _, err = os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = os.Mkdir(dir, mode)
	if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
		if made, err = makeAll(parent, mode); err != nil {
			return made, err
		}
		err = os.Mkdir(dir, mode)
	}
	switch {
	case errors.Is(err, fs.ErrExist): // another made it just now, or it is a link that leads nowhere
		return made, nil
	case err == nil:
		made = append([]string{dir}, made...)
	}
	return made, err
}

// tryFile looks at a file that is to be appended to, if it is there.
func tryFile(path string) error {
	f, err := os.OpenFile(path, openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Lstat(path); there != nil {
			return nil
		}
	}
	if isLink(err) {
		return &fs.PathError{
			Op: "open", Path: path,
			Err: fmt.Errorf("%w: a symbolic link, which is not followed", ErrKind),
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w: %s", ErrKind, kindOf(info.Mode()))}
	}
	return err
}

// tryNamed makes a file in a directory and removes it.
func tryNamed(dir string) error {
	f, err := os.CreateTemp(dir, ".spillway-*")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err // the name would only be a riddle
		}
		return fmt.Errorf("%s takes no new file: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
