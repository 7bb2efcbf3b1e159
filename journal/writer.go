// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"time"
)

const (
	maxBatches = 16 // free ones kept while there is much to do
	fewBatches = 4  // and when there is not
)

// writer is what was appended, on its way into the last segment. All of it is guarded by the lock
// of life.
type writer struct {
	*life
	segs    []*segment // live, oldest first; the last one is seg unless seg is nil
	seg     *segment   // being appended to; nil before the first record after Open
	last    Position   // end of the record appended last; after Open see lastRecord
	off     int64      // end of what was appended to seg
	bind    binder     // of seg
	head    [recordHeader]byte
	queue   []*batch // to be written, in order; the last one is filling
	pending int      // new bytes in queue
	batches []*batch // free
	lists   [2][]*batch
	writing bool     // someone is in pwrite; only they touch segment.filled
	claimed bool     // by the syncer, which writes next
	written Position // end of what was handed to the kernel
	appends uint64   // records
	bytesIn uint64   // written, with headers and padding
	writes  uint64   // of batches
}

// addLocked appends one record of n bytes, whose checksum is crc, where makeRoomLocked found room
// for it. With mu held.
func (w *writer) addLocked(parts [][]byte, n int64, crc uint32) (prev, pos Position) {
	start := place(w.off)
	end := align8(start + recordHeader + n)
	w.putLocked(zeros[:start-w.off])
	w.bind.putHeader(w.head[:], kindRecord, int(n), crc, start)
	w.putLocked(w.head[:])
	for _, p := range parts {
		w.putLocked(p)
	}
	w.putLocked(zeros[:end-start-recordHeader-n])
	w.pending += int(end - w.off)
	w.off, w.seg.last = end, end
	w.appends++
	prev, w.last = w.last, at(w.seg.seq, end)
	return prev, w.last
}

// putLocked adds bytes to the batch that fills, and goes on with another where one is full: a large
// record lies in several, so that large buffers are never needed. With mu held.
func (w *writer) putLocked(p []byte) {
	for len(p) > 0 {
		b := w.queue[len(w.queue)-1]
		if len(b.buf) == maxBatch {
			b.end = b.at + maxBatch
			b = w.newBatchLocked(b.seg, b.end)
			w.queue = append(w.queue, b)
		}
		n := min(len(p), maxBatch-len(b.buf))
		copy(b.extend(b.at+int64(len(b.buf)+n)), p)
		p = p[n:]
	}
}

// beginLocked goes on in a segment that is prepared; synced is what is durable. With mu held.
func (w *writer) beginLocked(s *segment, synced Position) {
	prev, last := w.endLocked(), w.last
	if w.seg != nil {
		w.seg.end.Store(w.off)
		if n := len(w.queue) - 1; w.queue[n].empty() {
			w.freeBatchLocked(w.queue[n])
			w.queue = w.queue[:n]
		} else {
			w.finishLocked(w.queue[n])
		}
	}
	s.nonce, s.modified = newNonce(), time.Time{}
	w.seg, w.off = s, dataStart
	w.bind.seq, w.bind.nonce = s.seq, s.nonce
	w.segs = append(w.segs, s)
	b := w.newBatchLocked(s, 0)
	h := segmentHeader{
		kind: segmentLive, seq: s.seq, nonce: s.nonce, size: s.size, prev: prev,
		pad: padBetween(last, prev), synced: synced,
	}
	page := b.extend(dataStart)
	h.put(page)
	clear(page[pageSize:])
	b.from = 0
	w.queue = append(w.queue, b)
}

// padBetween is what a header says of the padding behind the last record.
func padBetween(last, prev Position) uint32 {
	if last > prev || prev-last >= pageSize || last.seq() != prev.seq() {
		return 0
	}
	return uint32(prev-last) + 1
}

// endLocked is where the next record would begin, at the earliest. With mu held.
func (w *writer) endLocked() Position {
	if w.seg == nil {
		return w.written
	}
	return at(w.seg.seq, w.off)
}

