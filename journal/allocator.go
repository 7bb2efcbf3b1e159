// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"time"
)

const (
	aheadSegments = 2           // prepared and waiting for use, if freed ones can be had; otherwise one
	keepSpare     = 2           // freed ones kept besides; more are given back to the disk, but slowly:
	mostSpare     = 16          // up to so many at once are likely needed again at the next burst
	trimSpare     = time.Second // and go one at a time
	retrySpace    = time.Second // how often a full or failing disk is tried again
)

var errLimit = errors.New("byte limit is met")

// noRoom says why no segment of size bytes is coming, or nil when one may be: then the caller
// waits. With mu held.
func (j *Journal) noRoom(size int64) error {
	size = max(size, j.opt.SegmentBytes)
	if j.blocked != nil && size >= j.blockAt {
		j.full = true
		j.release()
		wake(j.prod)
		switch {
		case j.blocked == nil:
		case errors.Is(j.blocked, errLimit) || isNoSpace(j.blocked):
			return fmt.Errorf("%w: %w", ErrFull, j.blocked)
		default:
			return fmt.Errorf("journal: prepare segment: %w", j.blocked)
		}
	}
	j.blocked = nil
	j.want = max(j.want, size)
	j.release()
	wake(j.prod)
	return nil
}

// Space returns a channel that is closed when an Append that was refused may succeed: segments were
// freed, a full disk has room again, or the journal went on after an error. It is closed already
// when no Append was refused since.
func (j *Journal) Space() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.full || j.closed {
		c := make(chan struct{})
		close(c)
		return c
	}
	if j.space == nil {
		j.space = make(chan struct{})
	}
	return j.space
}

// openSpace tells those who wait for room. With mu held.
func (j *Journal) openSpace() {
	j.full = false
	if j.space != nil {
		close(j.space)
		j.space = nil
	}
}

// runAllocator is the journal's goroutine that prepares segments before they are needed, so that
// neither creating files nor a full disk is ever met while writing, and recycles those that all
// cursors have passed.
func (j *Journal) runAllocator() {
	defer j.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	said := ""
	for !j.closed {
		job := j.job()
		if job == nil {
			wait := time.Hour
			if j.blocked != nil && !errors.Is(j.blocked, errLimit) || j.short {
				wait = retrySpace
			} else if len(j.free) > keepSpare {
				wait = trimSpare
			}
			timer.Reset(wait)
			j.mu.Unlock()
			select {
			case <-j.prod:
			case <-timer.C:
				j.mu.Lock()
				j.blocked, j.scarce = nil, nil // try again
				j.trim = len(j.free) > keepSpare && j.droppable() >= 0
				j.mu.Unlock()
			case <-j.done:
			}
			j.mu.Lock()
			continue
		}
		if err := job(); err != nil {
			j.block(err)
			if said != err.Error() { // once, not at every try
				said = err.Error()
				j.tell(fmt.Errorf("journal: prepare segment: %w", err))
			}
		} else {
			said = ""
		}
		j.broadcast()
	}
	for len(j.aside) > 0 {
		if err := j.putAside(); err != nil {
			j.closeErr = err
		}
	}
}

// block notes that nothing can be prepared, and why. With mu held.
func (j *Journal) block(err error) {
	j.blocked = err
	j.blockAt = max(j.want, j.opt.SegmentBytes)
	j.want = 0
}

// job returns what the allocator is to do next, or nil. It notes when there is something to do but
// no room. With mu held; a job is called with mu held too and lets it go.
func (j *Journal) job() func() error {
	if j.want > 0 && len(j.ready) > 0 && j.ready[0].size >= j.want {
		j.want = 0
	}
	size := j.opt.SegmentBytes
	switch {
	case j.short && j.scarce == nil:
		return j.fillReserve
	case j.emptied > 0 && j.blocked == nil:
		return j.vouch
	case len(j.aside) > 0:
		return j.putAside
	case j.short && j.emptied == 0 && j.droppable() >= 0:
		j.scarce = nil
		return j.drop
	case j.short && j.emptied == 0 && j.shrinkable() >= 0:
		return j.shrink
	case j.blocked != nil:
		return nil
	case len(j.ready) > 1 && j.want > size && j.room(j.want) < 0:
		// A large record needs the room of all that is only prepared.
		n := len(j.ready) - 1
		j.free = append(j.free, j.ready[:n]...)
		j.ready = append(j.ready[:0], j.ready[n])
		return j.drop
	case j.droppable() >= 0 && (j.trim || len(j.free) > mostSpare || j.want > size && j.room(j.want) < 0):
		return j.drop
	case len(j.ready) > 0 && j.want > j.ready[0].size:
		if j.short {
			return j.refuse()
		}
		if j.bytes+j.want-j.ready[0].size > j.opt.MaxBytes {
			j.block(errLimit)
			j.broadcast()
			return nil
		}
		return func() error { return j.grow(j.want) }
	case len(j.ready) >= aheadSegments:
		return nil
	case j.recyclable() >= 0:
		return j.recycle
	case len(j.ready) > 0:
		// One is enough until the next is freed. A reader that keeps up frees one for each that is
		// filled, and writing into it again costs a fiftieth of writing new blocks through new
		// pages.
		return nil
	case j.bytes+max(size, j.want) <= j.opt.MaxBytes:
		if j.short {
			return j.refuse()
		}
		return func() error { return j.create(max(size, j.want)) }
	default:
		j.block(errLimit)
		j.broadcast()
	}
	return nil
}

