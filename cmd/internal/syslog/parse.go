// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"bytes"
	"time"
)

// A message is what was understood of one. Its slices alias the bytes that were parsed.
type message struct {
	priority int // facility*8 + severity
	known    bool
	when     time.Time // zero: it does not say
	host     []byte
	app      []byte
	pid      []byte
	id       []byte
	data     []byte // structured data: its elements, in brackets
	text     []byte
}

// defaultPriority is user.notice, which RFC 3164 gives to what says none.
const defaultPriority = 13

// parse understands a message of RFC 5424, or of RFC 3164 as it is really sent. What it does not
// understand is text: nothing is refused. now and zone are for times without a year or a zone.
func parse(b []byte, now time.Time, zone *time.Location) (m message) {
	b = bytes.TrimRight(b, "\r\n\x00")
	m.priority = defaultPriority
	if p, n := priority(b); n > 0 {
		m.priority, m.known = p, true
		b = b[n:]
		if len(b) > 1 && b[0] == '1' && b[1] == ' ' && m.modern(b[2:]) {
			return m
		}
	}
	m.legacy(b, now, zone)
	return m
}

// priority reads <0> to <191>. n is 0 if there is none.
func priority(b []byte) (p, n int) {
	if len(b) < 3 || b[0] != '<' {
		return 0, 0
	}
	for i := 1; i < len(b) && i < 5; i++ {
		switch c := b[i]; {
		case c == '>' && i > 1 && p <= 191:
			return p, i + 1
		case c < '0' || c > '9' || i == 4:
			return 0, 0
		default:
			p = 10*p + int(c-'0')
		}
	}
	return 0, 0
}

// modern reads what RFC 5424 has behind its version. Some senders leave structured data out, or the
// "-" that stands for none. It reports false, and leaves m as it was, if that is something else.
func (m *message) modern(b []byte) bool {
	var head [5][]byte // time, host, app, process, message id
	for i := range head {
		end := bytes.IndexByte(b, ' ')
		if end <= 0 {
			return false
		}
		head[i], b = b[:end], b[end+1:]
	}
	var when time.Time
	if !isNil(head[0]) {
		var err error
		if when, err = time.Parse(time.RFC3339Nano, string(head[0])); err != nil {
			return false
		}
	}
	n := structured(b)
	switch {
	case n > 0 && (n == len(b) || b[n] == ' '):
		if b[0] == '[' {
			m.data = b[:n]
		}
		b = b[min(n+1, len(b)):]
	case len(b) > 0 && b[0] == '[':
		return false
	}
	m.when = when
	m.host, m.app, m.pid, m.id = orNil(head[1]), orNil(head[2]), orNil(head[3]), orNil(head[4])
	m.text = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	return true
}

func isNil(b []byte) bool { return len(b) == 1 && b[0] == '-' }

func orNil(b []byte) []byte {
	if isNil(b) {
		return nil
	}
	return b
}

// structured returns how long structured data is: "-", or elements in brackets; 0 if it is neither.
func structured(b []byte) (n int) {
	if len(b) > 0 && b[0] == '-' {
		return 1
	}
	for n < len(b) && b[n] == '[' {
		end := element(b[n:], nil)
		if end == 0 {
			return 0
		}
		n += end
	}
	return n
}

// element reads [id name="value" …] and calls param for each value, in which escapes still stand.
// It returns how long the element is, 0 if it is none.
func element(b []byte, param func(id, name, value []byte)) int {
	i := name(b, 1)
	if i == 1 {
		return 0
	}
	id := b[1:i]
	if param != nil {
		param(id, nil, nil)
	}
	for i < len(b) && b[i] == ' ' {
		start := i + 1
		if i = name(b, start); i == start || i+1 >= len(b) || b[i] != '=' || b[i+1] != '"' {
			return 0
		}
		key, from := b[start:i], i+2
		for i = from; i < len(b) && b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		if i >= len(b) {
			return 0
		}
		if param != nil {
			param(id, key, b[from:i])
		}
		i++
	}
	if i >= len(b) || b[i] != ']' {
		return 0
	}
	return i + 1
}

// name returns where a name of structured data that begins at i ends.
func name(b []byte, i int) int {
	for i < len(b) && b[i] > ' ' && b[i] < 0x7f && b[i] != '=' && b[i] != ']' && b[i] != '"' {
		i++
	}
	return i
}

// legacy reads what RFC 3164 describes and what is sent in its name: a time in one of many forms,
// perhaps a host, perhaps a program and its process.
func (m *message) legacy(b []byte, now time.Time, zone *time.Location) {
	when, n := stamp(b, now, zone)
	rest := b
	if n == 0 {
		rest, m.host = preamble(b)
		if when, n = stamp(rest, now, zone); n == 0 {
			m.host = nil
			if !m.known || !m.program(b) || !isNumber(m.pid) || len(m.pid) == 0 { // "Error: text" is no program
				m.app, m.pid, m.text = nil, nil, b
			}
			return
		}
	}
	m.when = when
	b = bytes.TrimLeft(rest[n:], " ")
	if m.program(b) {
		return
	}
	end := bytes.IndexByte(b, ' ')
	if end <= 0 || m.host != nil {
		m.text = b
		return
	}
	m.host = b[:end]
	b = bytes.TrimPrefix(b[end+1:], []byte(": ")) // firewalls write "fw1 : %ASA-6-…"
	if !m.program(b) {
		m.text = b
	}
}

// maxPreamble is how long one word of a preamble may be.
const maxPreamble = 64

// preamble skips what routers and switches write before the time, as in "45: router1: 000123: *Nov
// 24": a number, perhaps a host and another number, or nothing, each with a colon. A "*" or a "."
// says that the clock is not set.
func preamble(b []byte) (rest, host []byte) {
	rest = b
	for i := range 3 {
		end := bytes.IndexByte(rest[:min(len(rest), maxPreamble)], ':')
		if end < 0 || end+1 >= len(rest) || rest[end+1] != ' ' {
			break
		}
		if word := rest[:end]; !isNumber(word) {
			if i == 0 || bytes.IndexByte(word, ' ') >= 0 {
				break
			}
			host = word
		}
		rest = rest[end+2:]
	}
	if len(rest) > 0 && (rest[0] == '*' || rest[0] == '.') {
		rest = rest[1:]
	}
	return rest, host
}

func isNumber(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

// maxProgram is how long the name of a program may be.
const maxProgram = 128

// program reads "app: text" and "app[123]: text".
func (m *message) program(b []byte) bool {
	i := 0
	for i < len(b) && i <= maxProgram && b[i] > ' ' && b[i] != ':' && b[i] != '[' {
		i++
	}
	if i == 0 || i >= len(b) || i > maxProgram {
		return false
	}
	app, rest := b[:i], b[i:]
	var pid []byte
	if rest[0] == '[' {
		end := bytes.IndexByte(rest, ']')
		if end < 0 || bytes.IndexByte(rest[:end], ' ') >= 0 {
			return false
		}
		pid, rest = rest[1:end], rest[end+1:]
	}
	if len(rest) == 0 || rest[0] != ':' || len(rest) > 1 && rest[1] != ' ' && rest[1] != '\t' {
		return false
	}
	m.app, m.pid = app, pid
	m.text = bytes.TrimPrefix(rest[1:], []byte(" "))
	return true
}
