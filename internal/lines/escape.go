// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

const ones = 0x0101010101010101

// hidden sets the high bit of each byte that is a control or beyond ASCII, of eight at once. A byte
// above one that is set may be set wrongly, by a borrow, so that only the lowest counts.
func hidden(w uint64) uint64 {
	return (w | (w - 0x20*ones) | (w ^ 0x7f*ones - ones)) & (0x80 * ones)
}

// visible returns how many bytes at the start of s are printable ASCII.
func visible(s []byte) int {
	i := 0
	for ; i+32 <= len(s); i += 32 { // four words, so that there is one branch for all
		b := s[i : i+32 : i+32]
		w0, w1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		w2, w3 := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		if hidden(w0)|hidden(w1)|hidden(w2)|hidden(w3) != 0 {
			break
		}
	}
	for ; i+8 <= len(s); i += 8 {
		if m := hidden(binary.LittleEndian.Uint64(s[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return i
		}
	}
	return i
}

const lowerHex = "0123456789abcdef"

// AppendEscaped appends text as a line of text has it outside of quotes: so that it neither ends
// the line nor does anything to a terminal.
func AppendEscaped(dst, text []byte) []byte { return appendEscaped(dst, text, false) }

// appendEscaped appends text so that it neither ends the line nor does anything to a terminal. In
// quotes, quotes and backslashes are escaped too.
func appendEscaped(dst []byte, s []byte, quoted bool) []byte {
	if len(s) >= exactLeast {
		dst = roomFor(dst, s)
	}
	for len(s) > 0 {
		n := visible(s)
		if quoted {
			for i := range n {
				if s[i] == '"' || s[i] == '\\' {
					n = i
					break
				}
			}
		}
		dst = append(dst, s[:n]...)
		s = s[n:]
		if len(s) == 0 {
			break
		}
		c := s[0]
		size := 1
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < utf8.RuneSelf:
			dst = append(dst, '\\', 'x', lowerHex[c>>4], lowerHex[c&15])
		default:
			dst, size = appendRune(dst, s)
		}
		s = s[size:]
	}
	return dst
}

// exactLeast is from what length on room is made for all of a text at once: it may become four
// times as long, and in making room step by step the old and the new would take that twice.
const exactLeast = 64 << 10

// roomFor makes room for what a text becomes at most, if there is less.
func roomFor(dst, s []byte) []byte {
	n := exactLeast // the rest of the line
	for _, c := range s {
		switch {
		case c < ' ' && c != '\n' && c != '\r' && c != '\t', c == 0x7f:
			n += 4
		case c < ' ', c == '"', c == '\\':
			n += 2
		default:
			n++
		}
	}
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}

// appendRune appends what is beyond ASCII at the start of s.
func appendRune(dst []byte, s []byte) (_ []byte, size int) {
	r, size := utf8.DecodeRune(s)
	switch {
	case r == utf8.RuneError && size == 1:
		dst = append(dst, '\\', 'x', lowerHex[s[0]>>4], lowerHex[s[0]&15])
	case isHidden(r):
		dst = append(dst, '\\', 'u', lowerHex[r>>12&15], lowerHex[r>>8&15], lowerHex[r>>4&15], lowerHex[r&15])
	default:
		dst = append(dst, s[:size]...)
	}
	return dst, size
}

// IsHidden reports whether a character ends a line, turns the direction of writing, or does
// something else to a terminal.
func IsHidden(r rune) bool { return r < ' ' || r >= 0x7f && isHidden(r) }

// isHidden reports whether r beyond ASCII is a control, ends a line, or turns the direction of
// writing.
func isHidden(r rune) bool {
	switch {
	case r < 0xa0, r == 0x061c, r == 0x200e, r == 0x200f, 0x2028 <= r && r <= 0x202e, 0x2066 <= r &&
		r <= 0x2069, r == 0xfeff:
		return true
	}
	return false
}

// appendWord appends text as one word: as it is, or in quotes where it holds what is hidden, a
// space or one of ="\, begins like a list or, inside one, would end an element.
func appendWord(dst []byte, s []byte, inside bool) []byte {
	if isWord(s, inside) {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	dst = appendEscaped(dst, s, true)
	return append(dst, '"')
}

func isWord(s []byte, inside bool) bool {
	if len(s) == 0 || s[0] == '[' || s[0] == '{' {
		return false
	}
	ends := byte(2)
	if inside {
		ends = 1
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf {
			return beyond(s[i:], ends)
		} else if words[c] >= ends {
			return false
		}
	}
	return true
}

// beyond is isWord for what is not ASCII only.
func beyond(s []byte, ends byte) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if words[c] >= ends {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && size == 1 || isHidden(r) {
			return false
		}
		i += size
	}
	return true
}

// words says of each ASCII byte whether it may stand in a word: 0 everywhere, 1 but in lists, 2
// nowhere.
var words = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		if c <= ' ' || c == 0x7f {
			t[c] = 2
		}
	}
	t['='], t['"'], t['\\'] = 2, 2, 2
	t[','], t[']'], t['}'] = 1, 1, 1
	return t
}()

// Shortened is a text of at most so many bytes, without what is no UTF-8.
func Shortened(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}
