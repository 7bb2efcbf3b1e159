// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"sync"
	"time"
)

const (
	minRetry = 100 * time.Millisecond // after a failed write or sync, the first attempt to go on
	maxRetry = time.Second
)

// life is what is wrong with the journal, what waits for a change, and the lock of it all.
type life struct {
	mu            sync.Mutex
	closed        bool
	closeErr      error
	done          chan struct{} // closed by Close
	syncerWake    chan struct{} // wakes the syncer
	allocatorWake chan struct{} // wakes the allocator
	err           error         // sticky, of a write or sync; nil when all is well
	retryAt       time.Time     // when the syncer tries to go on
	retryIn       time.Duration // backoff
	told          []error       // to be reported by the syncer
	changed       chan struct{} // closed when anything changed that someone waits for; nil when nobody does
	full          bool          // an Append was answered ErrFull, and space will be closed when that may have changed
	space         chan struct{}
}

func (l *life) begin() {
	l.done, l.syncerWake, l.allocatorWake = make(chan struct{}), make(chan struct{}, 1), make(chan struct{}, 1)
	l.retryIn = minRetry
}

// broadcastLocked wakes everyone in wait. With mu held.
func (l *life) broadcastLocked() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// waitChangeLocked returns the channel that the next broadcast closes. With mu held.
func (l *life) waitChangeLocked() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// usableLocked says why nothing can be appended or written now. With mu held.
func (l *life) usableLocked() error {
	if l.closed {
		return ErrClosed
	}
	return l.err
}

// over says that Close was called.
func (l *life) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// tellLocked has the syncer report err. With mu held.
func (l *life) tellLocked(err error) {
	if len(l.told) < 64 {
		l.told = append(l.told, err)
	}
	wake(l.syncerWake)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Space returns a channel that is closed when an Append that was refused may succeed: segments were
// freed, a full disk has room again, or the journal went on after an error. It is closed already
// when no Append was refused since.
func (l *life) Space() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.full || l.closed {
		c := make(chan struct{})
		close(c)
		return c
	}
	if l.space == nil {
		l.space = make(chan struct{})
	}
	return l.space
}

// openSpaceLocked wakes appenders that wait for room. With mu held.
func (l *life) openSpaceLocked() {
	l.full = false
	if l.space != nil {
		close(l.space)
		l.space = nil
	}
}
