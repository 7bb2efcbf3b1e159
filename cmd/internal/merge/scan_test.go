// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// first is what field returns, by encoding/json.
func first(line []byte, key string) (json.RawMessage, bool) {
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, false
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil, false
		}
		if k == key {
			return v, true
		}
	}
	return nil, false
}

func FuzzField(f *testing.F) {
	for _, s := range []string{
		`{"time":"2026-11-21T02:03:04.5Z","a":1}`, `{}`, `[]`, `{"a":{"time":1,"b":["}\"",{}]},"time":2}`,
		`{"\u0074ime":3}`, ` { "time" : null , "time":1}`, `{"a":"\\","time":-1.5e3}`, `{"a":"time","b":tru`, `{"a\`,
		`{"a":[}`, `{"time":`, `{"time"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, ok := field(line, "time") // which must not panic, whatever the line is
		if !json.Valid(line) {
			return
		}
		if want, found := first(line, "time"); ok != found || !bytes.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q, %v", line, got, ok, want, found)
		}
	})
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{
		"2026-11-21T02:03:04.123456789Z", "2026-02-28T23:59:59Z", "2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z",
		"2026-11-21T02:03:04.5+09:00", "1970-01-01T00:00:00Z", "2199-12-28T00:00:00.1Z", "1969-12-31T23:59:59Z",
		"9999-01-01T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T02:03:04.Z", "2026-11-21T02:03:04.1234567890Z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ns, ok := parseUTC([]byte(s)); ok {
			if want, err := time.Parse(time.RFC3339Nano, s); err != nil || want.UnixNano() != ns {
				t.Errorf("%q: %d, want %v, %v", s, ns, want, err)
			}
		}
	})
}

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		value string
		want  int64
		ok    bool
	}{
		{`"1970-01-02T00:00:00.000000001Z"`, 86400e9 + 1, true},
		{`"1970-01-01T09:00:01+09:00"`, 1e9, true},
		{`"2024-02-29T00:00:00Z"`, 1709164800e9, true},
		{`"2023-02-29T00:00:00Z"`, 0, false},
		{`"9999-01-01T00:00:00Z"`, 0, false},
		{`1795226584.123456789`, 1795226584123456789, true},
		{`1.5e0`, 15e8, true},
		{`-1`, -1e9, true},
		{`1e300`, 0, false},
		{`null`, 0, false},
		{`""`, 0, false},
		{`{}`, 0, false},
	} {
		if got, ok := parseTime([]byte(c.value), &finder{zone: time.UTC}); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %v; want %d, %v", c.value, got, ok, c.want, c.ok)
		}
	}
	day := time.Date(1970, 1, 1, 12, 0, 0, 0, time.UTC)
	for ; day.Year() < 2200; day = day.AddDate(0, 0, 1) {
		if ns, ok := parseUTC([]byte(day.Format(time.RFC3339))); ok && ns != day.UnixNano() || !ok && day.Day() <= 28 {
			t.Fatalf("%v: %d, %v", day, ns, ok)
		}
	}
}
