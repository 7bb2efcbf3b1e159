// SPDX-License-Identifier: Apache-2.0

package syslog

import "bytes"

// A framer finds the messages in a stream. A message that begins with a number, a space and a "<"
// is counted (RFC 6587), as "11 <13>message"; any other ends at a newline. Both may come on one
// connection.
type framer struct {
	most int // bytes of a message

	buf      []byte
	seen     int  // so many of them have no newline
	skipping bool // the rest of a line that was cut
	left     int  // bytes of a counted message that was cut, which are not kept
}

// feed adds bytes.
func (f *framer) feed(b []byte) { f.buf = append(f.buf, b...) }

// each calls one for each whole message. cut says that the message was longer. What one gets is
// valid until it returns.
func (f *framer) each(one func(message []byte, cut bool)) {
	b, seen := f.buf, f.seen
	f.seen = 0
	for ; len(b) > 0; seen = 0 {
		switch {
		case f.left > 0:
			n := min(f.left, len(b))
			f.left -= n
			b = b[n:]
			continue
		case f.skipping:
			end := bytes.IndexByte(b, '\n')
			if f.skipping = end < 0; f.skipping {
				end = len(b) - 1
			}
			b = b[end+1:]
			continue
		case b[0] == '\n' || b[0] == '\r' || b[0] == 0: // between messages
			b = b[1:]
			continue
		}
		count, head, decided := octets(b)
		if !decided {
			break
		}
		if head > 0 {
			want := min(count, f.most)
			if len(b)-head < want {
				break
			}
			one(b[head:head+want], want < count)
			f.left = count - want
			b = b[head+want:]
			continue
		}
		end := bytes.IndexByte(b[seen:min(len(b), f.most+1)], '\n')
		if end < 0 && len(b) <= f.most {
			f.seen = len(b) // a line may come in many pieces
			break
		}
		if end >= 0 {
			end += seen
			one(b[:end], false)
			b = b[end+1:]
		} else {
			one(b[:f.most], true)
			b, f.skipping = b[f.most:], true
		}
	}
	if len(b) < len(f.buf) {
		f.buf = f.buf[:copy(f.buf, b)]
	}
}

// last calls one for what is left at the end of the stream: a line without its newline, or a part
// of a counted message, which is cut.
func (f *framer) last(one func(message []byte, cut bool)) {
	b := f.buf
	if len(b) == 0 {
		return
	}
	_, head, _ := octets(b)
	if b = b[head:]; len(b) > 0 && !f.skipping && f.left == 0 {
		one(b[:min(len(b), f.most)], head > 0 || len(b) > f.most)
	}
	f.buf, f.seen = f.buf[:0], 0
}

// mostDigits is how many a count of octets may have.
const mostDigits = 9

// octets reads a count and the space behind it, which a "<" follows. head is how long both are, 0
// if that is not what b begins with. decided is false while more bytes can tell.
func octets(b []byte) (count, head int, decided bool) {
	for i, c := range b {
		switch {
		case isDigit(c) && i < mostDigits && (i > 0 || c != '0'):
			count = 10*count + int(c-'0')
		case c == ' ' && count > 0 && i+1 < len(b):
			if b[i+1] != '<' {
				return 0, 0, true
			}
			return count, i + 1, true
		case c == ' ' && count > 0:
			return 0, 0, false
		default:
			return 0, 0, true
		}
	}
	return 0, 0, false
}
