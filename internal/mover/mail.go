// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"sync"
)

// A mailbox is how others have something done by the mover's goroutine, and wake it.
type mailbox struct {
	wakeup chan struct{} // gets a value when there is something to do
	mu     sync.Mutex
	calls  []func()
	closed bool
	read   []func() // being done; the mover's goroutine's
}

// wake wakes the mover's goroutine.
func (b *mailbox) wake() {
	select {
	case b.wakeup <- struct{}{}:
	default:
	}
}

// post has fn called by the mover's goroutine. It returns false when that has ended.
func (b *mailbox) post(fn func()) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.calls = append(b.calls, fn)
	b.mu.Unlock()
	b.wake()
	return true
}

// ask is post that waits until fn has been called, or ctx ends.
func (b *mailbox) ask(ctx context.Context, fn func()) error {
	did := make(chan struct{})
	if !b.post(func() { fn(); close(did) }) {
		return ErrClosed
	}
	select {
	case <-did:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fetch takes out what is there.
func (b *mailbox) fetch() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read, b.calls = b.calls, b.read[:0]
	return b.read
}

// close refuses what comes later: post says so.
func (b *mailbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
}
