// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// How the transcoder is organised. A transcoder reads src at i and writes buf at j; both stay in registers, passed from function to
// function and back. buf reaches to the capacity of the destination, and whatever writes a token first makes room for all that this
// token can need, so that nothing is checked by the byte. Depth is bounded, so value may recurse.

// ExtJSON appends the JSON value, a string as a rule, for an extension value of the given type. It must not keep data.
type ExtJSON func(dst []byte, typ int8, data []byte) []byte

// AppendJSON appends the JSON text of the MessagePack value at the start of src, and tells how many bytes of src it takes:
//
//   - Maps keep the order of their keys, and a repeated key is written again. A key that is no string becomes a string that holds its
//     JSON text: 1 is "1", nil is "null", [1,"a"] is "[1,\"a\"]".
//   - A str and a bin are both strings, escaped as AppendJSONString does.
//   - Integers are exact. Floats have the fewest digits that read back as the same float of their size; NaN and infinities are null.
//   - An ext is what the function ext makes of it, or the string "ext:<type>:<base64>" if that is nil.
//
// The error is one of ErrShort, ErrInvalid, and what wraps ErrDepth, ErrLength or ErrCount by the default limits. Then out is dst, and
// n is 0. What follows out in its capacity may have been overwritten.
func AppendJSON(dst, src []byte, ext ExtJSON) (out []byte, n int, err error) {
	t := transcoder{buf: dst[:cap(dst)], src: src, ext: ext}
	i, j, err := t.value(0, len(dst), 0)
	if err != nil {
		return dst, 0, err
	}
	return t.buf[:j], i, nil
}

type transcoder struct {
	buf []byte // destination, up to its capacity
	src []byte
	ext ExtJSON

	keys int // how many keys that are arrays or maps the value stands in
}

// room is what every token has ahead of it in buf: the longest number or constant, a quote, a colon or comma, and the 8 bytes that
// text may write too many.
const room = 48

// maxKeyDepth bounds keys in keys: each level escapes the quotes of the one below once more, which doubles their length.
const maxKeyDepth = 3

func (t *transcoder) grow(j, n int) []byte {
	t.buf = slices.Grow(t.buf[:j], n)
	t.buf = t.buf[:cap(t.buf)]
	return t.buf
}

// value writes the value at src[i:], which stands in depth containers.
func (t *transcoder) value(i, j, depth int) (int, int, error) {
	if len(t.buf)-j < room {
		t.grow(j, room)
	}
	tok, n, err := ReadToken(t.src[i:])
	if err != nil {
		return i, j, err
	}
	i += n
	switch tok.Kind {
	case Nil:
		return i, j + copy(t.buf[j:], "null"), nil
	case Bool:
		if tok.num != 0 {
			return i, j + copy(t.buf[j:], "true"), nil
		}
		return i, j + copy(t.buf[j:], "false"), nil
	case Int:
		return i, len(strconv.AppendInt(t.buf[:j], int64(tok.num), 10)), nil
	case Uint:
		return i, len(strconv.AppendUint(t.buf[:j], tok.num, 10)), nil
	case Float32:
		return i, len(appendFloat(t.buf[:j], tok.Float(), 32)), nil
	case Float64:
		return i, len(appendFloat(t.buf[:j], tok.Float(), 64)), nil
	case Str, Bin:
		if len(t.src)-i < tok.Len {
			return i, j, ErrShort
		}
		out := AppendJSONString(t.buf[:j], t.src[i:i+tok.Len])
		t.buf = out[:cap(out)]
		return i + tok.Len, len(out), nil
	case Ext:
		if len(t.src)-i < tok.Len {
			return i, j, ErrShort
		}
		data := t.src[i : i+tok.Len : i+tok.Len]
		out := t.buf[:j]
		if t.ext != nil {
			out = t.ext(out, tok.Ext, data)
		} else {
			out = append(out, `"ext:`...)
			out = strconv.AppendInt(out, int64(tok.Ext), 10)
			out = append(out, ':')
			out = base64.StdEncoding.AppendEncode(out, data)
			out = append(out, '"')
		}
		t.buf = out[:cap(out)]
		return i + tok.Len, len(out), nil
	}
	if depth == DefaultDepth {
		return i, j, fmt.Errorf("%w: limit %d", ErrDepth, DefaultDepth)
	}
	if tok.Kind == Array {
		return t.elements(i, j, tok.Len, depth+1)
	}
	t.buf[j] = '{'
	i, j, err = t.members(i, j+1, tok.Len, depth+1, nil, nil)
	if err != nil {
		return i, j, err
	}
	if len(t.buf) == j {
		t.grow(j, 1)
	}
	t.buf[j] = '}'
	return i, j + 1, nil
}

