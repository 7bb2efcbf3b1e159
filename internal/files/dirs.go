// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Dirs are the directories that got new names since they were last synced.
type dirs map[string]struct{}

// named remembers that a path may be new in its directory.
func (d dirs) named(path string) { d[filepath.Dir(path)] = struct{}{} }

// makeDir makes a directory and those it is in.
func (d dirs) makeDir(dir string, mode fs.FileMode) error {
	err := os.Mkdir(dir, mode)
	parent := filepath.Dir(dir)
	if errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := d.makeDir(parent, mode); err != nil {
			return err
		}
		err = os.Mkdir(dir, mode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // or it is no directory: then the open says so
	}
	if err == nil {
		d.named(dir)
	}
	return err
}
