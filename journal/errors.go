// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
)

var (
	// ErrFull says that the journal has no room: its byte limit is met, or the file system under it
	// is full (then the error also wraps what the file system said). Nothing was appended.
	// [Journal.Space] tells when to try again.
	ErrFull = errors.New("journal: full")
	// ErrLocked says that a living process has the directory open.
	ErrLocked = errors.New("journal: directory is in use")
	// ErrClosed is the answer of a journal or reader after Close.
	ErrClosed = errors.New("journal: closed")
	// ErrCorrupt is what every [CorruptError] is.
	ErrCorrupt = errors.New("journal: corrupt")
	// ErrTooLarge says that a record could never fit, however empty the journal.
	ErrTooLarge = errors.New("journal: record too large")
)

// CorruptError says which bytes cannot be read and why. It is an [ErrCorrupt].
type CorruptError struct {
	Path   string // of the file
	Offset int64  // of the first byte that cannot be read
	Length int64  // bytes that cannot be read; 0 when that is the whole file
	Saved  string // where a copy of them, or the file itself, was set aside; empty when nothing was
	Err    error
}

func (e *CorruptError) Error() string {
	s := fmt.Sprintf("journal: %s: %d bytes at offset %d cannot be read", e.Path, e.Length, e.Offset)
	if e.Length == 0 {
		s = fmt.Sprintf("journal: %s cannot be read", e.Path)
	}
	if e.Saved != "" {
		s += ", set aside in " + e.Saved
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap makes errors.Is find ErrCorrupt and the cause.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }
