// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ring

import (
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/spillwaylog/spillway/internal/within"
)

// A site is where an adopted ring lies.
type site struct {
	in     *folder // the folder of rings; nil until the ring is adopted
	name   string
	folder *within.Folder // of the ring
}

func (s *site) close() {
	if s.in != nil {
		s.in.Close()
	}
	s.folder.Close()
}

// remove removes the ring's files and its folder: first out of sight, so that no process finds half
// a ring.
func (s *site) remove() error {
	if !s.in.Leads(s.name, s.folder) {
		return nil // another process has tidied up
	}
	temporary := s.name + temporarySuffix
	if err := s.in.Rename(s.name, temporary); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	for _, name := range []string{ringFile, ownerFile} {
		_ = s.folder.Remove(name)
	}
	return s.in.RemoveAll(temporary)
}

// A folder is a Dir's, and that of the rings that were adopted in it: these need no other
// descriptor of it. It is closed when it is no longer used.
type folder struct {
	*within.Folder
	users atomic.Int32
}

func (f *folder) use() *folder {
	f.users.Add(1)
	return f
}

func (f *folder) Close() error {
	if f.users.Add(-1) > 0 {
		return nil
	}
	return f.Folder.Close()
}