// oldestLocked is before the oldest record. With mu held.
func (w *writer) oldestLocked() Position {
	if len(w.segs) > 0 {
		return at(w.segs[0].seq, dataStart)
	}
	return w.endLocked()
}

// newBatchLocked takes a batch from the pool. With mu held.
func (w *writer) newBatchLocked(s *segment, off int64) *batch {
	var b *batch
	if n := len(w.batches); n > 0 {
		b, w.batches = w.batches[n-1], w.batches[:n-1]
	} else {
		b = &batch{buf: make([]byte, 0, 64<<10)}
	}
	b.seg, b.at, b.from, b.end, b.buf = s, off, off, 0, b.buf[:0]
	return b
}

// freeBatchLocked gives a batch back. With mu held.
func (w *writer) freeBatchLocked(b *batch) {
	b.seg = nil
	if len(w.batches) < maxBatches {
		w.batches = append(w.batches, b)
	}
}

// takeLocked ends the filling batch and returns what is to be written; a new batch fills from there
// on. With mu held.
func (w *writer) takeLocked() []*batch {
	if len(w.queue) == 0 {
		return nil
	}
	b := w.queue[len(w.queue)-1]
	if len(w.queue) == 1 && b.empty() {
		return nil
	}
	list := w.queue
	w.lists[0], w.lists[1] = w.lists[1], list
	next := w.newBatchLocked(b.seg, pageDown(w.off))
	if !b.empty() {
		if carry := w.off - next.at; carry > 0 {
			copy(next.extend(w.off), b.buf[next.at-b.at:])
		}
		w.finishLocked(b)
	} else {
		// Nothing new behind a full one: it stays the filling batch.
		list = list[:len(list)-1]
		w.freeBatchLocked(next)
		next = b
	}
	next.from = w.off
	w.queue = append(w.lists[0][:0], next)
	w.pending = 0
	return list
}

// finishLocked ends the filling batch at w.off, with zeros up to the end of its last page: only
// whole pages are written, so that none must be read first. With mu held.
func (w *writer) finishLocked(b *batch) {
	b.end = w.off
	clear(b.extend(pageUp(w.off)))
}

// protectPageLocked prepares a sync of everything appended: its last page must not be written again
// in its only copy. Either the page is padded, so that what follows begins on a new one, or a copy
// of it goes into page, and tail is true. With mu held.
func (w *writer) protectPageLocked(page []byte, unsynced int64) (tail bool) {
	to := pageUp(w.off)
	if w.seg == nil || to == w.off {
		return false
	}
	b := w.queue[len(w.queue)-1]
	if n := w.off - (to - pageSize); unsynced+int64(w.pending) < padFrom && n <= maxTail {
		putTail(page, w.seg.nonce, at(w.seg.seq, w.off), 0, b.buf[to-pageSize-b.at:])
		return true
	}
	start := w.off
	buf := b.extend(to)
	clear(buf)
	if to-start >= recordHeader {
		w.bind.putHeader(buf, kindPad, int(to-start-recordHeader), 0, start)
	}
	w.pending += int(to - start)
	w.off = to
	return false
}

const (
	smallBatch = 64 << 10
	fillAhead  = 256 << 10
)

var zeros [fillAhead]byte

// writeBatch is the only place that writes records.
func (w *writer) writeBatch(b *batch) error {
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

// takeToWriteLocked gives the caller what is to be written, for write, unless another one writes or
// nothing is to be written: then nil. With mu held.
func (w *writer) takeToWriteLocked() []*batch {
	if w.writing || w.claimed {
		return nil
	}
	batches := w.takeLocked()
	w.writing = len(batches) > 0
	return batches
}

// claim returns when nobody writes, and then nobody else begins to: callers that flush all the time
// must not keep the syncer from it.
func (w *writer) claim() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed = true
	for w.writing {
		changed := w.waitChangeLocked()
		w.mu.Unlock()
		<-changed
		w.mu.Lock()
	}
}

// endClaimLocked lets others write again. With mu held.
func (w *writer) endClaimLocked() {
	w.claimed = false
	w.broadcastLocked()
}
