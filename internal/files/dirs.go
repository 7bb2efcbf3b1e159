// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// makeDir makes a directory and those it is in, and remembers which directories got a new name in them.
func (s *Set) makeDir(dir string) error {
	err := os.Mkdir(dir, s.o.DirMode)
	parent := filepath.Dir(dir)
	if errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := s.makeDir(parent); err != nil {
			return err
		}
		err = os.Mkdir(dir, s.o.DirMode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // or it is no directory: then the open says so
	}
	if err == nil {
		s.dirs[parent] = struct{}{}
	}
	return err
}

// syncDirs makes the names of new files durable. One that was removed meanwhile has none.
func (s *Set) syncDirs() error {
	for dir := range s.dirs {
		if err := s.o.kernel.syncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.failed = fmt.Errorf("%w: %w", ErrSync, err)
			return s.failed
		}
		delete(s.dirs, dir)
	}
	return nil
}
