// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway"
)

// ErrUnknownNetwork says that Config.FluentNetwork is none of tcp, tls and unix.
type ErrUnknownNetwork struct {
	network string
}

// NewErrUnknownNetwork returns an *ErrUnknownNetwork.
func NewErrUnknownNetwork(network string) error { return &ErrUnknownNetwork{network} }

// Error names the network.
func (e *ErrUnknownNetwork) Error() string { return "unknown network " + e.network }

// A stateError has the text that callers of the original know, word for word, and wraps what
// errors.Is finds.
type stateError struct {
	text  string
	cause error
}

func (e *stateError) Error() string { return e.text }
func (e *stateError) Unwrap() error { return e.cause }

var (
	errClosedSync  = &stateError{"fluent#postRawData: Logger already closed", spillway.ErrClosed}
	errClosedAsync = &stateError{"fluent#appendBuffer: Logger already closed", spillway.ErrClosed}
	errClosing     = &stateError{"fluent logger is closing", spillway.ErrClosed}

	errNoMap  = &stateError{"fluent#PostWithTime: message must be a map", spillway.ErrNotRecord}
	errNoKeys = &stateError{"fluent#PostWithTime: map keys must be strings", spillway.ErrNotRecord}

	errNoRecord = fmt.Errorf("fluent#postRawData: no map of keys and values, which is what servers take: %w",
		spillway.ErrNotRecord)
	errNotMade = errors.New("fluent#postRawData: a Fluent that New did not make")
	errNothing = fmt.Errorf("fluent#postRawData: nothing to send: %w", spillway.ErrNotRecord)
)

// full is the error of a full buffer.
func full(limit int, cause error) error {
	return &stateError{fmt.Sprintf("fluent#appendBuffer: Buffer full, limit %d", limit), cause}
}
