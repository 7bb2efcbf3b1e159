// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/msgpack"
)

// AppendLogfmt appends the record of a line of logfmt, which has no newline: pairs such as
// took=12ms and msg="order placed", with blanks between them. Values stay text; a word without an
// equals sign is true. A line without any pair is text, and so is one with a quotation mark that
// is never closed. The first value of each key that can be read as the time, or the tag, is taken
// out.
func (r *Reader) AppendLogfmt(dst, line []byte) ([]byte, Event) {
	var e Event
	b, rest := append(dst, 0), line
	n, pairs := 0, 0
	for {
		rest = bytes.TrimLeft(rest, " \t\r")
		if len(rest) == 0 {
			break
		}
		end := bytes.IndexAny(rest, "= \t\r\"")
		if end == 0 {
			return r.AppendText(dst, line), Event{}
		}
		if end < 0 {
			end = len(rest)
		}
		pair, word := len(b), rest[:end]
		b = append(msgpack.AppendStringHeader(b, end), word...)
		at := len(b)
		if rest = rest[end:]; len(rest) == 0 || rest[0] != '=' {
			if string(word) == r.options.Drop {
				b = b[:pair]
				continue
			}
			b = msgpack.AppendBool(b, true)
			n++
			continue
		}
		value, behind, ok := logfmtValue(rest[1:])
		if !ok {
			return r.AppendText(dst, line), Event{}
		}
		rest = behind
		b = append(msgpack.AppendStringHeader(b, len(value)), value...)
		n, pairs = n+1, pairs+1
		if r.envelope(&e, b[pair:at], value, b[at:]) {
			b, n = b[:pair], n-1
		}
	}
	if pairs == 0 {
		return r.AppendText(dst, line), Event{}
	}
	return mapHeader(b, len(dst), n), e
}

// logfmtValue reads a value, quoted or up to the next blank. What a quoted one has escaped is as in
// Go.
func logfmtValue(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		if end := bytes.IndexAny(b, " \t\r"); end >= 0 {
			return b[:end], b[end:], true
		}
		return b, nil, true
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			raw := b[1:i]
			if bytes.IndexByte(raw, '\\') >= 0 {
				raw = unquoted(raw)
			}
			return raw, b[i+1:], true
		}
	}
	return nil, nil, false
}

// unquoted undoes the escapes that it knows, and leaves all else as it is: bytes that are no UTF-8,
// too.
func unquoted(b []byte) []byte {
	var out []byte
	text := string(b)
	for {
		plain, escape, found := strings.Cut(text, `\`)
		out = append(out, plain...)
		if !found {
			return out
		}
		text = text[len(plain):]
		c, multibyte, tail, err := strconv.UnquoteChar(text, '"')
		if err != nil {
			out, text = append(out, '\\'), escape
			continue
		}
		if c < utf8.RuneSelf || !multibyte {
			out = append(out, byte(c))
		} else {
			out = utf8.AppendRune(out, c)
		}
		text = tail
	}
}
