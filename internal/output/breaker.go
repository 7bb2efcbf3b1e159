// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/files"
)

// Trip says when an output is taken for dead, and what is called then. The zero value works.
type Trip struct {
	// Failures in a row, with nothing delivered in between, open the breaker: 3 if 0.
	Failures int
	// HandleError is offered what is pending while the breaker is open: each chunk once when it
	// opens, new ones as they come, and what it did not take again after each failed probe. nil
	// means that it took the chunk. It runs on a goroutine of its own, one call at a time; it may
	// be slow, and may keep the chunk, which is a copy. A panic is an error.
	HandleError func(error, *forward.Chunk) error
	// Breaker is told each change of state, in order, on a goroutine of its own.
	Breaker func(BreakerEvent)
	// Report is told what went wrong, on the same goroutine as Breaker; but what Health is told
	// only if there is no Health.
	Report func(error)
	// Health is told, on the same goroutine, how the output does: soon after each failure while
	// nothing works, and when something works again. Of several changes in between it hears the
	// last.
	Health func(Health)
	// Awaited returns the processes whose files are left alone, though they may have ended; see
	// package files. nil: there are none.
	Awaited func() ([]Process, error)
}

// Process is that of package files.
type Process = files.Process

// Health says how an output does.
type Health struct {
	Err   error         // of the last try; nil: it works
	Tries int           // that failed since it worked last
	Pause time.Duration // before the next one; 0: not known
}

// BreakerState is the state of a circuit breaker.
type BreakerState uint8

const (
	// BreakerClosed means that deliveries go on.
	BreakerClosed BreakerState = iota
	// BreakerOpen means that the output is taken for dead.
	BreakerOpen
	// BreakerHalfOpen means that one attempt is being made to see whether it still is.
	BreakerHalfOpen
)

// String returns closed, open or half-open.
func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	case BreakerHalfOpen:
		return "half-open"
	}
	return "unknown"
}

// BreakerEvent is a change of a breaker's state.
type BreakerEvent struct {
	State BreakerState
	Err   error // why it opened
	At    time.Time
}

const defaultFailures = 3

// A breaker counts the failures of one output and runs the error handler. Its methods but close may
// be called with the output's lock held: they call nobody back.
//
//	        Failures in a row, nothing else works
//	┌────────┐ ───────────────────────────────► ┌──────┐ ── probe ──► ┌───────────┐
//	│ closed │                                  │ open │              │ half-open │
//	└────────┘ ◄─────────── worked ──────────── └──────┘ ◄─ failed ── └───────────┘
//	     ▲                                        each time it opens,       │
//	     │                                        a round of offers begins  │
//	     └──────────────────────────── worked ──────────────────────────────┘
type breaker struct {
	trip Trip
	next func(round uint64) *forward.Chunk
	back func(c *forward.Chunk, err error)
	told notifier

	mu       sync.Mutex
	st       BreakerState
	failures int
	round    uint64 // how often it opened
	err      error  // why it did last
	closed   bool

	health Health
	untold bool // Health is about to be called

	running bool          // the goroutine of the handler exists
	asked   bool          // it is to ask next again
	ended   chan struct{} // closed when it has ended
	began   time.Time     // of the handler's call that runs; zero when none does
	left    bool          // close left that call behind
}

// newBreaker: next and back are called on the handler's goroutine with no lock held, in turns, and
// only when there is a handler. next returns the next chunk that is to be offered in this round
// (one that was not offered in it yet; the output must not write it until it is back), or nil. It
// may look at state under its own lock, and return nil unless that is Open. back says what became
// of the chunk: nil, the handler took it; else it is pending again.
func newBreaker(t *Trip, next func(round uint64) *forward.Chunk, back func(c *forward.Chunk, err error)) *breaker {
	b := &breaker{trip: *t, next: next, back: back}
	if b.trip.Failures <= 0 {
		b.trip.Failures = defaultFailures
	}
	return b
}

// failed notes a failed attempt. It opens the breaker after Failures in a row, a half-open one at
// once, if dead: nothing else works either.
func (b *breaker) failed(err error, dead bool, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	if dead {
		b.tellHealthLocked(Health{Err: err, Tries: b.health.Tries + 1, Pause: pause})
	}
	if !dead || b.st == BreakerOpen || b.st == BreakerClosed && b.failures < b.trip.Failures {
		return
	}
	b.err = err
	b.round++
	b.turnLocked(BreakerOpen)
	b.wakeOffererLocked()
}

