// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// How the transcoder is organised. It reads src at i and writes buf, the destination up to its
// capacity, at j. i and j go from function to function and back, so that they stay in registers.
// Room is made by the token, not by the byte: value finds at least 32 bytes at j, of which the
// longest number takes 24, and leaves at least 8, enough for the comma or bracket that comes next.
// Strings and what else can be long make their own room. There is no other bound: each store is
// checked by the runtime, and a mistake here would be a panic in the tests that vary the capacity,
// not a byte out of place.

const (
	// What is made when there is less; also what text keeps behind a string, which it may overwrite
	// by up to 8 bytes.
	room = 48
	left = 8
)

// ExtJSON appends one JSON value, a string as a rule, for an extension value of the given type. It
// must not keep data.
type ExtJSON func(dst []byte, typ int8, data []byte) []byte

// AppendJSON appends the MessagePack value at the start of src as JSON, without spaces, and tells
// how many bytes of src it takes.
//
//   - Maps keep the order of their keys, and a repeated key is written again. A key that is no
//     string becomes a string that holds its JSON text: 1 is "1", nil is "null", [1,"a"] is
//     "[1,\"a\"]". (Arrays and maps as keys within such keys would double in size with each level;
//     below the third they are "msgpack:<base64>".)
//   - A str and a bin are strings, escaped as AppendJSONString does.
//   - Integers are exact. Floats have the fewest digits that read back as the same float of their
//     size; NaN and infinities are null.
//   - An ext is what the function ext makes of it, or the string "ext:<type>:<base64>" if ext is
//     nil.
//
// The error is one of ErrShort and ErrInvalid, or wraps ErrDepth, ErrLength or ErrCount by the
// default limits. Then out is dst, and n is 0. What lies behind out in its capacity may have been
// overwritten.
func AppendJSON(dst, src []byte, ext ExtJSON) (out []byte, n int, err error) {
	t := transcoder{buf: dst[:cap(dst)], src: src, ext: ext}
	if len(t.buf)-len(dst) < room {
		t.grow(len(dst), room)
	}
	i, j, err := t.value(0, len(dst), 0)
	if err != nil {
		return dst, 0, err
	}
	return t.buf[:j], i, nil
}

type transcoder struct {
	buf []byte
	src []byte
	ext ExtJSON

	keys     int      // keys that are arrays or maps in which the value stands
	reserved []string // AppendJSONPairs: names that keys of the outermost map must not have,
	few      [8]int   // and how many underscores the first of them
	many     []int    // and the others get instead
}

// errDepth is apart from where it is returned to keep those functions small.
func errDepth() error { return fmt.Errorf("%w: limit %d", ErrDepth, DefaultDepth) }

// grow makes room for n bytes at j.
func (t *transcoder) grow(j, n int) []byte {
	b := slices.Grow(t.buf[:j], n)
	t.buf = b[:cap(b)]
	return t.buf
}

// appended goes on behind what an append function made of buf[:j].
func (t *transcoder) appended(b []byte) (j int) {
	t.buf = b[:cap(b)]
	if cap(b)-len(b) < room {
		t.grow(len(b), room)
	}
	return len(b)
}

// value writes the value at src[i:], which stands in depth arrays and maps.
func (t *transcoder) value(i, j, depth int) (int, int, error) {
	src, buf := t.src, t.buf
	if i >= len(src) {
		return i, j, ErrShort
	}
	c := src[i]
	switch {
	case c < codeFixMap:
		return i + 1, putUint(buf, j, uint64(c)), nil
	case c < codeFixArray:
		return t.object(i+1, j, int(c&0x0f), depth)
	case c < codeFixStr:
		return t.array(i+1, j, int(c&0x0f), depth)
	case c < codeNil:
		return t.str(i+1, j, int(c&0x1f))
	case c >= 0xe0:
		return i + 1, putInt(buf, j, int64(int8(c))), nil
	}
	switch c {
	case codeNil:
		binary.LittleEndian.PutUint32(buf[j:], 'n'|'u'<<8|'l'<<16|'l'<<24)
		return i + 1, j + 4, nil
	case codeFalse:
		binary.LittleEndian.PutUint64(buf[j:], 'f'|'a'<<8|'l'<<16|'s'<<24|'e'<<32)
		return i + 1, j + 5, nil
	case codeTrue:
		binary.LittleEndian.PutUint32(buf[j:], 't'|'r'<<8|'u'<<16|'e'<<24)
		return i + 1, j + 4, nil
	case codeStr8:
		if len(src)-i < 2 {
			return i, j, ErrShort
		}
		return t.str(i+2, j, int(src[i+1]))
	}
	k, n, err := ReadToken(src[i:])
	if err != nil {
		return i, j, err
	}
	i += n
	switch k.Kind {
	case KindInt:
		return i, putInt(buf, j, int64(k.num)), nil
	case KindUint:
		return i, putUint(buf, j, k.num), nil
	case KindFloat64:
		return i, putFloat(buf, j, math.Float64frombits(k.num)), nil
	case KindFloat32:
		return i, putFloat32(buf, j, math.Float32frombits(uint32(k.num))), nil
	case KindArray:
		return t.array(i, j, k.Len, depth)
	case KindMap:
		return t.object(i, j, k.Len, depth)
	case KindExt:
		return t.extension(i, j, k)
	default: // Str, Bin
		return t.str(i, j, k.Len)
	}
}

