// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrJSON says that a text is not JSON.
var ErrJSON = errors.New("msgpack: not JSON")

// AppendFromJSONText appends the JSON value at the start of src as MessagePack, and tells how many
// bytes of src it takes, with the spaces before it. What it appends is what AppendFromJSON does
// with UseNumber; it is several times as fast, and allocates nothing but the room of what it
// appends.
//
// The error wraps ErrShort if src ends before the value does, ErrJSON if there is none, or
// ErrDepth. Then out is dst, and n is where it stopped.
func AppendFromJSONText(dst, src []byte) (out []byte, n int, err error) {
	r := textReader{src: src}
	out, err = r.value(dst, 0)
	if err != nil {
		return dst, r.i, fmt.Errorf("%w at byte %d", err, r.i)
	}
	return out, r.i, nil
}

// AppendFromJSONMember appends a member of an object at the start of src, key, colon and value: the
// key as a str, and behind it the value, which begins at out[value]. from and n are where the
// value's text begins and ends in src. What stands before and behind the member, such as commas, is
// the caller's. Errors are those of AppendFromJSONText.
func AppendFromJSONMember(dst, src []byte) (out []byte, value, from, n int, err error) {
	r := textReader{src: src}
	if out, err = r.key(dst); err == nil {
		r.next()
		value, from = len(out), r.i
		out, err = r.value(out, 1) // the object is a level
	}
	if err != nil {
		return dst, 0, 0, r.i, fmt.Errorf("%w at byte %d", err, r.i)
	}
	return out, value, from, r.i, nil
}

// A textReader is where in a text the reading is. Its methods append what they read.
type textReader struct {
	src []byte
	i   int
}

// next skips spaces and returns the byte behind them, 0 at the end.
func (r *textReader) next() byte {
	for r.i < len(r.src) {
		switch c := r.src[r.i]; c {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return c
		}
	}
	return 0
}

// wrong is the error of a byte that should not be here.
func (r *textReader) wrong() error {
	if r.i >= len(r.src) {
		return ErrShort
	}
	return ErrJSON
}

func (r *textReader) value(b []byte, depth int) ([]byte, error) {
	switch c := r.next(); c {
	case '"':
		return r.str(b)
	case '{', '[':
		return r.container(b, c, depth)
	case 't':
		return append(b, 0xc3), r.word("true")
	case 'f':
		return append(b, 0xc2), r.word("false")
	case 'n':
		return append(b, 0xc0), r.word("null")
	}
	return r.number(b)
}

func (r *textReader) word(w string) error {
	for k := range len(w) {
		if r.i >= len(r.src) || r.src[r.i] != w[k] {
			return r.wrong()
		}
		r.i++
	}
	return nil
}

// container is appendContainer for text.
func (r *textReader) container(b []byte, open byte, depth int) ([]byte, error) {
	if depth == DefaultDepth {
		return b, errDepth()
	}
	start := len(b)
	b = append(b, 0)
	end := open + 2 // in ASCII, for both
	r.i++
	n := 0
	for c := r.next(); c != end; n++ {
		var err error
		if n > 0 {
			if c != ',' {
				return b, r.wrong()
			}
			r.i++
		}
		if open == '{' {
			if b, err = r.key(b); err != nil {
				return b, err
			}
		}
		if b, err = r.value(b, depth+1); err != nil {
			return b, err
		}
		c = r.next()
	}
	r.i++
	var h [5]byte
	if open == '{' {
		return prefixed(b, start, 1, AppendMapHeader(h[:0], n)), nil
	}
	return prefixed(b, start, 1, AppendArrayHeader(h[:0], n)), nil
}

// key reads a key and the colon behind it.
func (r *textReader) key(b []byte) ([]byte, error) {
	if r.next() != '"' {
		return b, r.wrong()
	}
	b, err := r.str(b)
	if err != nil {
		return b, err
	}
	if r.next() != ':' {
		return b, r.wrong()
	}
	r.i++
	return b, nil
}

const (
	each = 0x0101010101010101
	high = 0x80 * each
)

