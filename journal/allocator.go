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
	maxSpare      = 16          // up to so many at once are likely needed again at the next burst
	trimSpare     = time.Second // and go one at a time
	retrySpace    = time.Second // how often a full or failing disk is tried again
)

var errLimit = errors.New("byte limit is met")

// allocator decides what becomes of segments: which are prepared, freed, used again or given back,
// within the limit and what the disk has. Guarded by the lock of life.
type allocator struct {
	*spares
	syncer  *syncer
	cursors *cursors
	blocked error // why it cannot prepare one, nil while it may
	blockAt int64 // the size it could not
}

// noRoomLocked says why no segment of size bytes is coming, or nil when one may be: then the caller
// waits. With mu held.
func (a *allocator) noRoomLocked(size int64) error {
	size = max(size, a.opt.SegmentBytes)
	if a.blocked != nil && size >= a.blockAt {
		a.full = true
		a.releaseLocked()
		wake(a.allocatorWake)
		switch {
		case a.blocked == nil:
		case errors.Is(a.blocked, errLimit) || isNoSpace(a.blocked):
			return fmt.Errorf("%w: %w", ErrFull, a.blocked)
		default:
			return fmt.Errorf("journal: prepare segment: %w", a.blocked)
		}
	}
	a.blocked = nil
	a.want = max(a.want, size)
	a.releaseLocked()
	wake(a.allocatorWake)
	return nil
}

// runAllocator is the journal's goroutine that prepares segments before they are needed, so that
// neither creating files nor a full disk is ever met while writing, and recycles those that all
// cursors have passed.
func (a *allocator) runAllocator() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	said, failed := "", false
	for !a.closed {
		var next *job
		if !failed { // what failed is not tried again at once
			next = a.jobLocked()
		}
		if next == nil {
			failed = false
			wait := time.Hour
			if a.blocked != nil && !errors.Is(a.blocked, errLimit) || a.reserve.short {
				wait = retrySpace
			} else if len(a.free) > keepSpare {
				wait = trimSpare
			}
			timer.Reset(wait)
			a.mu.Unlock()
			select {
			case <-a.allocatorWake:
			case <-timer.C:
				a.mu.Lock()
				a.blocked, a.reserve.scarce = nil, nil // try again
				a.trim = len(a.free) > keepSpare && a.droppableLocked() >= 0
				a.mu.Unlock()
			case <-a.done:
			}
			a.mu.Lock()
			continue
		}
		a.mu.Unlock()
		err := next.work()
		a.mu.Lock()
		if err = next.settle(err); err != nil {
			failed = true
			a.blockLocked(err)
			if said != err.Error() { // once, not at every try
				said = err.Error()
				a.tellLocked(fmt.Errorf("journal: prepare segment: %w", err))
			}
		} else if !a.reserve.short { // else it is the same full disk
			said = ""
		}
		a.broadcastLocked()
	}
	for len(a.aside) > 0 {
		last := a.putAsideLocked()
		a.mu.Unlock()
		err := last.work()
		a.mu.Lock()
		if err = last.settle(err); err != nil {
			a.closeErr = err
		}
	}
}

// blockLocked notes that nothing can be prepared, and why. With mu held.
func (a *allocator) blockLocked(err error) {
	a.blocked = err
	a.blockAt = max(a.want, a.opt.SegmentBytes)
	a.want = 0
}

