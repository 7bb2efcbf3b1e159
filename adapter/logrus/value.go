// SPDX-License-Identifier: Apache-2.0

package spillwaylogrus

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// value appends a value as logrus.JSONFormatter does: an error is its text, all else is what
// encoding/json makes of it.
func (f *Formatter) value(b []byte, v any) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return f.appendString(b, x)
	case bool:
		return strconv.AppendBool(b, x)
	case int:
		return strconv.AppendInt(b, int64(x), 10)
	case int8:
		return strconv.AppendInt(b, int64(x), 10)
	case int16:
		return strconv.AppendInt(b, int64(x), 10)
	case int32:
		return strconv.AppendInt(b, int64(x), 10)
	case int64:
		return strconv.AppendInt(b, x, 10)
	case time.Duration:
		return strconv.AppendInt(b, int64(x), 10)
	case uint:
		return strconv.AppendUint(b, uint64(x), 10)
	case uint8:
		return strconv.AppendUint(b, uint64(x), 10)
	case uint16:
		return strconv.AppendUint(b, uint64(x), 10)
	case uint32:
		return strconv.AppendUint(b, uint64(x), 10)
	case uint64:
		return strconv.AppendUint(b, x, 10)
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return appendFloat(b, x, 64)
		}
	case float32:
		if x := float64(x); !math.IsNaN(x) && !math.IsInf(x, 0) {
			return appendFloat(b, x, 32)
		}
	case time.Time:
		if y := x.Year(); y >= 0 && y <= 9999 {
			if _, offset := x.Zone(); offset%60 == 0 && offset > -24*3600 && offset < 24*3600 {
				return append(x.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
			}
		}
	case []byte:
		if x == nil {
			return append(b, "null"...)
		}
		return append(base64.StdEncoding.AppendEncode(append(b, '"'), x), '"')
	}
	return f.slow(b, v)
}

// slow appends what has methods, or parts.
func (f *Formatter) slow(b []byte, v any) (out []byte) {
	defer func() {
		if r := recover(); r != nil {
			out = f.appendString(b, fmt.Sprintf("!PANIC: %v", r))
		}
	}()
	if err, ok := v.(error); ok {
		return f.appendString(b, err.Error())
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(!f.DisableHTMLEscape)
	if err := enc.Encode(v); err != nil {
		return f.appendString(b, "!ERROR: "+err.Error())
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte{'\n'})...)
}

// appendFloat appends a float as encoding/json does: as ES6 writes numbers.
func appendFloat(b []byte, x float64, bits int) []byte {
	format := byte('f')
	if abs := math.Abs(x); abs != 0 {
		if bits == 64 && (abs < 1e-6 || abs >= 1e21) || bits == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21) {
			format = 'e'
		}
	}
	b = strconv.AppendFloat(b, x, format, -1, bits)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && (b[n-3] == '-' || b[n-3] == '+') && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 to e-9
		b = b[:n-1]
	}
	return b
}

// plain are the bytes that stand in a string as they are; those of html only with
// DisableHTMLEscape.
var plain, plainHTML = func() (plain, html [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		html[c] = c != '"' && c != '\\'
		plain[c] = html[c] && c != '<' && c != '>' && c != '&'
	}
	return plain, html
}()

const hex = "0123456789abcdef"

// appendString appends a string as encoding/json does.
func (f *Formatter) appendString(b []byte, s string) []byte {
	safe := &plain
	if f.DisableHTMLEscape {
		safe = &plainHTML
	}
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if safe[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				b = append(append(b, s[start:i]...), `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				b = append(append(b, s[start:i]...), `\u202`...)
				b = append(b, hex[r&0xf])
			default:
				i += size
				continue
			}
			i += size
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
