// SPDX-License-Identifier: Apache-2.0

package msgpack

import "unicode/utf8"

const hex = "0123456789abcdef"

// AppendJSONString appends s as a JSON string, quotes included. Quotes, backslashes and control characters are escaped, and so are
// U+2028 and U+2029, at which some readers of lines break them; each byte that is not part of UTF-8 becomes \ufffd. HTML is not
// escaped. That is what encoding/json writes with SetEscapeHTML(false).
func AppendJSONString(dst, s []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRune(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				dst = append(dst, `\ufffd`...)
			case r == 0x2028 || r == 0x2029:
				dst = append(dst, `\u202`...)
				dst = append(dst, hex[r&15])
			default:
				dst = append(dst, s[i:i+n]...)
			}
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}