// jobLocked returns what the allocator is to do next, or nil. It notes when there is something to
// do but no room. With mu held.
func (a *allocator) jobLocked() *job {
	if a.want > 0 && len(a.ready) > 0 && a.ready[0].size >= a.want {
		a.want = 0
	}
	size := a.opt.SegmentBytes
	switch {
	case a.reserve.short && a.reserve.scarce == nil:
		return a.fillReserveLocked()
	case a.reserve.emptied > 0 && a.blocked == nil:
		return a.reserve.vouchEmptiedLocked()
	case len(a.aside) > 0:
		return a.putAsideLocked()
	case a.reserve.short && a.reserve.emptied == 0 && a.droppableLocked() >= 0:
		a.reserve.scarce = nil
		return a.dropLocked()
	case a.reserve.short && a.reserve.emptied == 0 && a.shrinkableLocked() >= 0:
		return a.shrinkLocked()
	case a.blocked != nil:
		return nil
	case len(a.ready) > 1 && a.want > size && a.roomLocked(a.want) < 0:
		// A large record needs the room of all that is only prepared.
		n := len(a.ready) - 1
		a.free = append(a.free, a.ready[:n]...)
		a.ready = append(a.ready[:0], a.ready[n])
		return a.dropLocked()
	case a.droppableLocked() >= 0 && (a.trim || len(a.free) > maxSpare || a.want > size && a.roomLocked(a.want) < 0):
		return a.dropLocked()
	case len(a.ready) > 0 && a.want > a.ready[0].size:
		if a.reserve.short {
			a.refuseLocked()
			return nil
		}
		if a.bytes+a.want-a.ready[0].size > a.opt.MaxBytes {
			a.blockLocked(errLimit)
			a.broadcastLocked()
			return nil
		}
		return a.growLocked(a.want)
	case len(a.ready) >= aheadSegments:
		return nil
	case a.recyclableLocked() >= 0:
		return a.recycleLocked()
	case len(a.ready) > 0:
		// One is enough until the next is freed. A reader that keeps up frees one for each that is
		// filled, and writing into it again costs a fiftieth of writing new blocks through new
		// pages.
		return nil
	case a.bytes+max(size, a.want) <= a.opt.MaxBytes:
		if a.reserve.short {
			a.refuseLocked()
			return nil
		}
		return a.createLocked(max(size, a.want))
	default:
		a.blockLocked(errLimit)
		a.broadcastLocked()
	}
	return nil
}

// fillReserveLocked makes the reserve whole, or as large as the disk lets it be. With mu held.
func (a *allocator) fillReserveLocked() *job {
	passed := a.reserve.emptied
	if len(a.segs) == 0 {
		passed = max(passed, a.written)
	}
	return a.reserve.fillLocked(passed)
}

// refuseLocked notes that the disk has no room beside the reserve. With mu held.
func (a *allocator) refuseLocked() {
	a.blockLocked(fmt.Errorf("what cursors need comes first: %w", a.reserve.scarce))
	a.broadcastLocked()
}

// releaseLocked frees the segments that all cursors have passed, but for the last one: while that
// is there, a cursor that stands where no segment is has lost something. Where its room is needed,
// the reserve notes that it was passed. With mu held.
func (a *allocator) releaseLocked() {
	if len(a.cursors.named) == 0 {
		return
	}
	low := a.cursors.lowestLocked()
	wanted := max(a.want, a.refusedLocked()) > 0
	if wanted && a.seg != nil && low >= at(a.seg.seq, a.seg.last) && a.syncer.Synced() == a.endLocked() && !a.writing {
		// A record waits that may need the room of the segment in use too, and nothing in that is
		// needed any more: then it is at its end.
		a.seg.end.Store(a.off)
		a.seg = nil
		for _, b := range a.queue {
			a.freeBatchLocked(b)
		}
		a.queue = a.queue[:0]
	}
	n := 0
	for ; n < len(a.segs); n++ {
		s := a.segs[n]
		if s == a.seg || s.last > dataStart && low < at(s.seq, s.last) || n == len(a.segs)-1 && !wanted {
			break
		}
		if s.bad {
			a.aside = append(a.aside, s)
		} else {
			a.free = append(a.free, s)
		}
	}
	if n > 0 {
		if n == len(a.segs) && a.opt.Reserve > 0 {
			a.reserve.emptied = max(a.reserve.emptied, a.written)
		}
		a.segs = append(a.segs[:0], a.segs[n:]...)
		a.blocked = nil
		wake(a.allocatorWake)
		if a.full && a.err == nil {
			a.openSpaceLocked()
		}
	}
}

// refusedLocked is the size of the segment for which an Append was answered ErrFull last, or 0.
// With mu held.
func (a *allocator) refusedLocked() int64 {
	if a.full && a.blocked != nil {
		return a.blockAt
	}
	return 0
}
