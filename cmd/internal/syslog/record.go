// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

var facilities = [24]string{
	"kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
	"ntp", "security", "console", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
	"local7",
}

var severities = [8]string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}

// recordKeys are those that appendEntry gives a record, but for the one of the address: it would
// stand beside a sender's word if it were one of them.
var recordKeys = []string{
	"facility", "severity", "host", "app", "pid", "msgid", "data", "truncated", "message",
}

// appendEntry appends the event of a message. address is left out if it is empty.
func appendEntry(b []byte, m *message, received time.Time, cut bool, addressKey, address string) []byte {
	when := m.when
	if sec := when.Unix(); when.IsZero() || sec < 0 || sec > 1<<32-1 { // an EventTime has no others
		when = received
	}
	b = msgpack.AppendArrayHeader(b, 2)
	b = forward.AppendEventTime(b, when.Unix(), uint32(when.Nanosecond()))
	texts := [...]struct {
		key   string
		value []byte
	}{{"host", m.host}, {"app", m.app}, {"pid", m.pid}, {"msgid", m.id}}
	n := 3
	for i := range texts {
		if len(texts[i].value) > 0 {
			n++
		}
	}
	for _, is := range []bool{m.data != nil, cut, address != ""} {
		if is {
			n++
		}
	}
	b = msgpack.AppendMapHeader(b, n)
	b = msgpack.AppendString(msgpack.AppendString(b, "facility"), facilities[m.priority>>3])
	b = msgpack.AppendString(msgpack.AppendString(b, "severity"), severities[m.priority&7])
	for i := range texts {
		if len(texts[i].value) > 0 {
			b = appendBytes(msgpack.AppendString(b, texts[i].key), texts[i].value)
		}
	}
	if m.data != nil {
		b = appendData(msgpack.AppendString(b, "data"), m.data)
	}
	if cut {
		b = msgpack.AppendBool(msgpack.AppendString(b, "truncated"), true)
	}
	if address != "" {
		b = msgpack.AppendString(msgpack.AppendString(b, addressKey), address)
	}
	return appendBytes(msgpack.AppendString(b, "message"), m.text)
}

func appendBytes(b, text []byte) []byte {
	return append(msgpack.AppendStringHeader(b, len(text)), text...)
}

// appendData appends structured data as a map of maps. Of an element or a name that is there twice
// both stand in the map.
func appendData(b, data []byte) []byte {
	elements := 0
	for rest := data; len(rest) > 0; elements++ {
		rest = rest[element(rest, nil):]
	}
	b = msgpack.AppendMapHeader(b, elements)
	for rest := data; len(rest) > 0; {
		params := 0
		n := element(rest, func(_, name, _ []byte) {
			if name != nil {
				params++
			}
		})
		element(rest, func(id, name, value []byte) {
			if name == nil {
				b = msgpack.AppendMapHeader(appendBytes(b, id), params)
				return
			}
			b = appendValue(appendBytes(b, name), value)
		})
		rest = rest[n:]
	}
	return b
}

// appendValue appends a value without its escapes: \" \\ and \].
func appendValue(b, value []byte) []byte {
	if bytes.IndexByte(value, '\\') < 0 {
		return appendBytes(b, value)
	}
	plain := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		if c := value[i]; c == '\\' && i+1 < len(value) &&
			(value[i+1] == '"' || value[i+1] == '\\' || value[i+1] == ']') {
			i++
		}
		plain = append(plain, value[i])
	}
	return appendBytes(b, plain)
}

// A tagTemplate is a text with {facility}, {severity}, {host} and {app} in it.
type tagTemplate []tagPiece

type tagPiece struct{ text, field string }

func parseTag(text string) (t tagTemplate, err error) {
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if before != "" {
			t = append(t, tagPiece{text: before})
		}
		if !found {
			break
		}
		field, after, found := strings.Cut(rest, "}")
		switch {
		case !found:
			return nil, errors.New("a '{' without its '}'")
		case field != "facility" && field != "severity" && field != "host" && field != "app":
			return nil, fmt.Errorf("no placeholder {%s}; there are {facility}, {severity}, {host} and {app}", field)
		}
		t = append(t, tagPiece{field: field})
		text = after
	}
	return t, nil
}

// maxField is how many bytes of a field a tag gets.
const maxField = 64

func (t tagTemplate) append(b []byte, m *message) []byte {
	for i := range t {
		switch p := &t[i]; p.field {
		case "":
			b = append(b, p.text...)
		case "facility":
			b = append(b, facilities[m.priority>>3]...)
		case "severity":
			b = append(b, severities[m.priority&7]...)
		case "host":
			b = appendTagField(b, m.host)
		case "app":
			b = appendTagField(b, m.app)
		}
	}
	return b
}

// appendTagField appends what a sender says as one part of a tag: what is no letter, digit, '-' or
// '_' becomes '_', and nothing becomes "none".
func appendTagField(b, field []byte) []byte {
	if len(field) == 0 {
		return append(b, "none"...)
	}
	for _, c := range field[:min(len(field), maxField)] {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || isDigit(c) || c == '-' {
			b = append(b, c)
		} else {
			b = append(b, '_')
		}
	}
	return b
}
