// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	oracle "github.com/leodido/go-syslog/v4"
	"github.com/leodido/go-syslog/v4/rfc3164"
	"github.com/leodido/go-syslog/v4/rfc5424"
)

// textOf is what an oracle found, or nothing.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// wantBase compares what was understood with what an oracle has.
func wantBase(t *testing.T, b []byte, m *message, want *oracle.Base) {
	t.Helper()
	if want.Priority == nil || m.priority != int(*want.Priority) {
		t.Errorf("%q: priority %d", b, m.priority)
	}
	if want.Timestamp != nil && !m.when.Equal(*want.Timestamp) || want.Timestamp == nil && !m.when.IsZero() {
		t.Errorf("%q: time %v, want %v", b, m.when, want.Timestamp)
	}
	for _, f := range []struct {
		name string
		got  []byte
		want *string
	}{
		{"host", m.host, want.Hostname},
		{"app", m.app, want.Appname},
		{"pid", m.pid, want.ProcID},
		{"msgid", m.id, want.MsgID},
	} {
		if string(f.got) != textOf(f.want) {
			t.Errorf("%q: %s is %q, want %q", b, f.name, f.got, textOf(f.want))
		}
	}
	if text := strings.TrimRight(strings.TrimPrefix(textOf(want.Message), "\xef\xbb\xbf"),
		"\r\n\x00"); string(m.text) != text {
		t.Errorf("%q: text %q, want %q", b, m.text, text)
	}
}

// FuzzOracle5424: what go-syslog takes for RFC 5424 is the same here.
func FuzzOracle5424(f *testing.F) {
	for _, s := range []string{
		`<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - 'su root' failed`,
		"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - \xef\xbb\xbf%% time",
		`<0>1 - - - - - [a x="1" y="q\"b\\\]"][b@32473] text`, `<1>1 - - - - - -`,
		`<191>1 2003-10-11T22:14:15Z - - - - [a] `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		parsed, err := rfc5424.NewParser().Parse(b)
		if err != nil {
			return
		}
		want, ok := parsed.(*rfc5424.SyslogMessage)
		if !ok || want.Version != 1 {
			return
		}
		m := parse(b, time.Now(), time.UTC)
		wantBase(t, b, &m, &want.Base)
		got := map[string]map[string]string{}
		for rest := m.data; len(rest) > 0; {
			n := element(rest, func(id, name, value []byte) {
				if name == nil {
					got[string(id)] = map[string]string{}
					return
				}
				plain := appendValue(nil, value)
				got[string(id)][string(name)] = string(plain[len(plain)-len(unescaped(value)):])
			})
			rest = rest[n:]
		}
		if want.StructuredData == nil && len(got) > 0 || want.StructuredData != nil &&
			!maps.EqualFunc(got, *want.StructuredData, maps.Equal[map[string]string]) {
			t.Errorf("%q: data %v, want %v", b, got, want.StructuredData)
		}
	})
}

// unescaped is a value as RFC 5424 says it.
func unescaped(value []byte) []byte {
	return []byte(strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\]`, `]`).Replace(string(value)))
}

// common3164 is what RFC 3164 describes, with all its parts. Of what lacks one, or has one half,
// go-syslog makes something, too, and something else.
var common3164 = regexp.MustCompile(`^<\d{1,3}>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ [\w./-]+(\[\w+\])?: .*[^\s\x00]`)

// FuzzOracle3164: what go-syslog takes for RFC 3164, with a host and a program, is the same here.
func FuzzOracle3164(f *testing.F) {
	f.Add([]byte("<34>Oct 11 22:14:15 mymachine su: 'su root' failed"))
	f.Add([]byte("<13>Nov  4 22:14:15 h app[123]: text"))
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, b []byte) {
		m := parse(b, now, time.UTC)
		parsed, err := rfc3164.NewParser(rfc3164.WithYear(rfc3164.Year{YYYY: m.when.Year()})).Parse(b)
		if err != nil {
			return
		}
		want, ok := parsed.(*rfc3164.SyslogMessage)
		if !ok || !common3164.Match(b) {
			return
		}
		wantBase(t, b, &m, &want.Base)
	})
}