// str writes the n bytes at src[i:] as a string, if they are there.
func (t *transcoder) str(i, j, n int) (int, int, error) {
	if len(t.src)-i < n {
		return i, j, ErrShort
	}
	return i + n, t.text(i, j, n), nil
}

func (t *transcoder) array(i, j, n, depth int) (_, _ int, err error) {
	if depth >= DefaultDepth {
		return i, j, errDepth()
	}
	t.buf[j] = '['
	j++
	for range n {
		if len(t.buf)-j < room {
			t.grow(j, room)
		}
		if i, j, err = t.value(i, j, depth+1); err != nil {
			return i, j, err
		}
		t.buf[j] = ','
		j++
	}
	return i, t.end(j, n, ']'), nil
}

func (t *transcoder) object(i, j, n, depth int) (_, _ int, err error) {
	if depth >= DefaultDepth {
		return i, j, errDepth()
	}
	t.buf[j] = '{'
	if i, j, err = t.members(i, j+1, n, depth+1, 0); err != nil {
		return i, j, err
	}
	return i, t.end(j, n, '}'), nil
}

// end closes an array or a map of n elements, each of which has left a comma.
func (t *transcoder) end(j, n int, c byte) int {
	if n > 0 {
		j--
	}
	t.buf[j] = c
	j++
	if len(t.buf)-j < left {
		t.grow(j, room)
	}
	return j
}

// members writes n pairs, and a comma behind each. A key whose bit, by nameBit, is in names is
// compared with the reserved ones.
func (t *transcoder) members(i, j, n, depth int, names uint64) (_, _ int, err error) {
	first := i
	for range n {
		start := j
		if word, size := shortKey(t.src, i); size > 0 && len(t.buf)-j >= room {
			b := t.buf[j : j+room] // all of it is in reach of one check
			b[0] = '"'
			binary.LittleEndian.PutUint64(b[1:], word)
			b[size] = '"'
			i += size
			j += size + 1
		} else if i < len(t.src) && t.src[i]&0xe0 == codeFixStr {
			i, j, err = t.str(i+1, j, int(t.src[i]&0x1f))
		} else {
			i, j, err = t.key(i, j, depth)
		}
		if err != nil {
			return i, j, err
		}
		if names != 0 && names&nameBit(j-start-2, t.buf[start+1]) != 0 {
			j = t.rename(start, j, first, n)
		}
		t.buf[j] = ':'
		j++
		if i, j, err = t.value(i, j, depth); err != nil {
			return i, j, err
		}
		t.buf[j] = ','
		j++
	}
	return i, j, nil
}

// shortKey returns the str at src[i:] as a word, and what it takes, if it has at most eight bytes
// that can stand in a JSON string as they are, as nearly all keys do. Else size is 0.
func shortKey(src []byte, i int) (word uint64, size int) {
	if uint(i) >= uint(len(src)) || len(src)-i < 9 || src[i]-codeFixStr > 8 {
		return 0, 0
	}
	n := src[i] & 0x0f
	word = binary.LittleEndian.Uint64(src[i+1:])
	if special(word)&(1<<(8*n)-1) != 0 {
		return 0, 0
	}
	return word, int(n) + 1
}

// extension writes an ext whose data is at src[i:].
func (t *transcoder) extension(i, j int, k Token) (int, int, error) {
	if len(t.src)-i < k.Len {
		return i, j, ErrShort
	}
	data := t.src[i : i+k.Len : i+k.Len]
	i += k.Len
	if t.ext != nil {
		return i, t.appended(t.ext(t.buf[:j], k.Ext, data)), nil
	}
	j += copy(t.buf[j:], `"ext:`)
	j = putInt(t.buf, j, int64(k.Ext))
	t.buf[j] = ':'
	out := base64.StdEncoding.AppendEncode(t.buf[:j+1], data)
	return i, t.appended(append(out, '"')), nil
}
