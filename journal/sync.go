// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// group is those who wait for the same sync.
type group struct {
	waiters int
	done    chan struct{}
	err     error // set before done is closed
}

func newGroup() *group { return &group{done: make(chan struct{})} }

func (g *group) finish(err error) {
	g.err = err
	close(g.done)
}

// Sync returns when everything up to p is durable. Many that wait are served by one Datasync.
// Writing and syncing is done by a goroutine of the journal, so Sync returns when ctx ends whatever
// the disk does.
func (j *Journal) Sync(ctx context.Context, p Position) error {
	if j.Synced() >= p {
		return nil
	}
	j.mu.Lock()
	g, err := j.join(p)
	j.mu.Unlock()
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

// join returns the group whose sync covers p, or nil and the answer. With mu held.
func (j *Journal) join(p Position) (*group, error) {
	if j.Synced() >= p {
		return nil, nil
	}
	if err := j.usable(); err != nil {
		return nil, err
	}
	if p > j.end() {
		return nil, fmt.Errorf("journal: sync: position %v was not appended", p)
	}
	if j.flying != nil && p <= j.flyingTo {
		return j.flying, nil
	}
	j.next.waiters++
	if j.next.waiters == 1 {
		wake(j.kick)
	}
	return j.next, nil
}

// syncSometime makes sure that what is appended now gets synced though nobody may ask for it. With
// mu held.
func (j *Journal) syncSometime() {
	switch {
	case !j.lazyAt.IsZero():
	case j.waiting > 0:
		j.syncBy(lazySync)
	default:
		j.syncBy(idleSync)
	}
}

// syncBy has everything appended so far synced in at most d. With mu held.
func (j *Journal) syncBy(d time.Duration) {
	t := time.Now().Add(d)
	if j.lazyAt.IsZero() || t.Before(j.lazyAt) {
		j.lazyAt = t
		wake(j.kick)
	}
}

// runSyncer is the journal's goroutine that syncs, reports, and goes on after errors.
func (j *Journal) runSyncer() {
	defer j.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		j.report()
		now := time.Now()
		var wait time.Duration
		switch {
		case j.closed:
			j.closing()
			return
		case j.err != nil && now.Before(j.retryAt):
			wait = j.retryAt.Sub(now)
		case j.err != nil:
			j.goOn()
			continue
		case j.lazyAt.IsZero() && j.next.waiters == 0 && len(j.batches) > fewBatches:
			clear(j.batches[fewBatches:])
			j.batches = j.batches[:fewBatches]
			continue
		case j.next.waiters > 0 || !j.lazyAt.IsZero() && !now.Before(j.lazyAt):
			j.syncOnce()
			continue
		case j.lazyAt.IsZero():
			wait = time.Hour
		default:
			wait = j.lazyAt.Sub(now)
		}
		timer.Reset(wait)
		j.mu.Unlock()
		select {
		case <-j.kick:
		case <-timer.C:
		case <-j.done:
		}
		j.mu.Lock()
	}
}

// closing is the last sync. With mu held.
func (j *Journal) closing() {
	j.awaitWriter()
	if j.err == nil {
		j.syncOnce()
	}
	if j.err == nil && j.seg != nil {
		j.signOff()
	}
	if j.next.waiters > 0 {
		j.next.finish(ErrClosed)
		j.next = newGroup()
	}
	j.report()
}

// signOff notes that everything is durable, so that the next Open need not wonder. With mu held, by
// the syncer.
func (j *Journal) signOff() {
	s, page := j.seg, make([]byte, pageSize)
	putTail(page, s.nonce, j.end(), tailClean, nil)
	j.mu.Unlock()
	_, err := s.file.WriteAt(page, (1+s.slot)*pageSize)
	if err == nil {
		err = s.file.Datasync()
	}
	j.mu.Lock()
	if err != nil {
		j.tell(fmt.Errorf("journal: sign off: %w", err))
	}
}

// report tells what was noted with mu held, without mu.
func (j *Journal) report() {
	for len(j.told) > 0 {
		told := j.told
		j.told = nil
		j.mu.Unlock()
		for _, err := range told {
			j.opt.Report(err)
		}
		j.mu.Lock()
	}
}

