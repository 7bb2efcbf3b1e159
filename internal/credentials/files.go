// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/internal/urls"
)

// The largest files that are read.
const (
	maxSecret = 64 << 10
	maxPEM    = 1 << 20
	maxList   = 8 << 20
)

// A file is one that a parameter names. Messages show it as it is written in a URL:
// cert=/etc/spillway/server.pem.
type file struct{ parameter, path string }

func (f file) given() bool { return f.path != "" }

func (f file) String() string { return f.parameter + "=" + f.path }

// files reads the files of one value, and remembers them.
type files struct {
	seen     []*seen
	warnings []error
}

// seen is a file as it was when it was read.
type seen struct {
	path  string
	limit int64
	info  fs.FileInfo // nil: there was none
	at    time.Time
	sum   [sha256.Size]byte
	err   string // why it could not be read
}

// young is how old a file has to be until its time tells whether it has changed: clocks of file
// systems are coarse, and files that belong together are not written in one moment.
const young = 2 * time.Second

func (f *files) read(of file, limit int64, secret bool) ([]byte, error) {
	s, data, err := look(of.path, limit)
	f.seen = append(f.seen, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	if secret && runtime.GOOS != "windows" && s.info.Mode().Perm()&0o066 != 0 {
		f.warn(fmt.Errorf("%s: others than its owner can read or write it (mode %04o): run chmod 600 on it", of,
			s.info.Mode().Perm()))
	}
	return data, nil
}

func (f *files) warn(err error) { f.warnings = append(f.warnings, err) }

// look reads a file.
func look(path string, limit int64) (*seen, []byte, error) {
	s := &seen{path: path, limit: limit, at: time.Now()}
	data, err := s.look()
	var in *fs.PathError
	if errors.As(err, &in) { // the caller says which file it is
		err = in.Err
	}
	if err != nil {
		s.err = err.Error()
	}
	s.sum = sha256.Sum256(data)
	return s, data, err
}

func (s *seen) look() ([]byte, error) {
	info, err := os.Stat(s.path) // before it is opened: to open a pipe waits for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	file, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, s.limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > s.limit {
		return nil, fmt.Errorf("it is larger than %d bytes", s.limit)
	}
	s.info = info
	return data, nil
}

// changed reports whether the file has other contents now.
func (s *seen) changed() bool {
	if s.info != nil && !near(s.at, s.info.ModTime()) {
		info, err := os.Stat(s.path)
		if err == nil && os.SameFile(info, s.info) && info.Size() == s.info.Size() &&
			info.ModTime().Equal(s.info.ModTime()) {
			return false
		}
	}
	now, _, _ := look(s.path, s.limit)
	if now.sum != s.sum || now.err != s.err {
		return true
	}
	*s = *now
	return false
}

// near reports whether a file of this time may be written again within it, or by a clock that is
// ahead.
func near(now, written time.Time) bool { return now.Sub(written) < young }

// settled reports whether nobody is at the files just now.
func (f *files) settled(now time.Time) bool {
	for _, s := range f.seen {
		if s.info != nil {
			if age := now.Sub(s.info.ModTime()); 0 <= age && age < young {
				return false
			}
		}
	}
	return true
}

// differ returns the files whose contents are not the same as in old, or not in it.
func (f *files) differ(old *files) []string {
	var names []string
	for _, s := range f.seen {
		same := slices.ContainsFunc(old.seen,
			func(o *seen) bool { return o.path == s.path && o.sum == s.sum && o.err == s.err })
		if !same && !slices.Contains(names, s.path) {
			names = append(names, s.path)
		}
	}
	return names
}

// has reports whether a file was read.
func (f *files) has(path string) bool {
	return slices.ContainsFunc(f.seen, func(s *seen) bool { return s.path == path })
}

// filePath asks for a parameter that is a path, and returns it from the root, wherever the process
// goes later.
func filePath(p *urls.Params, name string) file {
	f := file{name, p.String(name, "")}
	if !f.given() {
		return f
	}
	if abs, err := filepath.Abs(f.path); err == nil {
		f.path = abs
	}
	return f
}
