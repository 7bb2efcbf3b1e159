// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// The put functions write at buf[j:], where the caller has made room, and return the j behind it.
// buf is a destination up to its capacity. That costs one check of the capacity for several
// appends; a mistake in the sum is a panic of the runtime, not a byte out of place.

const (
	scalar = 9 // bytes that a number, a bool or nil takes at most
	header = 5 // bytes before those of a string at most
)

// full returns b up to its capacity, of which at least n bytes are free, and the length of b.
func full(b []byte, n int) (buf []byte, j int) {
	if cap(b)-len(b) < n {
		return grow(b, len(b), n), len(b)
	}
	return b[:cap(b)], len(b)
}

// grow makes room for n bytes at j.
//
//go:noinline
func grow(buf []byte, j, n int) []byte {
	b := slices.Grow(buf[:j], n)
	return b[:cap(b)]
}

// wide says how an integer that needs so many bits is written: its first byte, how far it is
// shifted up to stand at the top of 64 bits, and how many bytes all take.
type wide struct{ code, shift, size uint8 }

var unsigned, signed = func() (u, s [65]wide) {
	for n := range u {
		switch {
		case n <= 8:
			u[n] = wide{0xcc, 56, 2}
		case n <= 16:
			u[n] = wide{0xcd, 48, 3}
		case n <= 32:
			u[n] = wide{0xce, 32, 5}
		default:
			u[n] = wide{0xcf, 0, 9}
		}
		s[n] = u[n]
		s[n].code += 0xd0 - 0xcc
	}
	return u, s
}()

func putUint(buf []byte, j int, v uint64) int {
	if v < 1<<7 {
		buf[j] = byte(v)
		return j + 1
	}
	return putWide(buf, j, v, unsigned[bits.Len64(v)])
}

func putInt(buf []byte, j int, v int64) int {
	if uint64(v) < 1<<7 {
		buf[j] = byte(v)
		return j + 1
	}
	return putLargeInt(buf, j, v)
}

func putLargeInt(buf []byte, j int, v int64) int {
	switch {
	case v >= 0:
		return putWide(buf, j, uint64(v), unsigned[bits.Len64(uint64(v))])
	case v >= -32:
		buf[j] = byte(v)
		return j + 1
	default:
		return putWide(buf, j, uint64(v), signed[bits.Len64(^uint64(v))+1])
	}
}

func putWide(buf []byte, j int, v uint64, w wide) int {
	buf[j] = w.code
	binary.BigEndian.PutUint64(buf[j+1:], v<<(w.shift&63))
	return j + int(w.size)
}

func putBool(buf []byte, j int, v bool) int {
	c := byte(0xc2)
	if v {
		c = 0xc3
	}
	buf[j] = c
	return j + 1
}

func putFloat(buf []byte, j int, v float64) int {
	buf[j] = 0xcb
	binary.BigEndian.PutUint64(buf[j+1:], math.Float64bits(v))
	return j + 9
}

func putFloat32(buf []byte, j int, v float32) int {
	buf[j] = 0xca
	binary.BigEndian.PutUint32(buf[j+1:], math.Float32bits(v))
	return j + 5
}

// putString needs room for header and s. What MessagePack cannot hold must not come here. Short
// strings, which most are, are copied as words that overlap, behind one check of the bounds for all
// of them: each slice would have one of its own, of half a nanosecond.
func putString(buf []byte, j int, s string) int {
	n := len(s)
	if n >= 1<<5 {
		return putLong(buf, j, s)
	}
	_ = buf[j+n] // the check
	head := unsafe.Pointer(&buf[j])
	*(*byte)(head) = 0xa0 | byte(n)
	to, from := unsafe.Add(head, 1), unsafe.Pointer(unsafe.StringData(s))
	switch {
	case n > 16:
		*(*[16]byte)(to) = *(*[16]byte)(from)
		*(*[16]byte)(unsafe.Add(to, n-16)) = *(*[16]byte)(unsafe.Add(from, n-16))
	case n >= 8:
		*(*[8]byte)(to) = *(*[8]byte)(from)
		*(*[8]byte)(unsafe.Add(to, n-8)) = *(*[8]byte)(unsafe.Add(from, n-8))
	case n >= 4:
		*(*[4]byte)(to) = *(*[4]byte)(from)
		*(*[4]byte)(unsafe.Add(to, n-4)) = *(*[4]byte)(unsafe.Add(from, n-4))
	case n > 0:
		*(*byte)(to) = *(*byte)(from)
		*(*byte)(unsafe.Add(to, n>>1)) = *(*byte)(unsafe.Add(from, n>>1))
		*(*byte)(unsafe.Add(to, n-1)) = *(*byte)(unsafe.Add(from, n-1))
	}
	return j + 1 + n
}

func putLong(buf []byte, j int, s string) int {
	if n := len(s); n < 1<<8 {
		buf[j], buf[j+1] = 0xd9, byte(n)
		j += 2
	} else {
		j = putLongHeader(buf, j, n)
	}
	return j + copy(buf[j:], s)
}

func putLongHeader(buf []byte, j, n int) int {
	if n < 1<<16 {
		buf[j], buf[j+1], buf[j+2] = 0xda, byte(n>>8), byte(n)
		return j + 3
	}
	buf[j] = 0xdb
	binary.BigEndian.PutUint32(buf[j+1:], uint32(n))
	return j + 5
}

// longest is the longest string that MessagePack holds.
const longest = math.MaxUint32

// appendString appends a str of any length.
func appendString(b []byte, s string) []byte {
	if uint64(len(s)) > longest {
		return msgpack.AppendString(b, fmt.Sprintf("!SIZE: string of %d bytes", len(s)))
	}
	buf, j := full(b, header+len(s))
	return buf[:putString(buf, j, s)]
}

// appendBytes appends a bin of any length, or nil.
func appendBytes(b, p []byte) []byte {
	switch {
	case p == nil:
		return msgpack.AppendNil(b)
	case uint64(len(p)) > longest:
		return msgpack.AppendString(b, fmt.Sprintf("!SIZE: %d bytes", len(p)))
	}
	return msgpack.AppendBin(b, p)
}
