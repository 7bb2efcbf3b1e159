// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Kind is what a value is.
type Kind uint8

// The kinds. An integer written in an unsigned form, 0..127 included, is Uint; one written in a
// signed form is Int, whatever its sign.
const (
	Nil Kind = iota + 1
	Bool
	Int
	Uint
	Float32
	Float64
	Str
	Bin
	Ext
	Array
	Map
)

var kindNames = [...]string{
	"no value", "nil", "bool", "int", "uint", "float32", "float64", "str", "bin", "ext",
	"array", "map",
}

// String returns the kind's name in small letters.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// A Token is a scalar, or the header of a str, bin, ext, array or map.
type Token struct {
	Kind Kind
	Ext  int8   // type of an ext
	Len  int    // bytes of a str, bin or ext; elements of an array; pairs of a map
	num  uint64 // value of a bool or number: the integer, or the bits of the float
}

// Int returns the value of an integer, and whether the token is one that an int64 holds.
func (t Token) Int() (int64, bool) {
	return int64(t.num), t.Kind == Int || t.Kind == Uint && t.num <= math.MaxInt64
}

// Uint returns the value of an integer, and whether the token is one that a uint64 holds.
func (t Token) Uint() (uint64, bool) {
	return t.num, t.Kind == Uint || t.Kind == Int && t.num <= math.MaxInt64
}

// Float returns the value of a number, rounded if it is an integer that float64 cannot hold, and 0
// for anything else.
func (t Token) Float() float64 {
	switch t.Kind {
	case Float32:
		return float64(math.Float32frombits(uint32(t.num)))
	case Float64:
		return math.Float64frombits(t.num)
	case Int:
		return float64(int64(t.num))
	case Uint:
		return float64(t.num)
	}
	return 0
}

// Bool returns the value of a bool, and false for anything else.
func (t Token) Bool() bool { return t.Kind == Bool && t.num != 0 }

// ReadToken reads the token at the start of b: n bytes, the whole value if it is a scalar,
// otherwise the header. The payload of a str, bin or ext follows as b[n:n+t.Len], of which b may
// hold only a part, or none: whoever reads it compares t.Len with len(b)-n first.
//
// The error is ErrShort if b ends within those n bytes, ErrInvalid, or, beyond the default limits,
// wraps ErrLength or ErrCount. Then n is 0.
func ReadToken(b []byte) (t Token, n int, err error) {
	if len(b) == 0 {
		return t, 0, ErrShort
	}
	c := b[0]
	switch {
	case c < codeFixMap:
		return Token{Kind: Uint, num: uint64(c)}, 1, nil
	case c < codeFixArray:
		return Token{Kind: Map, Len: int(c & 0x0f)}, 1, nil
	case c < codeFixStr:
		return Token{Kind: Array, Len: int(c & 0x0f)}, 1, nil
	case c < codeNil:
		return Token{Kind: Str, Len: int(c & 0x1f)}, 1, nil
	case c >= 0xe0:
		return Token{Kind: Int, num: uint64(int8(c))}, 1, nil
	}
	f := forms[c-codeNil]
	n = 1 + int(f.size)
	if len(b) < n {
		return t, 0, ErrShort
	}
	var v uint64
	switch f.size {
	case 1:
		v = uint64(b[1])
	case 2:
		v = uint64(binary.BigEndian.Uint16(b[1:]))
	case 4:
		v = uint64(binary.BigEndian.Uint32(b[1:]))
	case 8:
		v = binary.BigEndian.Uint64(b[1:])
	}
	t.Kind = f.kind
	switch f.kind {
	case Int: // sign
		v = uint64(int64(v<<(64-8*f.size)) >> (64 - 8*f.size))
		fallthrough
	case Uint, Float32, Float64:
		t.num = v
		return t, n, nil
	case Nil:
		return t, n, nil
	case Bool:
		t.num = uint64(c & 1)
		return t, n, nil
	case Ext:
		if f.size == 0 {
			v = 1 << (c - codeFixExt1)
		}
		if len(b) == n {
			return Token{}, 0, ErrShort
		}
		t.Ext = int8(b[n])
		n++
		fallthrough
	case Str, Bin:
		if v > DefaultLength {
			return Token{}, 0, fmt.Errorf("%w: %v of %d bytes, limit %d", ErrLength, f.kind, v, DefaultLength)
		}
	case Array, Map:
		if v > DefaultCount {
			return Token{}, 0, fmt.Errorf("%w: %v of %d, limit %d", ErrCount, f.kind, v, DefaultCount)
		}
	default:
		return Token{}, 0, ErrInvalid
	}
	t.Len = int(v)
	return t, n, nil
}

// forms says of the first bytes c0-df which kind they begin, and how many bytes of value, length or
// count follow.
var forms = [32]struct {
	kind Kind
	size uint8
}{
	{Nil, 0},
	{0, 0},
	{Bool, 0},
	{Bool, 0},
	{Bin, 1},
	{Bin, 2},
	{Bin, 4},
	{Ext, 1},
	{Ext, 2},
	{Ext, 4},
	{Float32, 4},
	{Float64, 8},
	{Uint, 1},
	{Uint, 2},
	{Uint, 4},
	{Uint, 8},
	{Int, 1},
	{Int, 2},
	{Int, 4},
	{Int, 8},
	{Ext, 0},
	{Ext, 0},
	{Ext, 0},
	{Ext, 0},
	{Ext, 0},
	{Str, 1},
	{Str, 2},
	{Str, 4},
	{Array, 2},
	{Array, 4},
	{Map, 2},
	{Map, 4},
}

// ReadBytes reads the str or bin at the start of b: its payload, which is a part of b, and the n
// bytes that it takes in all. The error is one of ReadToken, with ErrShort also if b ends within
// the payload; or wraps ErrKind if the value is neither str nor bin.
func ReadBytes(b []byte) (p []byte, kind Kind, n int, err error) {
	t, n, err := ReadToken(b)
	switch {
	case err != nil:
		return nil, 0, 0, err
	case t.Kind != Str && t.Kind != Bin:
		return nil, t.Kind, 0, fmt.Errorf("%w: %v, not str or bin", ErrKind, t.Kind)
	case len(b)-n < t.Len:
		return nil, t.Kind, 0, ErrShort
	}
	return b[n : n+t.Len : n+t.Len], t.Kind, n + t.Len, nil
}
