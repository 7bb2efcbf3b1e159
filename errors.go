// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/record"
)

// What calls return, to be compared with errors.Is. With those of the first group the event was
// refused: it is not logged, and counted. Those of the second wrap ErrAccepted.
var (
	// ErrClosed is the answer of a logger after Close.
	ErrClosed = mover.ErrClosed
	// ErrFull says that there was no room for the event, also after the wait that Options allow.
	ErrFull = mover.ErrFull
	// ErrSlow says that the ring was full while Dir had room: the disk takes less than is logged.
	// It wraps ErrFull.
	ErrSlow = mover.ErrSlow
	// ErrTooLarge says that an event is longer than Options.MaxEvent.
	ErrTooLarge = mover.ErrTooLarge
	// ErrNotRecord says that what was to be posted has no keys and values: nil, a number, a text.
	// It is not counted.
	ErrNotRecord = record.ErrNotRecord
	// ErrTag says that a tag is longer than 1 KiB. It is not counted.
	ErrTag = errors.New("spillway: tag too long")

	// ErrAccepted says, with WaitDelivered, that the event was accepted: it may be delivered yet,
	// or have been. It is for a caller that would log the event elsewhere, or once more.
	ErrAccepted = mover.ErrAccepted
	// ErrTimeout says that it was not delivered within Options.MaxWait, or when the call's context
	// ended. It is delivered later.
	ErrTimeout = mover.ErrTimeout
	// ErrDropped says that it was later dropped for newer ones, or lost.
	ErrDropped = mover.ErrDropped
	// ErrUndelivered says that Close ended before it was delivered. What becomes of it says the
	// error of Close. It wraps ErrClosed, too.
	ErrUndelivered = mover.ErrUndelivered

	// ErrCycle is an error of Open: a fallback leads back to where it is to lead away from.
	ErrCycle = errors.New("spillway: fallbacks lead back")
)

// An UndeliveredError says what a Close that ran out of time left undelivered: Events, of Bytes,
// and Where the next process finds them (empty: they are lost); how many more are Lost, since Where
// had no room for them; and why, in Err.
type UndeliveredError = mover.UndeliveredError

// LeftError is the former name of UndeliveredError.
//
// Deprecated: use UndeliveredError.
type LeftError = UndeliveredError

func tagError(tag string) error {
	return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTag, len(tag), forward.MaxTag)
}

// prefix is what errors and diagnostics begin with.
const prefix = "spillway: "

// A plain error names this package, and not those inside of it.
type plain struct{ err error }

// plainly makes an error plain.
func plainly(err error) error {
	if err == nil {
		return nil
	}
	return plain{err}
}

func (p plain) Error() string {
	text := "\n" + p.err.Error()
	for {
		less := inside.Replace(text)
		if less == text {
			return prefix + strings.TrimPrefix(text[1:], prefix)
		}
		text = less // one name behind another shares its colon
	}
}

func (p plain) Unwrap() error { return p.err }

// inside takes the names of packages out that stand before a text, at the beginning of a line or
// behind a colon or a parenthesis.
var inside = func() *strings.Replacer {
	var pairs []string
	for _, name := range []string{
		"await", "codes", "credentials", "fifo", "files", "follow", "letters", "lines", "mover", "output", "record",
		"spill", "step", "successor", "urls", "window", "within",
	} {
		pairs = append(pairs, "\n"+name+": ", "\n", ": "+name+": ", ": ", "("+name+": ", "(")
	}
	return strings.NewReplacer(pairs...)
}()
