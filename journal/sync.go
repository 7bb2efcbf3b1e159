// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"runtime"
	"time"
)

// runSyncer is the journal's goroutine that syncs, reports, and goes on after errors.
func (y *syncer) runSyncer() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		y.report()
		y.mu.Lock()
		ends := y.closed
		step, wait := y.nextStepLocked()
		y.mu.Unlock()
		switch {
		case ends:
			y.finish()
			return
		case step != nil:
			step(y)
			continue
		}
		timer.Reset(wait)
		select {
		case <-y.syncerWake:
		case <-timer.C:
		case <-y.done:
		}
	}
}

// nextStepLocked is what the syncer is to do next, or for how long there is nothing. With mu held.
func (y *syncer) nextStepLocked() (step func(*syncer), wait time.Duration) {
	now := time.Now()
	switch {
	case y.err != nil && now.Before(y.retryAt):
		return nil, y.retryAt.Sub(now)
	case y.err != nil:
		return (*syncer).retryAfterError, 0
	case y.next.waiters > 0 || !y.lazyAt.IsZero() && !now.Before(y.lazyAt):
		return (*syncer).syncOnce, 0
	case !y.lazyAt.IsZero():
		return nil, y.lazyAt.Sub(now)
	}
	if len(y.batches) > fewBatches {
		clear(y.batches[fewBatches:])
		y.batches = y.batches[:fewBatches]
	}
	return nil, time.Hour
}

// syncOnce writes and syncs everything appended so far.
func (y *syncer) syncOnce() {
	runtime.Gosched()
	y.claim()
	y.mu.Lock()
	if y.err != nil { // the writer failed, and answered all that wait
		y.endClaimLocked()
		y.mu.Unlock()
		return
	}
	g := y.next
	y.flying, y.next = g, newSyncGroup()
	y.mu.Unlock()
	err := y.flush()
	y.mu.Lock()
	y.flying = nil
	if err != nil {
		err = y.err
	}
	y.mu.Unlock()
	g.finish(err)
}

// finish is the last sync.
func (y *syncer) finish() {
	y.syncOnce()
	y.writeCleanTail()
	y.mu.Lock()
	if y.next.waiters > 0 {
		y.next.finish(ErrClosed)
		y.next = newSyncGroup()
	}
	y.mu.Unlock()
	y.report()
}

// writeCleanTail notes that everything is durable, if it is, so that the next Open has nothing to
// find out.
func (y *syncer) writeCleanTail() {
	y.mu.Lock()
	s, page := y.seg, make([]byte, pageSize)
	if y.err != nil || s == nil {
		y.mu.Unlock()
		return
	}
	putTail(page, s.nonce, y.endLocked(), tailClean, nil)
	y.mu.Unlock()
	_, err := s.file.WriteAt(page, (1+s.slot)*pageSize)
	if err == nil {
		err = s.file.Datasync()
	}
	if err != nil {
		y.mu.Lock()
		y.tellLocked(fmt.Errorf("journal: sign off: %w", err))
		y.mu.Unlock()
	}
}

// report tells what was noted with mu held.
func (y *syncer) report() {
	for {
		y.mu.Lock()
		told := y.told
		y.told = nil
		y.mu.Unlock()
		if len(told) == 0 {
			return
		}
		for _, err := range told {
			y.opt.Report(err)
		}
	}
}
