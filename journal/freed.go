// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
)

var errUnreadable = errors.New("the device did not give all of it; the rest was read")

// What becomes of a segment that all cursors have passed: it is freed, and then used again under
// another number, or given back to the disk, or set aside where the device did not give all of it.

// serves says whether a segment can be used as it is, on a disk that has no room for it to grow.
func (g *spares) serves(s *segment) bool { return s.size >= g.opt.SegmentBytes/2 }

// recyclableLocked is the index of the freed segment that was used last, whose pages are likely
// still in memory, or -1. One that has to grow is only taken where there is no other. With mu held.
func (g *spares) recyclableLocked() int {
	for i, s := range slices.Backward(g.free) {
		if g.serves(s) {
			return i
		}
	}
	if len(g.ready) > 0 {
		return -1
	}
	return len(g.free) - 1
}

// recycleLocked gives a freed segment the next number, which is taken with the file's name. With mu
// held.
func (g *spares) recycleLocked() *job {
	i := g.recyclableLocked()
	old := g.free[i]
	g.free = slices.Delete(g.free, i, i+1)
	s := &segment{seq: g.nextSeq, path: old.path, file: old.file, size: old.size, filled: max(old.filled, pageSize)}
	return &job{
		work: func() error { return g.reuse(s) },
		settle: func(err error) error {
			if s.path == old.path {
				s.seq = old.seq
			} else {
				g.nextSeq++
			}
			g.bytes += s.size - old.size
			if errors.Is(err, fs.ErrNotExist) { // others removed it, and it held nothing
				g.bytes -= s.size
				return s.close()
			}
			if err != nil {
				g.free = append(g.free, s) // it is tried again
				return err
			}
			g.recycled++
			g.preparedLocked(s)
			return nil
		},
	}
}

// reuse makes the file of a freed segment that of s.
func (g *spares) reuse(s *segment) (err error) {
	if s.file == nil {
		s.file, err = g.fs.Open(s.path)
	}
	if err == nil {
		err = s.writeSpare()
	}
	if err == nil && s.size != g.opt.SegmentBytes {
		// One that was made smaller, and cannot grow on a full disk, serves as it is.
		if err = s.resize(g.opt.SegmentBytes); isNoSpace(err) && g.serves(s) {
			err = nil
		}
	}
	if err == nil {
		if err = g.fs.Rename(s.path, g.path(segmentName(s.seq))); err == nil {
			s.path = g.path(segmentName(s.seq))
			err = g.fs.SyncDir(g.dir)
		}
	}
	return err
}

// droppableLocked is the index of a freed segment that may be removed, or -1: the smallest that is
// left when two stay. The file with the highest number is what keeps the next Open from using a
// number, and so positions, twice. And one that is large enough to be used again is kept, so that a
// journal that is drained takes records in turns when others have filled the disk. With mu held.
func (g *spares) droppableLocked() int {
	top, serve := uint32(0), 0
	for _, list := range [...][]*segment{g.segs, g.ready, g.free} {
		for _, s := range list {
			top = max(top, s.seq)
			if g.serves(s) {
				serve++
			}
		}
	}
	smallest := -1
	for i, s := range g.free {
		if s.seq < top && (serve > 1 || !g.serves(s)) && (smallest < 0 || s.size < g.free[smallest].size) {
			smallest = i
		}
	}
	return smallest
}

// shrinkableLocked is the index of a freed segment of which the reserve can have a part, or -1.
// With mu held.
func (g *spares) shrinkableLocked() int {
	return slices.IndexFunc(g.free, func(s *segment) bool { return s.size > pageUp(g.opt.SegmentBytes/2) })
}

// shrinkLocked gives as much of a freed segment back to the disk as the reserve lacks, and leaves
// half. With mu held.
func (g *spares) shrinkLocked() *job {
	g.reserve.scarce = nil
	i := g.shrinkableLocked()
	s := g.free[i]
	g.free = slices.Delete(g.free, i, i+1)
	was := s.size
	return &job{
		work: func() error { return g.shrink(s) },
		settle: func(err error) error {
			g.bytes += s.size - was
			if errors.Is(err, fs.ErrNotExist) { // as in recycleLocked
				g.bytes -= s.size
				return s.close()
			}
			g.free = append(g.free, s)
			return err
		},
	}
}

func (g *spares) shrink(s *segment) (err error) {
	lacks := g.reserve.lacks()
	if s.file == nil {
		s.file, err = g.fs.Open(s.path)
	}
	if err == nil {
		err = s.writeSpare()
	}
	if err == nil {
		err = s.resize(max(pageUp(g.opt.SegmentBytes/2), s.size-lacks))
	}
	return err
}

// dropLocked gives a freed segment's room back to the disk. With mu held.
func (g *spares) dropLocked() *job {
	g.trim = false
	g.dropped++
	i := g.droppableLocked()
	s := g.free[i]
	g.free = slices.Delete(g.free, i, i+1)
	return &job{
		work: func() error {
			err := s.close()
			if gone := g.fs.Remove(s.path); !errors.Is(gone, fs.ErrNotExist) { // others may have removed it
				err = errors.Join(err, gone)
			}
			return err
		},
		settle: func(err error) error {
			g.bytes -= s.size
			return err
		},
	}
}

// putAsideLocked moves a segment with unreadable bytes into quarantine instead of using it again.
// With mu held.
func (g *spares) putAsideLocked() *job {
	s := g.aside[0]
	g.aside = g.aside[1:]
	g.bytes -= s.size
	return &job{
		work: func() error {
			err := g.moveAside(filepath.Base(s.path), errUnreadable)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil // it was removed
			}
			return errors.Join(err, s.close())
		},
		settle: func(err error) error { return err },
	}
}
