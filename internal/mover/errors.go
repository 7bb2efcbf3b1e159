// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
)

// What Append returns. Users of the logger see these errors: package spillway has them under the
// same names.
var (
	ErrClosed   = errors.New("spillway: logger closed")
	ErrFull     = errors.New("spillway: event refused: no room")
	ErrTooLarge = errors.New("spillway: event refused: too large")
	ErrAccepted = errors.New("spillway: event accepted")

	ErrSlow        = alsoOf("spillway: event refused: no room, since the disk takes less than comes", ErrFull)
	ErrDropped     = alsoOf("spillway: event accepted, and dropped later", ErrAccepted)
	ErrTimeout     = alsoOf("spillway: event accepted, not delivered yet", ErrAccepted)
	ErrUndelivered = alsoOf("spillway: event accepted, logger closed before it was delivered", ErrAccepted, ErrClosed)
)

// A kind is an error that is others, too.
type kind struct {
	text string
	is   []error
}

func alsoOf(text string, is ...error) error { return &kind{text, is} }

func (k *kind) Error() string   { return k.text }
func (k *kind) Unwrap() []error { return k.is }

// UndeliveredError says what a Close that ran out of time left undelivered.
type UndeliveredError struct {
	Events uint64
	Bytes  int64    // of the events in ring and chunks
	Where  []string // folders that the next process takes over; empty: the events are lost
	Lost   uint64   // events besides these that are lost: Where had no room for them
	Err    error    // why: that of the context, or of a disk
}

// Error says how much is left, where, and why.
func (e *UndeliveredError) Error() string {
	where := "they are lost"
	if len(e.Where) > 0 {
		where = fmt.Sprintf("the next process takes them over from %q", e.Where)
	}
	if e.Lost > 0 {
		where += fmt.Sprintf("; %d more are lost", e.Lost)
	}
	return fmt.Sprintf("spillway: closed with %d events of %d bytes not delivered (%v); %s", e.Events, e.Bytes, e.Err,
		where)
}

// Unwrap returns why.
func (e *UndeliveredError) Unwrap() error { return e.Err }
