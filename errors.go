// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"errors"
	"fmt"
)

// The errors of calls, to be compared with errors.Is.
var (
	ErrClosed    = errors.New("spillway: logger closed")
	ErrFull      = errors.New("spillway: full, event dropped")
	ErrTooLarge  = errors.New("spillway: event too large")
	ErrNotRecord = errors.New("spillway: not a record")
	ErrTag       = errors.New("spillway: tag too long")
)

// LeftError says what a Close that ran out of time left undelivered.
type LeftError struct {
	Events int64
	Bytes  int64
	Where  string // ring and spill that the next process adopts; empty: they were in plain memory and are lost
}

// Error says how much is left, and where.
func (e *LeftError) Error() string {
	return fmt.Sprintf("%d events (%d bytes) left undelivered in %s", e.Events, e.Bytes, e.Where)
}