// awaitWriter returns when nobody writes. Others who could write wait meanwhile: those who flush
// all the time must not keep those who sync from it. With mu held, which it may let go.
func (j *Journal) awaitWriter() {
	if !j.writing {
		return
	}
	j.claimed = true
	for j.writing {
		j.waitUnlocked()
	}
	j.claimed = false
	j.broadcast()
}

// syncOnce writes and syncs everything appended so far. Only the syncer calls it, with mu held,
// which it lets go meanwhile.
func (j *Journal) syncOnce() {
	j.mu.Unlock()
	runtime.Gosched()
	j.mu.Lock()
	j.awaitWriter()
	if j.err != nil {
		return // the writer failed, and answered all who wait
	}
	j.flying, j.next = j.next, newGroup()
	g := j.flying
	err := j.flush()
	j.flying = nil
	if err != nil {
		g.finish(j.err)
		return
	}
	g.finish(nil)
}

// flush makes everything appended before it durable, on errors too (then err is sticky already).
// With mu held and nobody writing.
func (j *Journal) flush() error {
	tail, s := j.seal(j.tail), j.seg
	j.flyingTo = j.end()
	if err := j.writePending(); err != nil {
		return err
	}
	to := j.flyingTo
	j.lazyAt = time.Time{}
	if j.end() > to {
		j.syncSometime()
	}
	if to == j.Synced() {
		return nil
	}
	unsynced := j.unsynced
	j.syncing = append(j.syncing[:0], j.dirty...)
	j.dirty = j.dirty[:0]
	for _, s := range j.syncing {
		s.dirty, s.flying = false, s.wrote
	}
	j.mu.Unlock()
	err := j.syncFiles(s, tail)
	j.mu.Lock()
	j.count.syncs++
	if err != nil {
		for _, s := range j.syncing {
			j.soil(s)
		}
		j.fail(fmt.Errorf("journal: sync: %w", err))
		j.keep()
		return err
	}
	for _, s := range j.syncing {
		s.clean = s.flying
		if s != j.seg && s.clean >= s.end.Load() && s.file != nil {
			j.filled = append(j.filled, s.file)
			s.file = nil
		}
	}
	if tail {
		s.slot ^= 1
	}
	j.unsynced -= unsynced
	j.synced.Store(uint64(to))
	if j.more != nil {
		close(j.more)
		j.more = nil
	}
	j.broadcast()
	if len(j.filled) > 0 {
		j.mu.Unlock()
		for _, f := range j.filled {
			_ = f.Close() // everything in it is durable
		}
		j.mu.Lock()
		j.filled = j.filled[:0]
	}
	return nil
}

// syncFiles makes what was written to the segments in j.syncing durable, together with a copy of
// the last page of s if it needs one.
func (j *Journal) syncFiles(s *segment, tail bool) error {
	if tail {
		if _, err := s.file.WriteAt(j.tail, (1+s.slot)*pageSize); err != nil {
			return err
		}
	}
	for _, s := range j.syncing {
		if err := s.file.Datasync(); err != nil {
			return err
		}
		if err := linked(s.file, s.path); err != nil {
			return err
		}
	}
	return nil
}

// errRemoved says that what is synced is on no disk that anybody will read.
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

// Check returns an error if the file that is appended to was removed: then what Flush returned nil
// for is on no disk that anybody will read, nor, likely, what Sync returned nil for before. A Sync
// that has something to do checks this by itself. It costs a call of fstat.
func (j *Journal) Check() error {
	j.mu.Lock()
	s := j.seg
	if s == nil && len(j.ready) > 0 {
		s = j.ready[0]
	}
	if s == nil || s.file == nil {
		j.mu.Unlock()
		return nil
	}
	f, path := s.file, s.path
	j.mu.Unlock()
	if err := linked(f, path); errors.Is(err, errRemoved) {
		return fmt.Errorf("journal: %w", err)
	}
	return nil // it may have been closed meanwhile, when another took its place
}

// fail makes err sticky and answers everyone who waits. With mu held.
func (j *Journal) fail(err error) {
	if isNoSpace(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if j.err == nil {
		j.retryIn = minRetry
		j.tell(err)
	} else {
		j.retryIn = min(2*j.retryIn, maxRetry)
	}
	j.err = err
	j.full = true
	j.retryAt = time.Now().Add(j.retryIn)
	if j.next.waiters > 0 {
		j.next.finish(err)
		j.next = newGroup()
	}
	wake(j.kick)
	j.broadcast()
}
