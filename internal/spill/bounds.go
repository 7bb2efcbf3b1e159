// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"errors"
	"fmt"
)

// Bounds of what is taken over by an open folder: files of another user may say and have anything,
// and cost nothing where they are sparse.
const (
	// maxFound is how many chunks all spills may have: each takes some memory. Loggers spill
	// windows, of which each has sixteen chunks to a megabyte at most.
	maxFound = 1 << 19
	// maxSpills are open at once. Loggers of one name make no more with the default of MaxDisk.
	maxSpills = 256
)

var errGaveUp = errors.New("there is no more time")

// bound says why a spill that is reached by an open folder is not opened, beside so many others:
// it would cost too much.
func (f *Folder) bound(name string, open int) error {
	if f.in == nil {
		return nil
	}
	if open >= maxSpills {
		return fmt.Errorf("there are more than %d spills", maxSpills)
	}
	in, err := f.in.Sub(name)
	if err != nil {
		return err
	}
	defer in.Close()
	all, err := in.List()
	for _, e := range all {
		if e.Size > maxFile {
			return fmt.Errorf("%s has %d bytes: more than %d", e.Name, e.Size, int64(maxFile))
		}
		if e.Regular {
			f.discovered += e.Size
		}
	}
	if f.discovered > f.opt.MaxDisk {
		return fmt.Errorf("all have more than %d bytes", f.opt.MaxDisk)
	}
	return err
}
