// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
)

// spares are the segment files that hold nothing yet, or nothing any more. The allocator's
// goroutine works on them; all is guarded by the lock of life.
type spares struct {
	*folder
	*life
	*writer
	reserve *reserve
	ready   []*segment // prepared for use, in order of their numbers
	growing bool       // the first of ready is being made larger
	free    []*segment // passed by all cursors, to be recycled; the last one was used last
	trim    bool       // one of free is to be given back to the disk
	nextSeq uint32
	bytes   int64      // of all segment files
	want    int64      // size of a prepared segment that an Append waits for
	aside   []*segment // passed too, but unreadable in part: they are set aside, not used again

	created, recycled, dropped uint64
}

// takeReadyLocked returns the segment to go on in, if one of at least size bytes is prepared, else
// nil. With mu held.
func (g *spares) takeReadyLocked(size int64) *segment {
	if g.growing || len(g.ready) == 0 || g.ready[0].size < size {
		return nil
	}
	s := g.ready[0]
	g.ready = append(g.ready[:0], g.ready[1:]...)
	wake(g.allocatorWake)
	return s
}

// createLocked makes a new segment file. With mu held.
func (g *spares) createLocked(size int64) *job {
	s := &segment{seq: g.nextSeq, path: g.path(segmentName(g.nextSeq)), size: size}
	g.bytes += size
	return &job{
		work: func() error { return g.createFile(s) },
		settle: func(err error) error {
			if err != nil {
				g.bytes -= size
				return err
			}
			g.nextSeq++
			g.created++
			g.preparedLocked(s)
			return nil
		},
	}
}

// createFile gives the file its name once it is durable that it holds no records: one under that
// name which says nothing was damaged.
func (g *spares) createFile(s *segment) (err error) {
	path := g.path(unnamedSegment)
	_ = g.fs.Remove(path) // of an attempt that failed
	if s.file, err = g.fs.Create(path); err != nil {
		return err
	}
	err = s.file.Allocate(s.size)
	if err == nil {
		err = s.writeSpare()
	}
	if err == nil {
		if err = g.fs.Rename(path, s.path); err == nil {
			path = s.path
			err = g.fs.SyncDir(g.dir)
		}
	}
	err = errors.Join(err, s.close())
	if err == nil { // under the name that errors are to say
		s.file, err = g.fs.Open(path)
	}
	if err != nil {
		return errors.Join(err, g.fs.Remove(path))
	}
	s.filled = pageSize
	return nil
}

// preparedLocked adds s to those waiting for use. With mu held.
func (g *spares) preparedLocked(s *segment) {
	g.ready = append(g.ready, s)
	if g.want <= g.ready[0].size {
		g.want = 0
	}
	if g.full && g.err == nil {
		g.openSpaceLocked()
	}
}

// growLocked makes the first prepared segment large enough for a large record. Meanwhile none is
// begun: one with a higher number would come before it. With mu held.
func (g *spares) growLocked(size int64) *job {
	s := g.ready[0]
	old := s.size
	g.bytes += size - old
	g.growing = true
	return &job{
		work: func() error { return s.resize(size) },
		settle: func(err error) error {
			g.growing = false
			if err != nil {
				s.size = old
				g.bytes -= size - old
				return err
			}
			g.want = 0
			if g.full && g.err == nil {
				g.openSpaceLocked()
			}
			return nil
		},
	}
}

// roomLocked is what would be left of the limit with a segment of size bytes in place of the first
// one prepared. With mu held.
func (g *spares) roomLocked(size int64) int64 {
	r := g.opt.MaxBytes - g.bytes - size
	if len(g.ready) > 0 {
		r += g.ready[0].size
	}
	return r
}
