// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"sync"
)

// maxTold is how much a notifier keeps for a listener that does not keep up.
const maxTold = 64

// A notifier calls functions one at a time, in order, on a goroutine that lives while there is
// something to tell. Its callers do not wait.
type notifier struct {
	mu    sync.Mutex
	queue []func()
	ended chan struct{} // closed when the goroutine has ended; nil: there is none
}

var errListener = errors.New(
	"output: a function that is told of failures or of the breaker has not returned, and is left behind")

// tell has f called; when a listener hangs, what comes later is forgotten.
func (t *notifier) tell(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) < maxTold {
		t.addLocked(f)
	}
}

// must has f called in any case. Its caller sees to it that these are few.
func (t *notifier) must(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(f)
}

func (t *notifier) addLocked(f func()) {
	t.queue = append(t.queue, f)
	if t.ended == nil {
		t.ended = make(chan struct{})
		go t.run()
	}
}

func (t *notifier) run() {
	for {
		t.mu.Lock()
		if len(t.queue) == 0 {
			close(t.ended)
			t.ended, t.queue = nil, nil
			t.mu.Unlock()
			return
		}
		f := t.queue[0]
		t.queue = t.queue[1:]
		t.mu.Unlock()
		call(f)
	}
}

// call calls a listener, whose panic is its own.
func call(f func()) {
	defer func() { _ = recover() }()
	f()
}

// wait waits until everything is told.
func (t *notifier) wait(ctx context.Context) error {
	for {
		t.mu.Lock()
		ended := t.ended
		t.mu.Unlock()
		if ended == nil {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return errListener
		}
	}
}
