// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"errors"
	"math"
)

// What Limits has where it is zero.
const (
	// DefaultDepth is how many arrays and maps may stand inside each other.
	DefaultDepth = 128
	// DefaultLength is the largest str, bin or ext, in bytes: the largest that an int holds on
	// every platform.
	DefaultLength = math.MaxInt32
	// DefaultCount is the largest number of elements of an array, or of pairs of a map.
	DefaultCount = math.MaxInt32
)

// Limits bound what a value may claim. The zero value has the defaults; so has any field that is
// zero or negative.
//
// A limit is about claims, not about memory: this package never allocates for a claimed length,
// whatever the limits are.
type Limits struct {
	// Depth is how many arrays and maps may stand inside each other; a scalar has depth 0, an empty
	// array depth 1. At most 65,535.
	Depth int
	// Length is the largest str, bin or ext, in bytes of payload. At most 1<<32 - 1.
	Length int64
	// Count is the largest number of elements of one array, or of pairs of one map. At most 1<<31 -
	// 1.
	Count int64
}

// resolved returns the limits as the scanner keeps them.
func (l Limits) resolved() (depth uint16, length, count uint32) {
	depth, length, count = DefaultDepth, DefaultLength, DefaultCount
	if l.Depth > 0 {
		depth = uint16(min(l.Depth, math.MaxUint16))
	}
	if l.Length > 0 {
		length = uint32(min(l.Length, math.MaxUint32))
	}
	if l.Count > 0 {
		count = uint32(min(l.Count, math.MaxInt32))
	}
	return depth, length, count
}

// What can be wrong with bytes. Errors of this package wrap one of these.
var (
	// ErrShort says that the bytes end before the value does.
	ErrShort = errors.New("msgpack: value is cut off")
	// ErrInvalid says that a value begins with 0xc1, the one byte that MessagePack never uses.
	ErrInvalid = errors.New("msgpack: invalid byte 0xc1")
	// ErrDepth says that arrays and maps are nested deeper than the limit.
	ErrDepth = errors.New("msgpack: nested too deep")
	// ErrLength says that a str, bin or ext is longer than the limit.
	ErrLength = errors.New("msgpack: str, bin or ext too long")
	// ErrCount says that an array or a map claims more elements than the limit.
	ErrCount = errors.New("msgpack: array or map too large")
	// ErrKind says that a value is of another kind than the function reads.
	ErrKind = errors.New("msgpack: value of another kind")
)
