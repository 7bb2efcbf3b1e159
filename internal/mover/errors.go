// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
)

var (
	// ErrFull says that there was no room for an event and the policy was not to wait, or the wait
	// was too long.
	ErrFull = errors.New("mover: full")
	// ErrClosed is the answer of a Mover after Close.
	ErrClosed = errors.New("mover: closed")
	// ErrTooLarge says that an event is longer than Config.MaxEvent.
	ErrTooLarge = errors.New("mover: event too large")
	// ErrDropped is what Append returns with WaitDelivered when its event was accepted and later
	// dropped for newer ones, or lost.
	ErrDropped = errors.New("mover: event dropped")
	// ErrTimeout is what Append returns with WaitDelivered when its event was accepted, and not yet
	// delivered when the wait ended.
	ErrTimeout = errors.New("mover: event not delivered yet")
	// ErrUndelivered is what Append returns with WaitDelivered when its event was accepted, and
	// Close ended before it was delivered. It wraps ErrClosed.
	ErrUndelivered = fmt.Errorf("%w before the event was delivered", ErrClosed)
)

// LeftError says what Close left behind.
type LeftError struct {
	Events uint64
	Bytes  int64    // of the events in ring and chunks
	Where  []string // folders that the next process adopts; empty when the events are lost
	Lost   uint64   // events besides these that are lost, as there was no room for them in Where
	Err    error    // why: that of the context, or of a disk
}

func (e *LeftError) Error() string {
	where := "they are lost"
	if len(e.Where) > 0 {
		where = fmt.Sprintf("the next process takes them over from %q", e.Where)
	}
	if e.Lost > 0 {
		where += fmt.Sprintf("; %d more are lost", e.Lost)
	}
	return fmt.Sprintf("mover: closed with %d events of %d bytes not delivered (%v); %s", e.Events, e.Bytes, e.Err, where)
}

// Unwrap is the cause.
func (e *LeftError) Unwrap() error { return e.Err }
