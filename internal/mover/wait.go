// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A waiter is an Append that returns when its event is delivered.
type waiter struct {
	key   uint64
	ch    chan error  // of one element
	timer *time.Timer // stopped while the waiter is in the pool
}

// waiters are those for records of one ring.
type waiters struct {
	doneTo  atomic.Uint64 // every record with this key or a lower one is done; written by the mover's goroutine
	waiting atomic.Int32  // len(all)
	mu      sync.Mutex
	all     []*waiter
	dead    bool // there are no answers any more
}

var usedWaiters = sync.Pool{New: func() any {
	w := &waiter{ch: make(chan error, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}}

// await returns when the record is done, when ctx ends, or after wait. It calls wake if it is
// the only one that waits.
func (l *waiters) await(ctx context.Context, wait time.Duration, key uint64, wake func()) error {
	if l.doneTo.Load() >= key {
		return nil
	}
	w := usedWaiters.Get().(*waiter)
	w.key = key
	l.mu.Lock()
	switch {
	case l.doneTo.Load() >= key:
		l.mu.Unlock()
		usedWaiters.Put(w)
		return nil
	case l.dead:
		l.mu.Unlock()
		usedWaiters.Put(w)
		return ErrUndelivered
	}
	l.all = append(l.all, w)
	first := l.waiting.Add(1) == 1
	l.mu.Unlock()
	if first {
		wake()
	}
	w.timer.Reset(wait)
	defer func() {
		w.timer.Stop()
		usedWaiters.Put(w)
	}()
	var late error
	select {
	case err := <-w.ch:
		return err
	case <-ctx.Done():
		late = fmt.Errorf("%w: %w", ErrTimeout, ctx.Err())
	case <-w.timer.C:
		late = ErrTimeout
	}
	l.mu.Lock()
	if i := slices.Index(l.all, w); i >= 0 {
		l.all = slices.Delete(l.all, i, i+1)
		l.waiting.Add(-1)
		l.mu.Unlock()
		return late
	}
	l.mu.Unlock()
	return <-w.ch // it was answered just now
}

// answerTo tells the waiters for keys in from..to.
func (l *waiters) answerTo(from, to uint64, err error) {
	if l.waiting.Load() == 0 {
		return
	}
	l.mu.Lock()
	kept := l.all[:0]
	for _, w := range l.all {
		if w.key < from || w.key > to {
			kept = append(kept, w)
			continue
		}
		w.ch <- err
	}
	clear(l.all[len(kept):])
	l.all = kept
	l.waiting.Store(int32(len(kept)))
	l.mu.Unlock()
}

// failWaiters answers all that wait now, and all that come later.
func (l *waiters) failWaiters() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.answerTo(0, l.doneTo.Load(), nil)
	l.answerTo(0, 1<<64-1, ErrUndelivered)
}