func (t *transcoder) elements(i, j, n, depth int) (int, int, error) {
	t.buf[j] = '['
	j++
	for k := range n {
		if k > 0 {
			t.put(j, ',')
			j++
		}
		var err error
		if i, j, err = t.value(i, j, depth); err != nil {
			return i, j, err
		}
	}
	t.put(j, ']')
	return i, j + 1, nil
}

func (t *transcoder) put(j int, c byte) {
	if len(t.buf) == j {
		t.grow(j, 1)
	}
	t.buf[j] = c
}

func (t *transcoder) members(i, j, n, depth int, reserved []string, raw []byte) (int, int, error) {
	for k := range n {
		if k > 0 {
			t.put(j, ',')
			j++
		}
		p := j
		var err error
		if i, j, err = t.key(i, j, depth); err != nil {
			return i, j, err
		}
		for _, r := range reserved {
			if string(t.buf[p+1:j-1]) == r {
				under := spare(raw, n, r, reserved)
				j--
				for range under {
					t.put(j, '_')
					j++
				}
				t.put(j, '"')
				j++
				break
			}
		}
		t.put(j, ':')
		j++
		if i, j, err = t.value(i, j, depth); err != nil {
			return i, j, err
		}
	}
	return i, j, nil
}

// spare returns how many underscores name needs to be no key of the map of n pairs in raw, and not reserved.
func spare(raw []byte, n int, name string, reserved []string) int {
	var used uint64
	mark := func(key string) {
		if len(key) >= len(name) && key[:len(name)] == name {
			for _, c := range key[len(name):] {
				if c != '_' {
					return
				}
			}
			used |= 1 << (len(key) - len(name))
		}
	}
	for _, r := range reserved {
		mark(r)
	}
	for range n {
		if p, _, _, err := ReadBytes(raw); err == nil {
			mark(string(p))
		}
		for range 2 {
			m, err := Skip(raw)
			if err != nil {
				return 1
			}
			raw = raw[m:]
		}
	}
	for k := 1; ; k++ {
		if used>>k&1 == 0 {
			return k
		}
	}
}

func (t *transcoder) key(i, j, depth int) (int, int, error) {
	tok, _, err := ReadToken(t.src[i:])
	if err != nil {
		return i, j, err
	}
	p := j
	switch tok.Kind {
	case Str, Bin, Ext:
	case Array, Map:
		if t.keys == maxKeyDepth {
			n, err := Skip(t.src[i:])
			if err != nil {
				return i, j, err
			}
			out := append(t.buf[:j], `"msgpack:`...)
			out = base64.StdEncoding.AppendEncode(out, t.src[i:i+n])
			out = append(out, '"')
			t.buf = out[:cap(out)]
			return i + n, len(out), nil
		}
		t.keys++
		defer func() { t.keys-- }()
	}
	if i, j, err = t.value(i, j, depth); err != nil {
		return i, j, err
	}
	if t.buf[p] == '"' {
		return i, j, nil
	}
	out := AppendJSONString(t.buf[:j], t.buf[p:j])
	t.buf = out[:cap(out)]
	return i, p + copy(t.buf[p:], out[j:]), nil
}

// AppendJSONPairs appends the members of the map at the start of src, as AppendJSON writes them but without the braces: nothing for an
// empty map. So a line can begin with members of its own, the names of which are reserved: a key of the map that equals one of them gets
// underscores appended, as many as make it neither reserved nor another key of the map. Reserved names are plain ASCII without quotes.
//
// The errors are those of AppendJSON, and ErrKind, wrapped, if src does not begin with a map.
func AppendJSONPairs(dst, src []byte, reserved []string, ext ExtJSON) (out []byte, n int, err error) {
	tok, i, err := ReadToken(src)
	if err != nil {
		return dst, 0, err
	}
	if tok.Kind != Map {
		return dst, 0, fmt.Errorf("%w: %v, not map", ErrKind, tok.Kind)
	}
	t := transcoder{buf: dst[:cap(dst)], src: src, ext: ext}
	i, j, err := t.members(i, len(dst), tok.Len, 1, reserved, src[i:])
	if err != nil {
		return dst, 0, err
	}
	return t.buf[:j], i, nil
}

func appendFloat(b []byte, f float64, bits int) []byte {
	a := math.Abs(f)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	if a == 0 || bits == 64 && a >= 1e-6 && a < 1e21 || bits == 32 && float32(a) >= 1e-6 && float32(a) < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, bits)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, bits)
	if n := len(b); b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

var _ = binary.BigEndian
