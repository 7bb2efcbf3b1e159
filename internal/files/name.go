// SPDX-License-Identifier: Apache-2.0

package files

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// maxName is the longest name of a file or directory, in bytes.
const maxName = 255

// minName is how many bytes a tag gets at least: a few letters, and the hash of one that is too
// long.
const minName = 48

const upperHex = "0123456789ABCDEF"

// appendName appends text as a part of a file name, in at most limit bytes. Different texts give
// different parts:
//
//   - Letters, digits, "_", "=", "+", "@", "," stay, and so does what is beyond ASCII, if it is
//     valid UTF-8 and neither a control nor one that turns the direction of writing.
//   - A dot stays between two others that are no dots, a minus everywhere but at the start.
//   - Every other byte becomes "%" and two upper-case hex digits: separators, controls, quotes,
//     spaces, "%" itself.
//   - So does the first letter of a name that Windows keeps for devices ("con", "nul.x", "com1").
//   - So does, if stamps is false, the first digit of what looks like the stamp of a rotated file:
//     a tag must not name one, which would be compressed and deleted.
//   - The empty text becomes "%".
//   - What would be longer than limit is cut and ends in "~" and 32 hex digits of its SHA-256.
func appendName(dst []byte, text string, limit int, stamps bool) []byte {
	if text == "" {
		return append(dst, '%')
	}
	start := len(dst)
	cut := 0 // where the text ends if it is too long
	escapeFirst := text[0] == '-' || isDevice(text)
	for i := 0; i < len(text); {
		if len(dst)-start <= limit-hashName {
			cut = len(dst)
		}
		size := 1
		c := text[i]
		switch {
		case i == 0 && escapeFirst, !stamps && isDigit(c) && len(dst) > 0 && dst[len(dst)-1] == '-' &&
			isStamp(text[i:]):
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_=+@,", c) >= 0,
			c == '.' && 0 < i && i < len(text)-1 && text[i-1] != '.':
			dst = append(dst, c)
		case c >= utf8.RuneSelf:
			var r rune
			if r, size = utf8.DecodeRuneInString(text[i:]); size > 1 && !isControl(r) {
				dst = append(dst, text[i:i+size]...)
				break
			}
			fallthrough
		default:
			for k := range size {
				c := text[i+k]
				dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
			}
		}
		i += size
	}
	if len(dst)-start <= limit {
		return dst
	}
	sum := sha256.Sum256([]byte(text))
	return hex.AppendEncode(append(dst[:cut], '~'), sum[:16])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isStamp reports whether text begins like the time in the name of a rotated file.
func isStamp(text string) bool {
	if len(text) < len(stampLayout) {
		return false
	}
	for i := range len(stampLayout) {
		if c := stampLayout[i]; isDigit(c) != isDigit(text[i]) || !isDigit(c) && c != text[i] {
			return false
		}
	}
	return true
}

// hashName is the length of the tilde and the hash.
const hashName = 33

// isControl reports whether r beyond ASCII is a control, a separator of lines, or turns the
// direction of writing. The list is written out: with the tables of package unicode a new Go
// release could rename files.
func isControl(r rune) bool {
	switch {
	case r < 0xa0, r == 0x061c, r == 0x200e, r == 0x200f, 0x2028 <= r && r <= 0x202e, 0x2066 <= r &&
		r <= 0x2069, r == 0xfeff:
		return true
	}
	return false
}

// isDevice reports whether Windows takes a file of that name for a device, whatever follows the
// first dot.
func isDevice(text string) bool {
	name, _, _ := strings.Cut(text, ".")
	if len(name) < 3 || len(name) > 4 {
		return false
	}
	name = strings.ToLower(name)
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (name[:3] == "com" || name[:3] == "lpt") && '0' <= name[3] && name[3] <= '9'
}
