// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"
	"hash/crc32"
	"time"
)

// Append adds one record, made of parts one after the other, and returns its end. The parts are
// copied. It does no I/O unless the batch that gathers records is full, and waits only then, or for
// a segment that is being prepared.
//
// On an error nothing was appended: [ErrFull], [ErrTooLarge], [ErrClosed], or that of a failed
// write or sync from which the journal has not recovered yet.
func (j *Journal) Append(parts ...[]byte) (Position, error) {
	_, pos, err := j.AppendAfter(parts...)
	return pos, err
}

// AppendAfter is Append that also returns the end of the record before: a Reader whose Pos is prev
// gets next the record that ends at pos. Of the first record in a directory prev is 0. Of the first
// one after Open it is the end of the last record that Open found, or the furthest cursor if that
// is beyond; where damage lies behind that record, prev may be no record's end, but it is never one
// that has another record behind it.
func (j *Journal) AppendAfter(parts ...[]byte) (prev, pos Position, err error) {
	// What costs time is done before the lock: the checksum, which the position is added to later.
	var n int64
	var crc uint32
	for _, p := range parts {
		n += int64(len(p))
		crc = crc32.Update(crc, castagnoli, p)
	}
	if n > maxRecordBytes || pageUp(dataStart+recordHeader+n) > j.opt.MaxBytes {
		return 0, 0, fmt.Errorf("%w: %d bytes, in a journal of %d", ErrTooLarge, n, j.opt.MaxBytes)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.makeRoom(n); err != nil {
		return 0, 0, err
	}
	start := place(j.off)
	end := align8(start + recordHeader + n)
	j.put(zeros[:start-j.off])
	j.bind.putHeader(j.head[:], kindRecord, int(n), crc, start)
	j.put(j.head[:])
	for _, p := range parts {
		j.put(p)
	}
	j.put(zeros[:end-start-recordHeader-n])
	j.pending += int(end - j.off)
	j.off, j.seg.last = end, end
	j.appends++
	j.syncSometime()
	prev, j.last = j.last, at(j.seg.seq, end)
	return prev, j.last, nil
}

// put adds bytes to the batch that fills, and goes on with another where one is full: a large
// record lies in several, so that large buffers are never needed. With mu held.
func (j *Journal) put(p []byte) {
	for len(p) > 0 {
		b := j.queue[len(j.queue)-1]
		if len(b.buf) == batchMost {
			b.end = b.at + batchMost
			b = j.newBatch(b.seg, b.end)
			j.queue = append(j.queue, b)
		}
		n := min(len(p), batchMost-len(b.buf))
		copy(b.extend(b.at+int64(len(b.buf)+n)), p)
		p = p[n:]
	}
}

// makeRoom returns when a record of n bytes fits in the batch that is filling. With mu held, which
// it may let go.
func (j *Journal) makeRoom(n int64) error {
	for {
		if err := j.usable(); err != nil {
			return err
		}
		if j.pending >= batchBytes {
			if !j.writing && !j.claimed {
				_ = j.writePending() // the error is sticky
				continue
			}
			j.waitUnlocked()
			continue
		}
		if j.unsynced >= mostUnsynced {
			j.syncBy(0)
			j.waitUnlocked()
			continue
		}
		if j.seg != nil && place(j.off)+recordHeader+n <= j.seg.size {
			return nil
		}
		if j.roll(pageUp(dataStart + recordHeader + n)) {
			return nil
		}
		if err := j.noRoom(pageUp(dataStart + recordHeader + n)); err != nil {
			return err
		}
		j.waitUnlocked()
	}
}

// waitUnlocked waits for a broadcast.
func (j *Journal) waitUnlocked() {
	c := j.waitChange()
	j.mu.Unlock()
	<-c
	j.mu.Lock()
}

// roll begins the next segment if one of at least size bytes is prepared. With mu held.
func (j *Journal) roll(size int64) bool {
	if j.growing || len(j.ready) == 0 || j.ready[0].size < size {
		return false
	}
	s := j.ready[0]
	j.ready = append(j.ready[:0], j.ready[1:]...)
	wake(j.prod)
	prev, last := j.end(), j.last
	if j.seg != nil {
		j.seg.end.Store(j.off)
		if n := len(j.queue) - 1; j.queue[n].empty() {
			j.freeBatch(j.queue[n])
			j.queue = j.queue[:n]
		} else {
			j.finish(j.queue[n])
		}
	}
	s.nonce, s.modified = newNonce(), time.Time{}
	j.seg, j.off = s, dataStart
	j.bind.seq, j.bind.nonce = s.seq, s.nonce
	j.segs = append(j.segs, s)
	b := j.newBatch(s, 0)
	h := segmentHeader{kind: segmentLive, seq: s.seq, nonce: s.nonce, size: s.size, prev: prev, pad: padBetween(last, prev), synced: j.Synced()}
	page := b.extend(dataStart)
	h.put(page)
	clear(page[pageSize:])
	b.from = 0
	j.queue = append(j.queue, b)
	return true
}

// padBetween is what a header says of the padding behind the last record.
func padBetween(last, prev Position) uint32 {
	if last > prev || prev-last >= pageSize || last.seq() != prev.seq() {
		return 0
	}
	return uint32(prev-last) + 1
}

// end is where the next record would begin, at the earliest. With mu held.
func (j *Journal) end() Position {
	if j.seg == nil {
		return j.written
	}
	return at(j.seg.seq, j.off)
}

// newBatch takes a batch from the pool. With mu held.
func (j *Journal) newBatch(s *segment, off int64) *batch {
	var b *batch
	if n := len(j.batches); n > 0 {
		b, j.batches = j.batches[n-1], j.batches[:n-1]
	} else {
		b = &batch{buf: make([]byte, 0, 64<<10)}
	}
	b.seg, b.at, b.from, b.end, b.buf = s, off, off, 0, b.buf[:0]
	return b
}

// freeBatch gives a batch back. With mu held.
func (j *Journal) freeBatch(b *batch) {
	b.seg = nil
	if len(j.batches) < mostBatches {
		j.batches = append(j.batches, b)
	}
}

// take ends the filling batch and returns what is to be written; a new batch fills from there on.
// With mu held.
func (j *Journal) take() []*batch {
	if len(j.queue) == 0 {
		return nil
	}
	b := j.queue[len(j.queue)-1]
	if len(j.queue) == 1 && b.empty() {
		return nil
	}
	list := j.queue
	j.lists[0], j.lists[1] = j.lists[1], list
	next := j.newBatch(b.seg, pageDown(j.off))
	if !b.empty() {
		if carry := j.off - next.at; carry > 0 {
			copy(next.extend(j.off), b.buf[next.at-b.at:])
		}
		j.finish(b)
	} else {
		// Nothing new behind a full one: it stays the filling batch.
		list = list[:len(list)-1]
		j.freeBatch(next)
		next = b
	}
	next.from = j.off
	j.queue = append(j.lists[0][:0], next)
	j.pending = 0
	return list
}

// finish ends the filling batch at j.off, with zeros up to the end of its last page: only whole
// pages are written, so that none must be read first. With mu held.
func (j *Journal) finish(b *batch) {
	b.end = j.off
	clear(b.extend(pageUp(j.off)))
}

// seal prepares a sync of everything appended: its last page must not be written again in its only
// copy. Either the page is padded, so that what follows begins on a new one, or a copy of it goes
// into tail, which then is true. With mu held.
func (j *Journal) seal(page []byte) (tail bool) {
	to := pageUp(j.off)
	if j.seg == nil || to == j.off {
		return false
	}
	b := j.queue[len(j.queue)-1]
	if n := j.off - (to - pageSize); j.unsynced+int64(j.pending) < padFrom && n <= tailMost {
		putTail(page, j.seg.nonce, at(j.seg.seq, j.off), 0, b.buf[to-pageSize-b.at:])
		return true
	}
	start := j.off
	buf := b.extend(to)
	clear(buf)
	if to-start >= recordHeader {
		j.bind.putHeader(buf, kindPad, int(to-start-recordHeader), 0, start)
	}
	j.pending += int(to - start)
	j.off = to
	return false
}

// writePending hands everything appended so far to the kernel. It is called with mu held and nobody
// writing, and lets mu go meanwhile.
func (j *Journal) writePending() error {
	list := j.take()
	if len(list) == 0 {
		return nil
	}
	j.writing = true
	j.mu.Unlock()
	var err error
	n := 0
	for ; n < len(list) && err == nil; n++ {
		if err = j.writeBatch(list[n]); err != nil {
			break
		}
	}
	j.mu.Lock()
	j.writing = false
	for _, b := range list[:n] {
		s := b.seg
		j.unsynced += b.end - b.from
		j.count.written += uint64(b.end - b.from)
		j.count.batches++
		s.wrote = b.end
		j.written = at(s.seq, b.end)
		j.soil(s)
		j.freeBatch(b)
	}
	if err != nil {
		// What could not be written stays first in the queue, for the attempt to go on.
		for _, b := range list[n:] {
			j.pending += int(b.end - b.from)
		}
		j.queue = append(append([]*batch(nil), list[n:]...), j.queue...)
		j.fail(fmt.Errorf("journal: write: %w", err))
	} else if j.unsynced >= maxUnsynced {
		j.syncBy(0)
	}
	clear(list)
	j.broadcast()
	return err
}

// soil notes that s needs a Datasync. With mu held.
func (j *Journal) soil(s *segment) {
	if !s.dirty {
		s.dirty = true
		j.dirty = append(j.dirty, s)
	}
}

const (
	smallBatch = 64 << 10
	fillAhead  = 256 << 10
)

var zeros [fillAhead]byte

// writeBatch is the only place that writes records.
func (j *Journal) writeBatch(b *batch) error {
	s, end := b.seg, b.at+int64(len(b.buf))
	if end > s.filled {
		if len(b.buf) < smallBatch {
			// Small batches are synced one by one. The first write into reserved blocks costs the
			// file system a commit of its own at each sync, so it is done ahead for many of them;
			// what follows only overwrites.
			ahead := min(s.size-end, fillAhead)
			if ahead > 0 {
				if _, err := s.file.WriteAt(zeros[:ahead], end); err != nil {
					return err
				}
			}
			end += ahead
		}
		s.filled = end
	}
	_, err := s.file.WriteAt(b.buf, b.at)
	return err
}

// Flush returns when everything up to p was handed to the kernel: it outlives the process, but not
// the machine's power. One caller writes for all that wait. It returns when ctx ends; a caller that
// is writing itself returns when the kernel lets it go.
func (j *Journal) Flush(ctx context.Context, p Position) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.written < p {
		if err := j.usable(); err != nil {
			return err
		}
		if p > j.end() {
			return fmt.Errorf("journal: flush: position %v was not appended", p)
		}
		if !j.writing && !j.claimed {
			_ = j.writePending() // the error is sticky
			continue
		}
		c := j.waitChange()
		j.mu.Unlock()
		select {
		case <-c:
			j.mu.Lock()
		case <-ctx.Done():
			j.mu.Lock()
			return context.Cause(ctx)
		}
	}
	return nil
}
