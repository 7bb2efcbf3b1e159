// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/record"
)

// What calls return, to be compared with errors.Is.
var (
	// ErrClosed is the answer of a logger after Close. The event is not logged, and counted.
	ErrClosed = errors.New("spillway: logger closed")
	// ErrFull says that ring and spill had no room for the event, also after the wait that Options
	// allow. It is not logged, and counted.
	ErrFull = errors.New("spillway: full, event dropped")
	// ErrTooLarge says that an event is longer than Options.MaxEvent. It is not logged, and
	// counted.
	ErrTooLarge = errors.New("spillway: event too large")
	// ErrNotRecord says that what was to be posted has no keys and values: nil, a number, a text.
	ErrNotRecord = errors.New("spillway: not a record")
	// ErrTag says that a tag is longer than 1 KiB.
	ErrTag = errors.New("spillway: tag too long")
	// ErrDropped is what a call returns with WaitDelivered when its event was accepted and later
	// dropped for newer ones, or lost.
	ErrDropped = errors.New("spillway: event dropped")
	// ErrTimeout is what a call with WaitDelivered returns when its event was accepted, and was not
	// yet delivered within Options.MaxWait, or when the call's context ended. It is delivered
	// later.
	ErrTimeout = errors.New("spillway: event not delivered yet")
	// ErrUndelivered is what a call with WaitDelivered returns when its event was accepted, and
	// Close ended before it was delivered. What becomes of it says the error of Close. It wraps
	// ErrClosed.
	ErrUndelivered = fmt.Errorf("%w before the event was delivered", ErrClosed)
	// ErrCycle says that a fallback leads back to where it is to lead away from.
	ErrCycle = errors.New("spillway: fallbacks lead back")
)

// LeftError says what a Close that ran out of time left undelivered.
type LeftError struct {
	Events uint64
	Bytes  int64
	Where  []string // folders that the next process takes over; empty: the events are lost
	Lost   uint64   // events besides these that are lost: Where had no room for them
	Err    error    // why
}

// Error says how much is left, where, and why.
func (e *LeftError) Error() string {
	where := "they are lost"
	if len(e.Where) > 0 {
		where = fmt.Sprintf("the next process takes them over from %q", e.Where)
	}
	if e.Lost > 0 {
		where += fmt.Sprintf("; %d more are lost", e.Lost)
	}
	return fmt.Sprintf("spillway: closed with %d events of %d bytes not delivered (%v); %s", e.Events, e.Bytes, e.Err, where)
}

// Unwrap returns why.
func (e *LeftError) Unwrap() error { return e.Err }

func tagError(tag string) error {
	return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTag, len(tag), forward.MaxTag)
}

// ours returns an error of the packages below in this package's words.
func ours(err error) error {
	pairs := [...][2]error{
		{mover.ErrFull, ErrFull},
		{mover.ErrUndelivered, ErrUndelivered}, // before ErrClosed, which it wraps
		{mover.ErrClosed, ErrClosed},
		{mover.ErrTooLarge, ErrTooLarge},
		{mover.ErrDropped, ErrDropped},
		{mover.ErrTimeout, ErrTimeout},
		{record.ErrNotRecord, ErrNotRecord},
	}
	for _, pair := range pairs {
		if err == pair[0] { //nolint:errorlint // the usual one, without an allocation
			return pair[1]
		}
	}
	if left := (*mover.LeftError)(nil); errors.As(err, &left) {
		return oursOfClose(err)
	}
	for _, pair := range pairs {
		if errors.Is(err, pair[0]) {
			return fmt.Errorf("%w: %w", pair[1], err)
		}
	}
	return err
}

// oursOfClose is ours for what Close left, and for what it could not stop, which is joined to that.
func oursOfClose(err error) error {
	switch e := err.(type) { //nolint:errorlint // each of those that are joined is looked at
	case *mover.LeftError:
		return &LeftError{Events: e.Events, Bytes: e.Bytes, Where: e.Where, Lost: e.Lost, Err: e.Err}
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, oursOfClose(one))
		}
		return errors.Join(all...)
	}
	return err
}
