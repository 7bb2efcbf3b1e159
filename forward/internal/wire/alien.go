// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strings"
)

const (
	textLeast = 4 // bytes of text with the end of a line that are taken for text
	maxText   = 8 // and without it
)

// A signature is how a protocol begins.
type signature struct {
	name, start string
	mask        string // where it has a dot any byte may stand; empty: nowhere
}

var signatures = func() (all []signature) {
	for v := range 5 {
		all = append(all, signature{name: "TLS", start: "\x16\x03" + string(rune(v))})
	}
	for _, method := range strings.Fields("GET HEAD POST PUT PATCH DELETE OPTIONS CONNECT TRACE PRI") {
		all = append(all, signature{name: "HTTP", start: method + " "})
	}
	for _, s := range []string{"1W\x00", "2W\x00", "2J\x00", "2C\x00"} {
		all = append(all, signature{name: "Beats (Lumberjack)", start: s})
	}
	return append(all, []signature{
		{name: "SSH", start: "SSH-"},
		{name: "the header of the PROXY protocol", start: "PROXY "},
		{name: "the header of the PROXY protocol", start: "\r\n\r\n\x00"},
		{name: "SMTP", start: "EHLO "},
		{name: "SMTP", start: "HELO "},
		{name: "AMQP", start: "AMQP\x00"},
		{name: "MQTT", start: "\x10?\x00\x04MQTT", mask: " ."},
		{name: "PostgreSQL", start: "\x00\x00\x00\x08\x04\xd2\x16\x2f"},
		{name: "RDP", start: "\x03\x00\x00"},
	}...)
}()

// match tells whether b begins as s does, and whether it might when more of it comes.
func (s *signature) match(b []byte) (yes, perhaps bool) {
	for i := range min(len(b), len(s.start)) {
		if b[i] != s.start[i] && (i >= len(s.mask) || s.mask[i] != '.') {
			return false, false
		}
	}
	return len(b) >= len(s.start), len(b) < len(s.start)
}

// Alien names the protocol of the first bytes of a connection, empty if it is Forward or not known.
// more: it cannot be said yet.
func Alien(b []byte) (name string, more bool) {
	if len(b) == 0 {
		return "", true
	}
	for i := range signatures {
		yes, perhaps := signatures[i].match(b)
		if yes {
			return signatures[i].name, false
		}
		more = more || perhaps
	}
	if b[0] == '{' || b[0] == '[' { // docs/forward.md rule 43
		return "", false
	}
	name, wait := Text(b)
	return name, name == "" && (more || wait)
}

// Text tells syslog and other text from Forward.
func Text(b []byte) (name string, more bool) {
	n := 0
	for n < min(len(b), 2*maxText) && (b[n] >= ' ' && b[n] <= '~' || b[n] == '\t' || b[n] == '\r' || b[n] == '\n') {
		n++
	}
	line := bytes.IndexByte(b[:n], '\n') >= 0
	if n < maxText && (n < textLeast || !line) {
		return "", n == len(b)
	}
	head := b[:n]
	if digits := bytes.TrimLeft(head, "0123456789"); len(digits) < len(head) && bytes.HasPrefix(digits, []byte(" <")) {
		return "syslog, with lengths", false
	}
	if rest := bytes.TrimLeft(head[1:], "0123456789"); head[0] == '<' && len(rest) < len(head)-1 &&
		bytes.HasPrefix(rest, []byte(">")) {
		return "syslog", false
	}
	return "text", false
}
