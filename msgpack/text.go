// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// AppendJSONString appends s as a JSON string, quotes included. Quotes, backslashes and control
// characters are escaped, and so are U+2028 and U+2029, at which some readers of lines break them;
// each byte that is not part of UTF-8 becomes U+FFFD, written as any other rune is, so that the
// string is written in the same way again when it was read. HTML is not escaped. That is what
// encoding/json writes of valid UTF-8 with SetEscapeHTML(false).
//
// What follows the result in its capacity may have been overwritten.
func AppendJSONString(dst, s []byte) []byte {
	t := transcoder{buf: dst[:cap(dst)], src: s}
	j := t.text(0, len(dst), len(s))
	return t.buf[:j]
}

// Bytes that cannot be copied into a JSON string as they are: control characters, quote, backslash,
// and 0x80 and above, which may be UTF-8 or not. special looks at eight at once and sets the high
// bit of each such byte. A byte above one that is set may be set wrongly, by a borrow, so only the
// lowest counts.
//
// Flipping 0x02 swaps 20 with 22 and 21 with 23 and keeps 00-1f among themselves, so that one
// comparison with 21 finds both the control characters and the quote.
func special(w uint64) uint64 {
	const ones = 0x0101010101010101
	return (w | (w ^ 0x02*ones - 0x21*ones) | (w ^ '\\'*ones - ones)) & (0x80 * ones)
}

// text writes src[i:i+n] at j as a string. It makes its own room and leaves room behind.
func (t *transcoder) text(i, j, n int) int {
	buf, src := t.buf, t.src
	if len(buf)-j-room < n {
		buf = t.grow(j, n+room)
	}
	buf[j] = '"'
	j++
	end := i + n
	for ; i <= end-16; i += 16 {
		s, d := src[i:i+16], buf[j:j+16]
		v, w := binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[8:])
		if (special(v) | special(w)) != 0 {
			break
		}
		binary.LittleEndian.PutUint64(d, v)
		binary.LittleEndian.PutUint64(d[8:], w)
		j += 16
	}
	for ; i <= end-8; i += 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		binary.LittleEndian.PutUint64(buf[j:], w)
		if m := special(w); m != 0 {
			k := bits.TrailingZeros64(m) / 8
			return t.escape(i+k, j+k, end)
		}
		j += 8
	}
	// The rest is shorter than a word. Where src goes on behind it, a whole word is copied all the
	// same.
	if r := uint(end - i); len(src)-i >= 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		binary.LittleEndian.PutUint64(buf[j:], w)
		if m := special(w) & (1<<(8*r) - 1); m != 0 {
			k := bits.TrailingZeros64(m) / 8
			return t.escape(i+k, j+k, end)
		}
		j += int(r)
	} else {
		for ; i < end; i++ {
			if escapes[src[i]] != plain {
				return t.escape(i, j, end)
			}
			buf[j] = src[i]
			j++
		}
	}
	buf[j] = '"'
	return j + 1
}

// escape finishes a string: src[i:end] is what is left of it when something special stands at i.
func (t *transcoder) escape(i, j, end int) int {
	src, buf := t.src, t.buf
	for i < end {
		// What is left may be copied as it is without asking again. An escape takes up to 6 bytes
		// for one, so then there is a next turn.
		if len(buf)-j-room < end-i {
			if end-i >= exactLeast {
				buf = t.exactly(j, escapedLen(src[i:end])+room)
			} else {
				buf = t.grow(j, end-i+room)
			}
		}
		for end-i >= 8 {
			w := binary.LittleEndian.Uint64(src[i:])
			binary.LittleEndian.PutUint64(buf[j:], w)
			m := special(w)
			if m == 0 {
				i += 8
				j += 8
				continue
			}
			k := bits.TrailingZeros64(m) / 8
			i += k
			j += k
			if src[i] < utf8.RuneSelf {
				break
			}
			n := runes(buf[j:], src[i:end])
			if n == 0 {
				break
			}
			i += n
			j += n
		}
		if i == end {
			break
		}
		c := src[i]
		switch e := escapes[c]; {
		case e == plain:
			buf[j] = c
			i++
			j++
		case c >= utf8.RuneSelf:
			i, j = putRune(buf, j, src[:end], i)
		case e == long:
			j += copy(buf[j:], `\u00`)
			buf[j] = hexDigits[c>>4]
			buf[j+1] = hexDigits[c&15]
			i++
			j += 2
		default:
			buf[j] = '\\'
			buf[j+1] = e
			i++
			j += 2
		}
	}
	buf[j] = '"'
	return j + 1
}

// exactLeast is from what length on room is made for all of a string at once. A long one may become
// six times as long, and in making room step by step the old and the new would take that twice,
// with what lies between as garbage.
const exactLeast = 64 << 10

// exactly makes room for n bytes at j, and not much more.
func (t *transcoder) exactly(j, n int) []byte {
	b := make([]byte, j+n)
	copy(b, t.buf[:j])
	t.buf = b
	return b
}

// escapedLen is how long s becomes, with the quote behind it, and exactly.
func escapedLen(s []byte) int {
	n := 1
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			n += int(widths[c])
			i++
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			n += 3
		case r == 0x2028 || r == 0x2029:
			n += 6
		default:
			n += size
		}
		i += size
	}
	return n
}

// widths tells what a byte below 0x80 becomes.
var widths = func() (w [utf8.RuneSelf]uint8) {
	for c := range w {
		switch escapes[c] {
		case plain:
			w[c] = 1
		case long:
			w[c] = 6
		default:
			w[c] = 2
		}
	}
	return w
}()

// runes copies runes of two and three bytes, which most text that is not ASCII consists of, as long
// as one follows the other and as they are valid and need no escape. It leaves the last four bytes
// of src, and all that is out of the ordinary, to putRune.
func runes(dst, src []byte) (n int) {
	for n+4 <= min(len(src), len(dst)) {
		w := binary.LittleEndian.Uint32(src[n:])
		binary.LittleEndian.PutUint32(dst[n:], w)
		switch {
		case w&0xc0e0 == 0x80c0 && w&0x1e != 0: // c2-df 80-bf: c0 and c1 would be overlong
			n += 2
		case w&0xc0c0f0 == 0x8080e0 &&
			w&0x200f != 0 && // e0 80-9f would be overlong
			w&0x200f != 0x200d && // ed a0-bf are surrogates
			w&0xfeffff != 0xa880e2: // U+2028 and U+2029
			n += 3
		default:
			return n
		}
	}
	return n
}

// putRune writes the rune at s[i:], which begins with a byte of 0x80 or above.
func putRune(buf []byte, j int, s []byte, i int) (int, int) {
	r, n := utf8.DecodeRune(s[i:])
	switch {
	case r == utf8.RuneError && n == 1:
		j += copy(buf[j:], "\ufffd")
	case r == 0x2028 || r == 0x2029:
		j += copy(buf[j:], `\u202`)
		buf[j] = hexDigits[r&15]
		j++
	default:
		j += copy(buf[j:], s[i:i+n])
	}
	return i + n, j
}

const hexDigits = "0123456789abcdef"

// escapes tells how a JSON string holds a byte below 0x80: plain, long (\u00xx), or as a backslash
// before the letter given here.
var escapes = func() (t [256]uint8) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = plain
	}
	t['"'], t['\\'] = '"', '\\'
	t['\b'], t['\t'], t['\n'], t['\f'], t['\r'] = 'b', 't', 'n', 'f', 'r'
	return t
}()

const (
	long  = 0
	plain = 1
)
