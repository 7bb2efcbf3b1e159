// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/msgpack"
)

// A FaultKind says what is wrong with bytes.
type FaultKind uint8

// The kinds.
const (
	_                   FaultKind = iota
	FaultGarbage                  // no MessagePack: where the next message begins is not known
	FaultTooDeep                  // arrays and maps nested too deep
	FaultTooLong                  // a length or count that no message could hold
	FaultTooLarge                 // a message larger than it may be
	FaultInvalidMessage           // an array that is no message
	FaultInvalidChunk             // packed entries that are none
	FaultBadTag                   // no string, or too long
)

// A Fault is an error that has a kind.
type Fault struct {
	Kind FaultKind
	Err  error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// Faultf makes one.
func Faultf(k FaultKind, format string, args ...any) error {
	return &Fault{k, fmt.Errorf(format, args...)}
}

// ScanFault gives an error of the scanner its kind.
func ScanFault(err error, other FaultKind) error {
	switch {
	case errors.Is(err, msgpack.ErrDepth):
		return &Fault{FaultTooDeep, err}
	case errors.Is(err, msgpack.ErrLength), errors.Is(err, msgpack.ErrCount):
		return &Fault{FaultTooLong, err}
	}
	return &Fault{other, err}
}

// Shorten cuts text of a peer's to what fits into an error.
func Shorten(b []byte) []byte { return b[:min(len(b), 64)] }