// refuse notes that the disk has no room beside the reserve. With mu held.
func (j *Journal) refuse() func() error {
	j.block(fmt.Errorf("what cursors need comes first: %w", j.scarce))
	j.broadcast()
	return nil
}

// room is what would be left of the limit with a segment of size bytes in place of the first one
// prepared. With mu held.
func (j *Journal) room(size int64) int64 {
	r := j.opt.MaxBytes - j.bytes - size
	if len(j.ready) > 0 {
		r += j.ready[0].size
	}
	return r
}

// create makes a new segment file.
func (j *Journal) create(size int64) error {
	s := &segment{seq: j.nextSeq, path: j.path(segmentName(j.nextSeq)), size: size}
	j.nextSeq++
	j.bytes += size
	j.count.created++
	j.mu.Unlock()
	err := j.createFile(s)
	j.mu.Lock()
	if err != nil {
		j.bytes -= size
		return err
	}
	j.prepared(s)
	return nil
}

// createFile gives the file its name once it is durable that it holds no records: one under that
// name which says nothing was damaged.
func (j *Journal) createFile(s *segment) (err error) {
	path := j.path(unnamedSegment)
	_ = j.fs.Remove(path) // of an attempt that failed
	if s.file, err = j.fs.Create(path); err != nil {
		return err
	}
	err = s.file.Allocate(s.size)
	if err == nil {
		err = s.writeSpare()
	}
	if err == nil {
		if err = j.fs.Rename(path, s.path); err == nil {
			path = s.path
			err = j.fs.SyncDir(j.dir)
		}
	}
	err = errors.Join(err, s.close())
	if err == nil { // under the name that errors are to say
		s.file, err = j.fs.Open(path)
	}
	if err != nil {
		return errors.Join(err, j.fs.Remove(path))
	}
	s.filled = pageSize
	return nil
}

// writeSpare marks the file as holding nothing.
func (s *segment) writeSpare() error {
	return s.putHeader(&segmentHeader{kind: segmentSpare, seq: s.seq, size: s.size})
}

// putHeader makes a header durable.
func (s *segment) putHeader(h *segmentHeader) error {
	page := make([]byte, pageSize)
	h.put(page)
	if _, err := s.file.WriteAt(page, 0); err != nil {
		return err
	}
	return s.file.Datasync()
}

// prepared adds s to those waiting for use. With mu held.
func (j *Journal) prepared(s *segment) {
	j.ready = append(j.ready, s)
	if j.want <= j.ready[0].size {
		j.want = 0
	}
	if j.full && j.err == nil {
		j.openSpace()
	}
}

// resize makes a spare file the size that segments have.
func (s *segment) resize(size int64) error {
	var err error
	if size < s.size {
		err = s.file.Truncate(size)
	} else {
		err = s.file.Allocate(size)
	}
	if err != nil {
		return err
	}
	s.filled = min(s.filled, size, s.size)
	s.size = size
	return s.writeSpare()
}

// grow makes the first prepared segment large enough for a large record. Meanwhile none is begun:
// one with a higher number would come before it.
func (j *Journal) grow(size int64) error {
	s := j.ready[0]
	old := s.size
	j.bytes += size - old
	j.growing = true
	j.mu.Unlock()
	err := s.resize(size)
	j.mu.Lock()
	j.growing = false
	if err != nil {
		s.size = old
		j.bytes -= size - old
		return err
	}
	j.want = 0
	if j.full && j.err == nil {
		j.openSpace()
	}
	return nil
}
