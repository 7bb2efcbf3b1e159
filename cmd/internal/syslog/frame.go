// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"bytes"
	"sync/atomic"
)

// A framer finds the messages in a stream. A message that begins with a number, a space and a "<"
// is counted (RFC 6587), as "11 <13>message"; any other ends at a newline, or at a NUL, as the
// syslog function of the C library and Python's SysLogHandler write it. All may come on one
// connection.
type framer struct {
	maxMessage int // bytes of a message
	memory     *memory

	buf      []byte
	held     int  // bytes of the memory
	filled   bool // the last bytes took all the room there was
	seen     int  // so many of them end no line
	skipping bool // the rest of a line that was cut
	left     int  // bytes of a counted message that was cut, which are not kept
}

const (
	framerFirst = 4 << 10  // bytes of a framer's buffer at first, and while little comes
	framerLarge = 64 << 10 // and where much comes at once
)

// memory is what the framers of an input may take beyond the first bytes of each.
type memory struct {
	limit int64
	held  atomic.Int64
}

// take asks for n bytes more.
func (m *memory) take(n int) bool {
	if m.held.Add(int64(n)) <= m.limit {
		return true
	}
	m.held.Add(-int64(n))
	return false
}

// room returns where the next bytes go; took says how many there are.
func (f *framer) room() []byte {
	if f.buf == nil {
		f.buf = make([]byte, 0, framerFirst)
	}
	return f.buf[len(f.buf):cap(f.buf)]
}

func (f *framer) took(n int) {
	f.filled = len(f.buf)+n == cap(f.buf)
	f.buf = f.buf[:len(f.buf)+n]
}

// grow makes the buffer twice as large, if there is memory for it.
func (f *framer) grow() bool {
	n := cap(f.buf)
	if !f.memory.take(n) {
		return false
	}
	f.held += n
	f.buf = append(make([]byte, 0, 2*n), f.buf...)
	return true
}

// free gives back all memory but that of the first bytes.
func (f *framer) free() {
	f.memory.take(-f.held)
	f.buf, f.held = nil, 0
}

// each calls one for each whole message. cut says that the message was longer, or that there is no
// memory for more of it. What one gets is valid until it returns. Afterwards there is room.
func (f *framer) each(one func(message []byte, cut bool)) {
	b, seen := f.buf, f.seen
	ends := ends{b: f.buf, newline: -1}
	f.seen = 0
	for ; len(b) > 0; seen = 0 {
		switch {
		case f.left > 0:
			n := min(f.left, len(b))
			f.left -= n
			b = b[n:]
			continue
		case f.skipping:
			end := ends.next(len(f.buf)-len(b), len(f.buf))
			if f.skipping = end < 0; f.skipping {
				b = nil
				continue
			}
			b = f.buf[end+1:]
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
			want := min(count, f.maxMessage)
			if len(b)-head < want {
				break
			}
			one(b[head:head+want], want < count)
			f.left = count - want
			b = b[head+want:]
			continue
		}
		from := len(f.buf) - len(b)
		end := ends.next(from+seen, min(len(f.buf), from+f.maxMessage+1)) - from
		if end < 0 && len(b) <= f.maxMessage {
			f.seen = len(b) // a line may come in many pieces
			break
		}
		if end >= 0 {
			one(b[:end], false)
			b = b[end+1:]
		} else {
			one(b[:f.maxMessage], true)
			b, f.skipping = b[f.maxMessage:], true
		}
	}
	came := len(f.buf)
	if len(b) < came {
		f.buf = f.buf[:copy(f.buf, b)]
	}
	switch {
	case len(f.buf) == cap(f.buf):
		if !f.grow() {
			f.giveUp(one)
		}
	case f.filled && cap(f.buf) < framerLarge:
		f.grow()
	case f.held > 0 && len(f.buf) == 0 && came < framerFirst:
		f.free()
	}
}

// giveUp cuts the message that fills the buffer.
func (f *framer) giveUp(one func(message []byte, cut bool)) {
	count, head, _ := octets(f.buf)
	one(f.buf[head:], true)
	if head > 0 {
		f.left = count - (len(f.buf) - head)
	} else {
		f.skipping = true
	}
	f.buf, f.seen = f.buf[:0], 0
}

// ends finds where lines end. A newline that was found is remembered: where lines end with NULs, it
// would else be looked for behind each of them.
type ends struct {
	b       []byte
	newline int // the next one, len(b) if there is none; -1: not looked for yet
}

// next returns where in b[from:to] a line ends, or a negative number if none does.
func (e *ends) next(from, to int) int {
	if e.newline < from {
		e.newline = bytes.IndexByte(e.b[from:], '\n')
		if e.newline += from; e.newline < from {
			e.newline = len(e.b)
		}
	}
	if nul := bytes.IndexByte(e.b[from:min(to, e.newline)], 0); nul >= 0 {
		return from + nul
	}
	if e.newline < to {
		return e.newline
	}
	return -1
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
		one(b[:min(len(b), f.maxMessage)], head > 0 || len(b) > f.maxMessage)
	}
	f.buf, f.seen = f.buf[:0], 0
}

// maxDigits is how many a count of octets may have.
const maxDigits = 9

// octets reads a count and the space behind it, which a "<" follows. head is how long both are, 0
// if that is not what b begins with. decided is false while more bytes can tell.
func octets(b []byte) (count, head int, decided bool) {
	for i, c := range b {
		switch {
		case isDigit(c) && i < maxDigits && (i > 0 || c != '0'):
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
