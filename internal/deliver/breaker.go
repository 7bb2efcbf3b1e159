// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// Trip says when a destination is taken for dead, and who is told. The zero value works.
type Trip struct {
	// Failures in a row, with nothing delivered in between, open the breaker: 3 if 0.
	Failures int
	// HandleError is offered what is pending while the breaker is open: each chunk once when it opens, new ones as they come, and what it did
	// not take again after each failed probe. nil means that it took the chunk. It runs on a goroutine of its own, one call at a time; it may be slow, and
	// may keep the chunk, which is a copy. A panic is an error.
	HandleError func(error, *forward.Chunk) error
	// Breaker is told each change of state, in order, on a goroutine of its own.
	Breaker func(BreakerEvent)
	// Report is told what went wrong, on a goroutine of its own.
	Report func(error)
}

// BreakerState is the state of a circuit breaker.
type BreakerState uint8

const (
	// Closed: deliveries go on.
	Closed BreakerState = iota
	// Open: the destination is taken for dead.
	Open
	// HalfOpen: one attempt is being made to see whether it still is.
	HalfOpen
)

// BreakerEvent is a change of a breaker's state.
type BreakerEvent struct {
	State BreakerState
	Err   error // why it opened
	At    time.Time
}

// A breaker counts the failures of one destination and runs the error handler. Its methods may be called with the destination's lock held: they
// call nobody back.
type breaker struct{}

// newBreaker: next and back are called on the breaker's goroutine with no lock held, in turns, only when there is a handler. next returns the next chunk that is
// to be offered in this round (one that was not offered in it yet; the destination must not write it until it is back) and why, or nil. back says
// what became of it: nil, the handler took it; else it is pending again.
func newBreaker(t *Trip, next func(round uint64) *forward.Chunk, back func(c *forward.Chunk, err error)) *breaker {
	return &breaker{}
}

// failed notes a failed attempt. It opens the breaker after Failures in a row, if dead says that nothing else works; a half-open one at once.
// Each opening begins a new round of offers.
func (b *breaker) failed(err error, dead bool) {}

// probe notes that an attempt begins: an open breaker is half-open then, and offers pause.
func (b *breaker) probe() {}

// worked notes that something was delivered: closed.
func (b *breaker) worked() {}

// more lets the breaker's goroutine ask next again: a chunk came while it is open.
func (b *breaker) more() {}

// state returns the state.
func (b *breaker) state() BreakerState { return Closed }

// close ends the goroutine: no call of next and back after it has begun. Its error names a handler that did not return by ctx.
func (b *breaker) close(ctx context.Context) error { return nil }
