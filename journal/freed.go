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
func (j *Journal) serves(s *segment) bool { return s.size >= j.opt.SegmentBytes/2 }

// recyclable is the index of the freed segment that was used last, whose pages are likely still in
// memory, or -1. One that has to grow is only taken where there is no other. With mu held.
func (j *Journal) recyclable() int {
	for i, s := range slices.Backward(j.free) {
		if j.serves(s) {
			return i
		}
	}
	if len(j.ready) > 0 {
		return -1
	}
	return len(j.free) - 1
}

// recycle gives a freed segment the next number.
func (j *Journal) recycle() error {
	i := j.recyclable()
	j.count.recycled++
	old := j.free[i]
	j.free = slices.Delete(j.free, i, i+1)
	s := &segment{seq: j.nextSeq, path: old.path, file: old.file, size: old.size, filled: max(old.filled, pageSize)}
	j.nextSeq++
	j.mu.Unlock()
	var err error
	if s.file == nil {
		s.file, err = j.fs.Open(s.path)
	}
	if err == nil {
		err = s.writeSpare()
	}
	if err == nil && s.size != j.opt.SegmentBytes {
		// One that was made smaller, and cannot grow on a full disk, serves as it is.
		if err = s.resize(j.opt.SegmentBytes); isNoSpace(err) && j.serves(s) {
			err = nil
		}
	}
	if err == nil {
		if err = j.fs.Rename(old.path, j.path(segmentName(s.seq))); err == nil {
			s.path = j.path(segmentName(s.seq))
			err = j.fs.SyncDir(j.dir)
		}
	}
	j.mu.Lock()
	j.bytes += s.size - old.size
	if errors.Is(err, fs.ErrNotExist) { // others removed it, and it held nothing
		j.bytes -= s.size
		return s.close()
	}
	if err != nil {
		j.free = append(j.free, s) // it is tried again, under another number
		return err
	}
	j.prepared(s)
	return nil
}

// droppable is the index of a freed segment that may be removed, or -1: the smallest that is left
// when two stay. The file with the highest number is what keeps the next Open from using a number,
// and so positions, twice. And one that is large enough to be used again is kept, so that a journal
// that is drained takes records in turns when others have filled the disk. With mu held.
func (j *Journal) droppable() int {
	top, serve := uint32(0), 0
	for _, list := range [...][]*segment{j.segs, j.ready, j.free} {
		for _, s := range list {
			top = max(top, s.seq)
			if j.serves(s) {
				serve++
			}
		}
	}
	least := -1
	for i, s := range j.free {
		if s.seq < top && (serve > 1 || !j.serves(s)) && (least < 0 || s.size < j.free[least].size) {
			least = i
		}
	}
	return least
}

// shrinkable is the index of a freed segment of which the reserve can have a part, or -1. With mu
// held.
func (j *Journal) shrinkable() int {
	return slices.IndexFunc(j.free, func(s *segment) bool { return s.size > pageUp(j.opt.SegmentBytes/2) })
}

// shrink gives as much of a freed segment back to the disk as the reserve lacks, and leaves half.
func (j *Journal) shrink() (err error) {
	j.scarce = nil
	i := j.shrinkable()
	s := j.free[i]
	j.free = slices.Delete(j.free, i, i+1)
	j.mu.Unlock()
	j.reserve.mu.Lock()
	lacks := j.opt.Reserve - j.reserve.size
	j.reserve.mu.Unlock()
	was := s.size
	if s.file == nil {
		s.file, err = j.fs.Open(s.path)
	}
	if err == nil {
		err = s.writeSpare()
	}
	if err == nil {
		err = s.resize(max(pageUp(j.opt.SegmentBytes/2), s.size-lacks))
	}
	j.mu.Lock()
	j.bytes += s.size - was
	j.free = append(j.free, s)
	return err
}

// drop gives a freed segment's room back to the disk.
func (j *Journal) drop() error {
	j.trim = false
	j.count.dropped++
	i := j.droppable()
	s := j.free[i]
	j.free = slices.Delete(j.free, i, i+1)
	j.mu.Unlock()
	err := s.close()
	if gone := j.fs.Remove(s.path); !errors.Is(gone, fs.ErrNotExist) { // others may have removed it
		err = errors.Join(err, gone)
	}
	j.mu.Lock()
	j.bytes -= s.size
	return err
}

// release frees the segments that all cursors have passed, but for the last one: while that is
// there, a cursor that stands where no segment is has lost something. Where its room is needed, the
// reserve notes that it was passed. With mu held.
func (j *Journal) release() {
	if len(j.cursors) == 0 {
		return
	}
	low := j.lowestLocked()
	wanted := max(j.want, j.refused()) > 0
	if wanted && j.seg != nil && low >= at(j.seg.seq, j.seg.last) && j.Synced() == j.end() && !j.writing {
		// A record waits that may need the room of the segment in use too, and nothing in that is
		// needed any more: then it is at its end.
		j.seg.end.Store(j.off)
		j.seg = nil
		for _, b := range j.queue {
			j.freeBatch(b)
		}
		j.queue = j.queue[:0]
	}
	n := 0
	for ; n < len(j.segs); n++ {
		s := j.segs[n]
		if s == j.seg || s.last > dataStart && low < at(s.seq, s.last) || n == len(j.segs)-1 && !wanted {
			break
		}
		if s.bad {
			j.aside = append(j.aside, s)
		} else {
			j.free = append(j.free, s)
		}
	}
	if n > 0 {
		if n == len(j.segs) && j.opt.Reserve > 0 {
			j.emptied = max(j.emptied, j.written)
		}
		j.segs = append(j.segs[:0], j.segs[n:]...)
		j.blocked = nil
		wake(j.prod)
		if j.full && j.err == nil {
			j.openSpace()
		}
	}
}

// lowestLocked is up to where all cursors have passed; without a cursor nothing is held, and it is
// behind everything.
func (j *Journal) lowestLocked() Position {
	low := Position(1<<64 - 1)
	for _, c := range j.cursors {
		low = min(low, Position(c.at.Load()))
	}
	return low
}

// refused is the size of the segment for which an Append was answered ErrFull last, or 0. With mu
// held.
func (j *Journal) refused() int64 {
	if j.full && j.blocked != nil {
		return j.blockAt
	}
	return 0
}

// putAside moves a segment with unreadable bytes into quarantine instead of using it again.
func (j *Journal) putAside() error {
	s := j.aside[0]
	j.aside = j.aside[1:]
	j.bytes -= s.size
	j.mu.Unlock()
	err := j.moveAside(filepath.Base(s.path), errUnreadable)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it was removed
	}
	err = errors.Join(err, s.close())
	j.mu.Lock()
	return err
}
