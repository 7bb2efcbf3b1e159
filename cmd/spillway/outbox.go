// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// An outbox writes messages from a goroutine of its own: a terminal that is stopped, or a reader of
// standard error that hangs, must not hold up a collector. What does not fit is left out and
// counted.
type outbox struct {
	w      io.Writer
	screen *terminal // that shows a live line; nil: none does
	tell   func(w io.Writer, leftOut int)

	mu      sync.Mutex
	pending bytes.Buffer
	leftOut int     // messages since the last one that was taken
	live    *string // the live line to be shown next
	closed  bool

	wake  chan struct{} // holds one when there is something to do
	ended chan struct{}
}

const (
	maxOutbox  = 1 << 20         // bytes of messages that wait
	outboxLast = 2 * time.Second // how long the end waits for a reader
)

// newOutbox returns an outbox to w. tell writes that so many messages were left out.
func newOutbox(w io.Writer, screen *terminal, tell func(w io.Writer, leftOut int)) *outbox {
	o := &outbox{w: w, screen: screen, tell: tell, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go o.run()
	return o
}

// Write takes one message, and never waits.
func (o *outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending.Len()+len(p) > maxOutbox {
		o.leftOut++
		return len(p), nil
	}
	o.tellLocked()
	o.pending.Write(p)
	o.signal()
	return len(p), nil
}

func (o *outbox) tellLocked() {
	if o.leftOut > 0 {
		o.tell(&o.pending, o.leftOut)
		o.leftOut = 0
	}
}

// show changes the live line; an empty one ends it.
func (o *outbox) show(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.live = &line
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) run() {
	defer close(o.ended)
	for range o.wake {
		o.mu.Lock()
		pending, live, closed := o.pending.Bytes(), o.live, o.closed
		o.pending, o.live = bytes.Buffer{}, nil
		o.mu.Unlock()
		if live != nil && *live == "" {
			o.screen.set("")
		}
		if len(pending) > 0 {
			_, _ = o.w.Write(pending) // it fails where standard error is closed
		}
		if live != nil && *live != "" {
			o.screen.set(*live)
		}
		if closed {
			return
		}
	}
}

// close writes what is pending, unless that takes too long.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.tellLocked()
	o.signal()
	o.mu.Unlock()
	select {
	case <-o.ended:
	case <-time.After(outboxLast):
	}
}