// ends returns where a string has to be looked at: at a quote, a backslash or a control character;
// ascii tells if nothing before is beyond ASCII. At the end it is len(s).
func ends(s []byte) (n int, ascii bool) {
	ascii = true
	for ; n+8 <= len(s); n += 8 {
		x := binary.LittleEndian.Uint64(s[n:])
		low := x &^ high
		// The high bit of each byte that is below 0x20, a quote or a backslash; nothing is borrowed
		// from the next byte.
		found := ^(low + 0x60*each) & high
		found |= ^((low ^ '"'*each) + 0x7f*each) & high
		found |= ^((low ^ '\\'*each) + 0x7f*each) & high
		found &^= x // beyond ASCII none of these is meant
		if found != 0 {
			k := bits.TrailingZeros64(found) / 8
			if x&high&(1<<(8*k)-1) != 0 {
				ascii = false
			}
			return n + k, ascii
		}
		if x&high != 0 {
			ascii = false
		}
	}
	for ; n < len(s); n++ {
		switch c := s[n]; {
		case c < 0x20 || c == '"' || c == '\\':
			return n, ascii
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return n, ascii
}

// str reads a string.
func (r *textReader) str(b []byte) ([]byte, error) {
	s := r.src[r.i+1:]
	n, ascii := ends(s)
	if n == len(s) {
		r.i = len(r.src)
		return b, ErrShort
	}
	if s[n] == '"' && (ascii || utf8.Valid(s[:n])) {
		r.i += n + 2
		return append(AppendStringHeader(b, n), s[:n]...), nil
	}
	return r.escaped(b)
}

// escaped reads a string in which something stands for something else. The header's room is that of
// a long one.
func (r *textReader) escaped(b []byte) ([]byte, error) {
	const room = 5
	start := len(b)
	b = append(b, 0, 0, 0, 0, 0)
	r.i++
	for {
		n, ascii := ends(r.src[r.i:])
		part := r.src[r.i : r.i+n]
		r.i += n
		if ascii || utf8.Valid(part) {
			b = append(b, part...)
		} else {
			b = appendRepaired(b, part)
		}
		if r.i >= len(r.src) {
			return b, ErrShort
		}
		switch r.src[r.i] {
		case '"':
			r.i++
			var h [5]byte
			return prefixed(b, start, room, AppendStringHeader(h[:0], len(b)-start-room)), nil
		case '\\':
			var err error
			if b, err = r.escape(b); err != nil {
				return b, err
			}
		default:
			return b, ErrJSON
		}
	}
}

// appendRepaired appends s with U+FFFD for each byte that is not part of UTF-8.
func appendRepaired(b, s []byte) []byte {
	for len(s) > 0 {
		c, n := utf8.DecodeRune(s)
		b = utf8.AppendRune(b, c)
		s = s[n:]
	}
	return b
}

func (r *textReader) escape(b []byte) ([]byte, error) {
	if r.i++; r.i >= len(r.src) {
		return b, ErrShort
	}
	c := r.src[r.i]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		u, err := r.hex(r.i + 1)
		if err != nil {
			return b, err
		}
		r.i += 5
		if utf16.IsSurrogate(u) {
			u = r.pair(u)
		}
		return utf8.AppendRune(b, u), nil
	default:
		return b, ErrJSON
	}
	r.i++
	return append(b, c), nil
}

// pair returns the rune of a surrogate and of the one that may follow; half a pair is U+FFFD.
func (r *textReader) pair(first rune) rune {
	if r.i+1 < len(r.src) && r.src[r.i] == '\\' && r.src[r.i+1] == 'u' {
		if second, err := r.hex(r.i + 2); err == nil {
			if u := utf16.DecodeRune(first, second); u != utf8.RuneError {
				r.i += 6
				return u
			}
		}
	}
	return utf8.RuneError
}

// hex reads the four digits at i.
func (r *textReader) hex(i int) (u rune, err error) {
	for k := i; k < i+4; k++ {
		if k >= len(r.src) {
			return 0, ErrShort
		}
		c := rune(r.src[k])
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, ErrJSON
		}
		u = u<<4 | c
	}
	return u, nil
}

// number reads a number: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (r *textReader) number(b []byte) ([]byte, error) {
	start := r.i
	negative := r.i < len(r.src) && r.src[r.i] == '-'
	if negative {
		r.i++
	}
	first := r.i
	var v uint64
	if first < len(r.src) && r.src[first] == '0' {
		r.i++ // no digit follows it
	} else if v = r.digits(); r.i == first {
		return b, r.wrong()
	}
	n := r.i - first
	whole := true
	if r.i < len(r.src) && r.src[r.i] == '.' {
		whole = false
		r.i++
		if at := r.i; r.digits() == 0 && r.i == at {
			return b, r.wrong()
		}
	}
	if r.i < len(r.src) && r.src[r.i]|0x20 == 'e' {
		whole = false
		r.i++
		if r.i < len(r.src) && (r.src[r.i] == '+' || r.src[r.i] == '-') {
			r.i++
		}
		if at := r.i; r.digits() == 0 && r.i == at {
			return b, r.wrong()
		}
	}
	switch {
	case !whole || negative && v == 0:
		return appendDecimal(b, string(r.src[start:r.i])), nil
	case n > 18:
		return appendNumber(b, string(r.src[start:r.i])), nil
	case negative:
		return AppendInt(b, -int64(v)), nil
	}
	return AppendUint(b, v), nil
}

// digits reads digits; their value is right if they are at most 19.
func (r *textReader) digits() (v uint64) {
	for r.i < len(r.src) && r.src[r.i]-'0' <= 9 {
		v = v*10 + uint64(r.src[r.i]-'0')
		r.i++
	}
	return v
}
