// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// makeDir makes a directory and those it is in, and remembers which directories got a new name in
// them.
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
