// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	lazySync      = 20 * time.Millisecond // a waiting reader sees after this what nobody synced
	idleSync      = time.Second           // and without a reader, what nobody synced is synced after this
	syncThreshold = 8 << 20               // or when it is this much
	maxUnsynced   = 32 << 20              // Append waits: a disk slower than the appenders must not be hidden by memory
)

// syncGroup is the callers that wait for the same sync.
type syncGroup struct {
	waiters int
	done    chan struct{}
	err     error // set before done is closed
}

func newSyncGroup() *syncGroup { return &syncGroup{done: make(chan struct{})} }

func (g *syncGroup) finish(err error) {
	g.err = err
	close(g.done)
}

// syncer is what was handed to the kernel, on its way to the disk, and the callers that wait for
// that. All but synced is guarded by the lock of life; what is said to be the syncer's belongs to
// its goroutine.
type syncer struct {
	*folder
	*life
	*writer
	synced   atomic.Uint64 // Position; written by the syncer with mu held
	next     *syncGroup    // gathers callers that wait for a sync that has not begun
	flying   *syncGroup    // wait for the sync that runs
	flyingTo Position
	lazyAt   time.Time // sync then even if nobody waits; zero when everything is synced
	unsynced int64
	dirty    []*segment
	syncing  []*segment // the syncer's, as is tail
	tail     []byte
	filled   []File        // of segments that are full and durable, to be closed
	waiting  int           // readers at the end
	more     chan struct{} // closed when more is durable; nil when no reader waits
	syncs    uint64
	syncTime time.Duration // all of them together
}

// Synced is the end of what is durable.
func (y *syncer) Synced() Position { return Position(y.synced.Load()) }

