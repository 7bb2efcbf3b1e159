// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"slices"
	"sync"
	"sync/atomic"
)

// budget is the memory that all connections together may hold in buffers.
//
// A connection asks before it takes. When there is none left it waits in line: first those that are in the middle of a message, then
// those that would begin one. What is half read can always be finished, so nothing waits for ever: the first in line may overdraw, alone,
// and as much as its message takes, until it has handed on what it holds. The server cuts connections that hold memory others wait for
// and do not go on (slow.go).
//
// Lock order: budget.mu is taken last, and never held while anything else is waited for.
type budget struct {
	limit   int64
	used    atomic.Int64 // by whoever takes and releases
	waiting atomic.Int32 // holders in line; written with mu held

	mu     sync.Mutex
	middle []*holder // in line, in the middle of a message
	fresh  []*holder // in line, holding nothing
	over   *holder   // who overdraws
}

// holder is one connection's part of the budget. Its fields are the connection's own, except while it waits.
type holder struct {
	held  atomic.Int64 // written by the connection and by who grants, read by the watch
	over  bool         // may overdraw; true only for budget.over
	want  int64        // while waiting
	grant chan struct{}
}

// try takes n bytes if there are as many and nobody is in line for them.
func (b *budget) try(h *holder, n int64) bool {
	if h.over {
		b.used.Add(n)
		h.held.Add(n)
		return true
	}
	return b.waiting.Load() == 0 && b.take(h, n)
}

func (b *budget) take(h *holder, n int64) bool {
	for {
		used := b.used.Load()
		if used+n > b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			h.held.Add(n)
			return true
		}
	}
}

// acquire takes n bytes, and waits for them; false: stop was closed. begin is called once, if it has to wait.
func (b *budget) acquire(h *holder, n int64, stop <-chan struct{}, begin func()) bool {
	if b.try(h, n) {
		return true
	}
	grant := make(chan struct{})
	b.mu.Lock()
	h.want, h.grant = n, grant
	if h.held.Load() > 0 {
		b.middle = append(b.middle, h)
	} else {
		b.fresh = append(b.fresh, h)
	}
	b.waiting.Add(1)
	b.dispatch()
	b.mu.Unlock()
	begin()
	select {
	case <-grant:
		return true
	case <-stop:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.grant == nil { // granted meanwhile: whoever gives up releases all that it holds
		return false
	}
	h.grant = nil
	is := func(w *holder) bool { return w == h }
	b.middle = slices.DeleteFunc(b.middle, is)
	b.fresh = slices.DeleteFunc(b.fresh, is)
	b.waiting.Add(-1)
	b.dispatch()
	return false
}

// dispatch grants what it can. With mu held.
func (b *budget) dispatch() {
	for {
		line := &b.middle
		if len(*line) == 0 {
			line = &b.fresh
		}
		if len(*line) == 0 {
			return
		}
		h := (*line)[0]
		switch {
		case b.take(h, h.want):
		case b.over == nil:
			b.over, h.over = h, true
			b.used.Add(h.want)
			h.held.Add(h.want)
		default:
			return
		}
		*line = slices.Delete(*line, 0, 1)
		b.waiting.Add(-1)
		close(h.grant)
		h.grant = nil
	}
}

// release gives n bytes back.
func (b *budget) release(h *holder, n int64) {
	if n == 0 {
		return
	}
	h.held.Add(-n)
	b.used.Add(-n)
	if b.waiting.Load() > 0 {
		b.mu.Lock()
		b.dispatch()
		b.mu.Unlock()
	}
}

// settle ends an overdraft, when its holder has handed on what it held. What it still holds then is little, see conn.settle.
func (b *budget) settle(h *holder) {
	if !h.over {
		return
	}
	b.mu.Lock()
	h.over, b.over = false, nil
	b.dispatch()
	b.mu.Unlock()
}

// pressed tells whether anybody waits.
func (b *budget) pressed() bool { return b.waiting.Load() > 0 }
