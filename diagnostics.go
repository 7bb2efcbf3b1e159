// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
)

// diagnostics are the logger's own errors on their way to Options.Diagnostics. They get there on a
// goroutine that runs only while there are some, never on the one that meets them. That goroutine
// may be in the middle of a log call of package log, whose lock it holds, or be the mover's; and
// the function that gets the error may log, which must not lead back here without end.
type diagnostics struct {
	tell  func(error)
	place string // the destination; empty in tests

	fullAt atomic.Int64 // when it was told last that events are refused, in Unix seconds

	mu      sync.Mutex
	waiting []error       // at most maxWaiting
	lost    int           // that found no place
	running chan struct{} // closed by the goroutine when it ends; nil if none runs
	closed  bool
}

const maxWaiting = 64

func newDiagnostics(tell func(error), place string) *diagnostics {
	if tell == nil {
		tell = (&stderr{}).tell
	}
	return &diagnostics{tell: tell, place: place}
}

// A diagnostic says which logger has it.
type diagnostic struct {
	place string
	plain
}

func (t diagnostic) Error() string {
	return prefix + t.place + ": " + strings.TrimPrefix(t.plain.Error(), prefix)
}

// full tells that events are refused, at most once a minute: the event that says so may not get
// through for as long.
func (c *core) full(err error) {
	const pause = 60
	t := c.diagnostics
	now := time.Now().Unix()
	if last := t.fullAt.Load(); last != 0 && now-last < pause || !t.fullAt.CompareAndSwap(last, now) {
		return
	}
	why := "ring and Dir are full"
	switch {
	case errors.Is(err, ErrSlow):
		why = "the ring is full, Dir is not"
	case c.dir == "":
		why = "the ring is full, and there is no Dir"
	}
	t.report(fmt.Errorf("%w, and counted (%s); %d events are held", err, why, c.to.Stats().Held))
}

// failed tells of an attempt to deliver that came to nothing.
func (c *core) failed(h output.Health) {
	if h.Err == nil {
		return
	}
	held, next := "", ""
	if to := c.opened.Load(); to != nil { // an attempt may fail before Open returns
		held = fmt.Sprintf("; %d events are held", (*to).Stats().Held)
	}
	if h.Pause > 0 {
		next = fmt.Sprintf("; the next attempt is in %v", h.Pause.Round(time.Millisecond))
	}
	c.diagnostics.report(fmt.Errorf("attempt %d to deliver failed: %w%s%s", h.Tries, h.Err, held, next))
}

// report returns at once.
func (t *diagnostics) report(err error) {
	if err == nil {
		return
	}
	if t.place != "" {
		err = diagnostic{t.place, plain{err}}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return
	case len(t.waiting) == maxWaiting:
		t.lost++
		return
	}
	t.waiting = append(t.waiting, err)
	if t.running == nil {
		t.running = make(chan struct{})
		go t.run(t.running)
	}
}

func (t *diagnostics) run(ended chan struct{}) {
	defer close(ended)
	for {
		t.mu.Lock()
		if len(t.waiting) == 0 {
			t.running = nil
			t.mu.Unlock()
			return
		}
		all, lost := t.waiting, t.lost
		t.waiting, t.lost = nil, 0
		t.mu.Unlock()
		for _, err := range all {
			t.one(err)
		}
		if lost > 0 {
			t.one(diagnostic{t.place, plain{fmt.Errorf("%d more diagnostics came too fast to be told", lost)}})
		}
	}
}

// one survives a panic of the function that is told.
func (t *diagnostics) one(err error) {
	defer func() { _ = recover() }()
	t.tell(err)
}

// close returns when all is told, or when ctx ends.
func (t *diagnostics) close(ctx context.Context) {
	t.mu.Lock()
	t.closed = true
	running := t.running
	t.mu.Unlock()
	if running == nil {
		return
	}
	select {
	case <-running:
	case <-ctx.Done():
	}
}

// stderr writes errors as lines, at most burst at once and one a second. It does not go through
// package log, which may lead to the logger that failed.
type stderr struct {
	allowed float64
	last    time.Time
	hushed  int
}

const burst = 10

func (s *stderr) tell(err error) {
	now := time.Now()
	if s.last.IsZero() {
		s.allowed = burst
	}
	s.allowed = min(s.allowed+now.Sub(s.last).Seconds(), burst)
	s.last = now
	if s.allowed < 1 {
		s.hushed++
		return
	}
	s.allowed--
	line := err.Error()
	if !strings.HasPrefix(line, prefix) {
		line = prefix + line // a program has more than one voice on standard error
	}
	if s.hushed > 0 {
		line += fmt.Sprintf(" (%d lines left out before)", s.hushed)
		s.hushed = 0
	}
	_, _ = os.Stderr.WriteString(line + "\n")
}
