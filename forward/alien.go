// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
)

// How this file is organised. Who speaks another protocol by mistake sends what looks like values
// that are no messages, and these are ignored (docs/forward.md rule 6): both ends would wait for
// ever. So alien looks at the first bytes of a connection. It says what they are, or that more are
// needed to know; what comes first of a message, a heartbeat, or any value that is no small number
// in the range of text, is known to be Forward by its first byte.

const (
	textLeast = 4  // bytes of text with the end of a line that are taken for text
	textMost  = 8  // and without it
	oddFirst  = 16 // values that are no messages, at the beginning of a connection
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

// alien names the protocol of the first bytes of a connection, empty if it is Forward or not known.
// more: it cannot be said yet.
func alien(b []byte) (name string, more bool) {
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
	name, wait := text(b)
	return name, name == "" && (more || wait)
}

// text tells syslog and other text from Forward.
func text(b []byte) (name string, more bool) {
	n := 0
	for n < min(len(b), 2*textMost) && (b[n] >= ' ' && b[n] <= '~' || b[n] == '\t' || b[n] == '\r' || b[n] == '\n') {
		n++
	}
	line := bytes.IndexByte(b[:n], '\n') >= 0
	if n < textMost && (n < textLeast || !line) {
		return "", n == len(b)
	}
	head := b[:n]
	if digits := bytes.TrimLeft(head, "0123456789"); len(digits) < len(head) && bytes.HasPrefix(digits, []byte(" <")) {
		return "syslog, with lengths", false
	}
	if rest := bytes.TrimLeft(head[1:], "0123456789"); head[0] == '<' && len(rest) < len(head)-1 && bytes.HasPrefix(rest, []byte(">")) {
		return "syslog", false
	}
	return "text", false
}

// alienError says what a peer seems to speak, and with what it began.
func alienError(name string, b []byte, instead string) error {
	if len(b) > 0 {
		name = fmt.Sprintf("%s, it begins with %q", name, b[:min(len(b), 16)])
	}
	return faultf(OtherProtocol, "this looks like %s%s", name, instead)
}

// meet looks at the first bytes of a connection. wait: there are too few yet.
func (c *conn) meet() (wait bool, err error) {
	b := c.buf.b[c.r:c.w]
	name, more := alien(b)
	switch {
	case name == "TLS":
		return false, alienError(name, b, ": this listener takes plain Forward, one for TLS is forward+tls://")
	case name != "":
		return false, alienError(name, b, "")
	}
	c.seen = !more
	return more, nil
}

// notTLS says what a peer speaks that should speak TLS; nil: something like TLS.
func notTLS(err error) error {
	var head tls.RecordHeaderError
	if !errors.As(err, &head) || head.Conn == nil {
		return nil
	}
	b := head.RecordHeader[:]
	name, _ := alien(b)
	switch {
	case name != "" && name != "TLS":
	case isArray(b[0]), b[0] == codeNil, b[0] == '{', b[0] == '[':
		return alienError("plain Forward", b, ": this listener takes TLS, the sender is to use forward+tls://")
	default:
		if name, _ = text(append(b[:len(b):len(b)], '\n')); name == "" {
			return nil
		}
	}
	return alienError(name, b, ": this listener takes TLS")
}

// notPing says what came in place of a PING; nil: nothing that is known.
func notPing(b []byte) error {
	if len(b) > 0 && isArray(b[0]) {
		if t, _, err := opens(b, "PING"); err != nil && t == 0 {
			return fmt.Errorf("an event came in its place: this listener wants a shared key, and the sender has none")
		}
		return nil
	}
	if name, _ := alien(b); name != "" {
		return alienError(name, b, "")
	}
	return nil
}
