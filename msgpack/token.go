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
	KindNil Kind = iota + 1
	KindBool
	KindInt
	KindUint
	KindFloat32
	KindFloat64
	KindStr
	KindBin
	KindExt
	KindArray
	KindMap
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
	return int64(t.num), t.Kind == KindInt || t.Kind == KindUint && t.num <= math.MaxInt64
}

// Uint returns the value of an integer, and whether the token is one that a uint64 holds.
func (t Token) Uint() (uint64, bool) {
	return t.num, t.Kind == KindUint || t.Kind == KindInt && t.num <= math.MaxInt64
}

// Float returns the value of a number, rounded if it is an integer that float64 cannot hold, and 0
// for anything else.
func (t Token) Float() float64 {
	switch t.Kind {
	case KindFloat32:
		return float64(math.Float32frombits(uint32(t.num)))
	case KindFloat64:
		return math.Float64frombits(t.num)
	case KindInt:
		return float64(int64(t.num))
	case KindUint:
		return float64(t.num)
	}
	return 0
}

// Bool returns the value of a bool, and false for anything else.
func (t Token) Bool() bool { return t.Kind == KindBool && t.num != 0 }

// ReadToken reads the token at the start of b: n bytes, the whole value if it is a scalar,
// otherwise the header. The payload of a str, bin or ext follows as b[n:n+t.Len], of which b may
// hold only a part, or none: a reader compares t.Len with len(b)-n first.
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
		return Token{Kind: KindUint, num: uint64(c)}, 1, nil
	case c < codeFixArray:
		return Token{Kind: KindMap, Len: int(c & 0x0f)}, 1, nil
	case c < codeFixStr:
		return Token{Kind: KindArray, Len: int(c & 0x0f)}, 1, nil
	case c < codeNil:
		return Token{Kind: KindStr, Len: int(c & 0x1f)}, 1, nil
	case c >= 0xe0:
		return Token{Kind: KindInt, num: uint64(int8(c))}, 1, nil
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
	case KindInt: // sign
		v = uint64(int64(v<<(64-8*f.size)) >> (64 - 8*f.size))
		fallthrough
	case KindUint, KindFloat32, KindFloat64:
		t.num = v
		return t, n, nil
	case KindNil:
		return t, n, nil
	case KindBool:
		t.num = uint64(c & 1)
		return t, n, nil
	case KindExt:
		if f.size == 0 {
			v = 1 << (c - codeFixExt1)
		}
		if len(b) == n {
			return Token{}, 0, ErrShort
		}
		t.Ext = int8(b[n])
		n++
		fallthrough
	case KindStr, KindBin:
		if v > DefaultLength {
			return Token{}, 0, fmt.Errorf("%w: %v of %d bytes, limit %d", ErrLength, f.kind, v, DefaultLength)
		}
	case KindArray, KindMap:
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
	{KindNil, 0},
	{0, 0},
	{KindBool, 0},
	{KindBool, 0},
	{KindBin, 1},
	{KindBin, 2},
	{KindBin, 4},
	{KindExt, 1},
	{KindExt, 2},
	{KindExt, 4},
	{KindFloat32, 4},
	{KindFloat64, 8},
	{KindUint, 1},
	{KindUint, 2},
	{KindUint, 4},
	{KindUint, 8},
	{KindInt, 1},
	{KindInt, 2},
	{KindInt, 4},
	{KindInt, 8},
	{KindExt, 0},
	{KindExt, 0},
	{KindExt, 0},
	{KindExt, 0},
	{KindExt, 0},
	{KindStr, 1},
	{KindStr, 2},
	{KindStr, 4},
	{KindArray, 2},
	{KindArray, 4},
	{KindMap, 2},
	{KindMap, 4},
}

// ReadBytes reads the str or bin at the start of b: its payload, which is a part of b, and the n
// bytes that it takes in all. The error is one of ReadToken, with ErrShort also if b ends within
// the payload; or wraps ErrKind if the value is neither str nor bin.
func ReadBytes(b []byte) (p []byte, kind Kind, n int, err error) {
	t, n, err := ReadToken(b)
	switch {
	case err != nil:
		return nil, 0, 0, err
	case t.Kind != KindStr && t.Kind != KindBin:
		return nil, t.Kind, 0, fmt.Errorf("%w: %v, not str or bin", ErrKind, t.Kind)
	case len(b)-n < t.Len:
		return nil, t.Kind, 0, ErrShort
	}
	return b[n : n+t.Len : n+t.Len], t.Kind, n + t.Len, nil
}