// probe notes that an attempt begins: an open breaker is half-open then, and offers pause.
func (b *breaker) probe() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.st == BreakerOpen {
		b.turnLocked(BreakerHalfOpen)
	}
}

// worked notes that something was delivered: closed.
func (b *breaker) worked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
	if b.health.Err != nil {
		b.tellHealthLocked(Health{})
	}
	if b.st != BreakerClosed {
		b.turnLocked(BreakerClosed)
	}
}

// tellHealthLocked has Health told the latest.
func (b *breaker) tellHealthLocked(h Health) {
	b.health = h
	if b.trip.Health == nil || b.untold || b.closed {
		return
	}
	b.untold = true
	b.told.must(func() {
		b.mu.Lock()
		h := b.health
		b.untold = false
		b.mu.Unlock()
		b.trip.Health(h)
	})
}

// reportFailure reports a failure that Health is not told.
func (b *breaker) reportFailure(err error, dead bool) {
	if b.trip.Health == nil || !dead {
		b.report(err)
	}
}

// more has next asked again: a chunk came while the breaker is open.
func (b *breaker) more() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.st == BreakerOpen {
		b.wakeOffererLocked()
	}
}

// state returns the state.
func (b *breaker) state() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.st
}

// report tells Trip.Report.
func (b *breaker) report(err error) {
	if b.trip.Report != nil {
		b.told.tell(func() { b.trip.Report(err) })
	}
}

// turnLocked changes the state. With mu held.
func (b *breaker) turnLocked(to BreakerState) {
	b.st = to
	if b.closed || b.trip.Breaker == nil {
		return
	}
	e := BreakerEvent{State: to, At: time.Now()}
	if to == BreakerOpen {
		e.Err = b.err
	}
	b.told.tell(func() { b.trip.Breaker(e) })
}

// wakeOffererLocked has the handler's goroutine look for chunks to offer. With mu held.
func (b *breaker) wakeOffererLocked() {
	if b.trip.HandleError == nil || b.closed {
		return
	}
	b.asked = true
	if !b.running {
		b.running = true
		b.ended = make(chan struct{})
		go b.offer()
	}
}

// offer is the handler's goroutine. It ends when there is nothing to offer.
func (b *breaker) offer() {
	for {
		b.mu.Lock()
		if b.closed || b.st != BreakerOpen || !b.asked {
			b.running = false
			close(b.ended)
			b.mu.Unlock()
			return
		}
		b.asked = false
		round, why := b.round, b.err
		b.mu.Unlock()
		c := b.next(round)
		if c == nil {
			continue
		}
		lent := copyChunk(c)
		b.mu.Lock()
		b.asked = true // there may be more
		closed := b.closed
		if !closed {
			b.began = time.Now()
		}
		b.mu.Unlock()
		if closed {
			b.back(c, ErrClosed)
			continue
		}
		err := b.handle(why, lent)
		b.mu.Lock()
		b.began = time.Time{}
		left := b.left
		b.mu.Unlock()
		if left { // close did not wait: the chunk was given up
			continue
		}
		if err != nil {
			b.report(err)
		}
		b.back(c, err)
	}
}

// handle calls the handler. Its error may panic as well when its text is asked for.
func (b *breaker) handle(why error, c *forward.Chunk) (err error) {
	events := c.Events
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("output: the error handler did not take a chunk of %d events: %w", events, panicked(v))
		}
	}()
	if err = b.trip.HandleError(why, c); err != nil {
		err = fmt.Errorf("output: the error handler did not take a chunk of %d events: %w", events, err)
	}
	return err
}

// panicked is a panic as an error. To look at v may panic again, which package fmt survives only
// once.
func panicked(v any) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("panic with a %T", v)
		}
	}()
	return fmt.Errorf("panic: %v", v)
}

// copyChunk is why close can leave a handler behind: what it holds is its own.
func copyChunk(c *forward.Chunk) *forward.Chunk {
	own := *c
	own.ID, own.Entries = slices.Clone(c.ID), slices.Clone(c.Entries)
	return &own
}

// close ends offers and waits for what is being told: next and back are not called after it. Its
// error names a function that did not return by ctx.
func (b *breaker) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	ended := b.ended
	b.mu.Unlock()
	var err error
	if ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
			b.mu.Lock()
			if !b.began.IsZero() {
				b.left = true
				err = fmt.Errorf("output: the error handler has not returned for %v, and is left behind",
					time.Since(b.began).Round(time.Millisecond))
			}
			b.mu.Unlock()
			if err == nil { // between two calls, which takes no time
				<-ended
			}
		}
	}
	return errors.Join(err, b.told.wait(ctx))
}
