// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/msgpack"
)

// A Kind says what is wrong with bytes.
type Kind uint8

// The kinds.
const (
	_              Kind = iota
	Garbage             // no MessagePack: where the next message begins is not known
	TooDeep             // arrays and maps nested too deep
	TooLong             // a length or count that no message could hold
	TooLarge            // a message larger than it may be
	InvalidMessage      // an array that is no message
	InvalidChunk        // packed entries that are none
	BadTag              // no string, or too long
)

// A Fault is an error that has a kind.
type Fault struct {
	Kind Kind
	Err  error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// Faultf makes one.
func Faultf(k Kind, format string, args ...any) error {
	return &Fault{k, fmt.Errorf(format, args...)}
}

// ScanFault gives an error of the scanner its kind.
func ScanFault(err error, other Kind) error {
	switch {
	case errors.Is(err, msgpack.ErrDepth):
		return &Fault{TooDeep, err}
	case errors.Is(err, msgpack.ErrLength), errors.Is(err, msgpack.ErrCount):
		return &Fault{TooLong, err}
	}
	return &Fault{other, err}
}

// Shorten cuts text of a peer's to what fits into an error.
func Shorten(b []byte) []byte { return b[:min(len(b), 64)] }
