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
	y.mu.Lock()
	defer y.mu.Unlock()
	for {
		y.reportLocked()
		now := time.Now()
		var wait time.Duration
		switch {
		case y.closed:
			y.closingLocked()
			return
		case y.err != nil && now.Before(y.retryAt):
			wait = y.retryAt.Sub(now)
		case y.err != nil:
			y.retryAfterErrorLocked()
			continue
		case y.lazyAt.IsZero() && y.next.waiters == 0 && len(y.batches) > fewBatches:
			clear(y.batches[fewBatches:])
			y.batches = y.batches[:fewBatches]
			continue
		case y.next.waiters > 0 || !y.lazyAt.IsZero() && !now.Before(y.lazyAt):
			y.syncOnceLocked()
			continue
		case y.lazyAt.IsZero():
			wait = time.Hour
		default:
			wait = y.lazyAt.Sub(now)
		}
		timer.Reset(wait)
		y.mu.Unlock()
		select {
		case <-y.syncerWake:
		case <-timer.C:
		case <-y.done:
		}
		y.mu.Lock()
	}
}

// syncOnceLocked writes and syncs everything appended so far. Only the syncer calls it, with mu
// held, which it lets go meanwhile.
func (y *syncer) syncOnceLocked() {
	y.mu.Unlock()
	runtime.Gosched()
	y.mu.Lock()
	y.awaitWriterLocked()
	if y.err != nil {
		return // the writer failed, and answered all that wait
	}
	y.flying, y.next = y.next, newSyncGroup()
	g := y.flying
	err := y.flushLocked()
	y.flying = nil
	if err != nil {
		g.finish(y.err)
		return
	}
	g.finish(nil)
}

// closingLocked is the last sync. With mu held.
func (y *syncer) closingLocked() {
	y.awaitWriterLocked()
	if y.err == nil {
		y.syncOnceLocked()
	}
	if y.err == nil && y.seg != nil {
		y.writeCleanTailLocked()
	}
	if y.next.waiters > 0 {
		y.next.finish(ErrClosed)
		y.next = newSyncGroup()
	}
	y.reportLocked()
}

// writeCleanTailLocked notes that everything is durable, so that the next Open need not wonder.
// With mu held, by the syncer.
func (y *syncer) writeCleanTailLocked() {
	s, page := y.seg, make([]byte, pageSize)
	putTail(page, s.nonce, y.endLocked(), tailClean, nil)
	y.mu.Unlock()
	_, err := s.file.WriteAt(page, (1+s.slot)*pageSize)
	if err == nil {
		err = s.file.Datasync()
	}
	y.mu.Lock()
	if err != nil {
		y.tellLocked(fmt.Errorf("journal: sign off: %w", err))
	}
}

// reportLocked tells what was noted with mu held, without mu.
func (y *syncer) reportLocked() {
	for len(y.told) > 0 {
		told := y.told
		y.told = nil
		y.mu.Unlock()
		for _, err := range told {
			y.opt.Report(err)
		}
		y.mu.Lock()
	}
}