// Sync returns when everything up to p is durable. Many that wait are served by one Datasync.
// Writing and syncing is done by a goroutine of the journal, so Sync returns when ctx ends whatever
// the disk does.
func (y *syncer) Sync(ctx context.Context, p Position) error {
	if y.Synced() >= p {
		return nil
	}
	y.mu.Lock()
	g, err := y.joinLocked(p)
	y.mu.Unlock()
	if g == nil {
		return err
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// joinLocked returns the group whose sync covers p, or nil and the answer. With mu held.
func (y *syncer) joinLocked(p Position) (*syncGroup, error) {
	if y.Synced() >= p {
		return nil, nil
	}
	if err := y.usableLocked(); err != nil {
		return nil, err
	}
	if p > y.endLocked() {
		return nil, fmt.Errorf("journal: sync: position %v was not appended", p)
	}
	if y.flying != nil && p <= y.flyingTo {
		return y.flying, nil
	}
	y.next.waiters++
	if y.next.waiters == 1 {
		wake(y.syncerWake)
	}
	return y.next, nil
}

// syncSometimeLocked makes sure that what is appended now gets synced though nobody may ask for it.
// With mu held.
func (y *syncer) syncSometimeLocked() {
	switch {
	case !y.lazyAt.IsZero():
	case y.waiting > 0:
		y.syncByLocked(lazySync)
	default:
		y.syncByLocked(idleSync)
	}
}

// syncByLocked has everything appended so far synced in at most d. With mu held.
func (y *syncer) syncByLocked(d time.Duration) {
	t := time.Now().Add(d)
	if y.lazyAt.IsZero() || t.Before(y.lazyAt) {
		y.lazyAt = t
		wake(y.syncerWake)
	}
}

// Flush returns when everything up to p was handed to the kernel: it outlives the process, but not
// the machine's power. One caller writes for all that wait. It returns when ctx ends; a caller that
// is writing itself returns when the kernel lets it go.
func (y *syncer) Flush(ctx context.Context, p Position) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	for y.written < p {
		if err := y.usableLocked(); err != nil {
			return err
		}
		if p > y.endLocked() {
			return fmt.Errorf("journal: flush: position %v was not appended", p)
		}
		if batches := y.takeToWriteLocked(); batches != nil {
			y.mu.Unlock()
			_ = y.write(batches) // the error is sticky
			y.mu.Lock()
			continue
		}
		changed := y.waitChangeLocked()
		y.mu.Unlock()
		select {
		case <-changed:
			y.mu.Lock()
		case <-ctx.Done():
			y.mu.Lock()
			return context.Cause(ctx)
		}
	}
	return nil
}

// write hands batches that takeToWriteLocked gave to the kernel.
func (y *syncer) write(batches []*batch) error {
	n, err := y.writeAll(batches)
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.wroteLocked(batches, n, err)
}

// writeAll writes batches up to the first that fails, and returns how many it wrote. wroteLocked
// follows.
func (y *syncer) writeAll(batches []*batch) (n int, err error) {
	for ; n < len(batches); n++ {
		if err := y.writeBatch(batches[n]); err != nil {
			return n, err
		}
	}
	return n, nil
}

// wroteLocked notes what writeAll has written, and lets others write. With mu held.
func (y *syncer) wroteLocked(batches []*batch, n int, err error) error {
	y.writing = false
	for _, b := range batches[:n] {
		s := b.seg
		y.unsynced += b.end - b.from
		y.bytesIn += uint64(b.end - b.from)
		y.writes++
		s.wrote = b.end
		y.written = at(s.seq, b.end)
		y.markDirtyLocked(s)
		y.freeBatchLocked(b)
	}
	if err != nil {
		// What could not be written stays first in the queue, for the attempt to go on.
		for _, b := range batches[n:] {
			y.pending += int(b.end - b.from)
		}
		y.queue = append(append([]*batch(nil), batches[n:]...), y.queue...)
		y.failLocked(fmt.Errorf("journal: write: %w", err))
	} else if y.unsynced >= syncThreshold {
		y.syncByLocked(0)
	}
	clear(batches)
	y.broadcastLocked()
	return err
}

// markDirtyLocked notes that s needs a Datasync. With mu held.
func (y *syncer) markDirtyLocked(s *segment) {
	if !s.dirty {
		s.dirty = true
		y.dirty = append(y.dirty, s)
	}
}

// flush makes everything appended before it durable; an error is sticky already when it returns.
// The syncer calls it when it has claimed the writer, which it lets go, or while an error is
// sticky.
func (y *syncer) flush() error {
	y.mu.Lock()
	copied, s := y.protectPageLocked(y.tail, y.unsynced), y.seg
	to := y.endLocked()
	y.flyingTo = to
	y.endClaimLocked()
	if batches := y.takeToWriteLocked(); batches != nil {
		y.mu.Unlock()
		n, err := y.writeAll(batches)
		y.mu.Lock()
		if err = y.wroteLocked(batches, n, err); err != nil {
			y.mu.Unlock()
			return err
		}
	}
	// Under the same hold: a write between would have the next sync find nothing to do, and what
	// that copies of the last page would not be synced.
	unsynced, some := y.beginSyncLocked(to)
	y.mu.Unlock()
	if !some {
		return nil
	}
	began := time.Now()
	err := y.syncFiles(s, copied)
	took := time.Since(began)
	if err == nil {
		y.opt.Synced(took)
		if copied {
			s.slot ^= 1
		}
	}
	y.endSync(to, unsynced, took, err)
	if err != nil {
		y.keep()
	}
	return err
}

// beginSyncLocked notes which segments a sync up to a position covers, and how many bytes. some is
// false when everything up to there is durable already. With mu held.
func (y *syncer) beginSyncLocked(to Position) (unsynced int64, some bool) {
	y.lazyAt = time.Time{}
	if y.endLocked() > to {
		y.syncSometimeLocked()
	}
	if to == y.Synced() {
		return 0, false
	}
	y.syncing = append(y.syncing[:0], y.dirty...)
	y.dirty = y.dirty[:0]
	for _, s := range y.syncing {
		s.dirty, s.flying = false, s.wrote
	}
	return y.unsynced, true
}

// endSync notes what beginSyncLocked said as durable, and closes what is full; or, with an error,
// that it is not.
func (y *syncer) endSync(to Position, unsynced int64, took time.Duration, err error) {
	y.mu.Lock()
	y.syncs++
	y.syncTime += took
	if err != nil {
		for _, s := range y.syncing {
			y.markDirtyLocked(s)
		}
		y.failLocked(fmt.Errorf("journal: sync: %w", err))
		y.mu.Unlock()
		return
	}
	for _, s := range y.syncing {
		s.clean = s.flying
		if s != y.seg && s.clean >= s.end.Load() && s.file != nil {
			y.filled = append(y.filled, s.file)
			s.file = nil
		}
	}
	y.unsynced -= unsynced
	y.synced.Store(uint64(to))
	if y.more != nil {
		close(y.more)
		y.more = nil
	}
	y.broadcastLocked()
	y.mu.Unlock()
	for _, f := range y.filled {
		_ = f.Close() // everything in it is durable
	}
	y.filled = y.filled[:0]
}

// syncFiles makes what was written to the segments in y.syncing durable, together with a copy of
// the last page of s if it needs one.
func (y *syncer) syncFiles(s *segment, tail bool) error {
	if tail {
		if _, err := s.file.WriteAt(y.tail, (1+s.slot)*pageSize); err != nil {
			return err
		}
	}
	for _, s := range y.syncing {
		if err := s.file.Datasync(); err != nil {
			return err
		}
		if err := linked(s.file, s.path); err != nil {
			return err
		}
	}
	return nil
}

// errRemoved says that what is synced is on no disk that will be read.
var errRemoved = errors.New("it was removed while the journal writes to it; nothing more is stored until the next start")

// linked returns an error if a file that is written to has no name any more.
func linked(file File, path string) error {
	f, ok := file.(interface{ Linked() (bool, error) })
	if !ok {
		return nil
	}
	switch is, err := f.Linked(); {
	case err != nil:
		return err
	case !is:
		return fmt.Errorf("%s: %w", path, errRemoved)
	}
	return nil
}

// failLocked makes err sticky and returns it to every waiting caller. With mu held.
func (y *syncer) failLocked(err error) {
	if isNoSpace(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if y.err == nil {
		y.retryIn = minRetry
		y.tellLocked(err)
	} else {
		y.retryIn = min(2*y.retryIn, maxRetry)
	}
	y.err = err
	y.full = true
	y.retryAt = time.Now().Add(y.retryIn)
	if y.next.waiters > 0 {
		y.next.finish(err)
		y.next = newSyncGroup()
	}
	wake(y.syncerWake)
	y.broadcastLocked()
}

const keepTries = 20

// keep reads what was written since the last good sync into memory, as soon as a sync failed: the
// kernel may take these pages for clean and drop them. The syncer calls it after failLocked, so
// that nothing more is written.
func (y *syncer) keep() {
	for _, s := range y.unwritten() {
		from, to := pageDown(s.clean), pageUp(s.wrote)
		b := make([]byte, to-from)
		// What an earlier failure kept is more reliable than what can be read now, but for its last
		// page: that may have more in it since.
		n := copy(b, s.kept[:max(0, len(s.kept)-pageSize)])
		_, err := s.file.ReadAt(b[n:], from+int64(n))
		// What fails to sync may fail to read for a moment, too.
		for tries := 1; err != nil && tries < keepTries; tries++ {
			_, err = s.file.ReadAt(b[n:], from+int64(n))
		}
		if err == nil {
			s.kept = b
		}
	}
}

// unwritten waits for the present writer, and returns the segments that have more than what is
// durable. While an error is sticky nothing is added to that.
func (y *syncer) unwritten() (list []*segment) {
	y.claim()
	y.mu.Lock()
	defer y.mu.Unlock()
	y.endClaimLocked()
	for _, s := range y.segs {
		if s.wrote > s.clean {
			list = append(list, s)
		}
	}
	return list
}
