// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

func TestLogfmt(t *testing.T) {
	r := mustReader(t, &ReadOptions{Time: "ts", Tag: "app"})
	for _, tt := range []struct{ line, want string }{
		{`level=info msg="order placed" id=42`, `{"level":"info","msg":"order placed","id":"42"}`},
		{`a= b="" c`, `{"a":"","b":"","c":true}`},
		{"\tq=\"a \\\"b\\\" \\n \\x41 \\u00e9 \\q\"  ", `{"q":"a \"b\" \n A é \\q"}`},
		{`ts=2026-11-21T02:03:04Z app=web a=1`, `{"a":"1"}`},
		{`ts=yesterday a=1`, `{"ts":"yesterday","a":"1"}`},
		{`app=web`, `{}`},
		{`just words`, `{"message":"just words"}`},
		{``, `{"message":""}`},
		{`=1`, `{"message":"=1"}`},
		{`"quoted" a=1`, `{"message":"\"quoted\" a=1"}`},
		{`a="never closed`, `{"message":"a=\"never closed"}`},
	} {
		b, _ := r.AppendLogfmt([]byte("x"), []byte(tt.line))
		got, n, err := msgpack.AppendJSON(nil, b[1:], nil)
		if err != nil || n != len(b)-1 || string(got) != tt.want {
			t.Errorf("%q: %s, %v, want %s", tt.line, got, err, tt.want)
		}
	}
	// Bytes that are no UTF-8 stay what they are, also beside an escape.
	for in, want := range map[string]string{
		"a=\xff": "\xff", "a=\"\xff \"": "\xff ",
		"a=\"\xff\\n\xfe\\\"\xc3\"": "\xff\n\xfe\"\xc3", `a="\xff\377"`: "\xff\xff",
		"a=\"\\\xff\"": "\\\xff", "a=\"\x00\\t\u00e9\"": "\x00\té",
	} {
		b, _ := r.AppendLogfmt(nil, []byte(in))
		text, _, n, err := msgpack.ReadBytes(b[3:]) // behind a map of one and its key
		if err != nil || n != len(b)-3 || string(text) != want {
			t.Errorf("%q: %q, %v, want %q", in, text, err, want)
		}
	}
	entry, e := r.AppendEntryAs(FormatLogfmt, nil, []byte(`ts=2026-11-21T02:03:04.5Z app=web a=1`),
		time.Unix(testSec, 0))
	entries := forward.ReadEntries(entry)
	got, ok := entries.Next()
	if want := time.Date(2026, 11, 21, 2, 3, 4, 5e8, time.UTC); !ok || got.Sec != want.Unix() || got.Nsec != 5e8 ||
		string(e.Tag) != "web" {
		t.Errorf("%+v, %+v", got, e)
	}
}

// FuzzLogfmt: any line is a whole record, and its text is in it where it is no logfmt.
func FuzzLogfmt(f *testing.F) {
	f.Add([]byte(`ts=2026-11-21T02:03:04Z app="w\"eb" a= b`))
	f.Add([]byte(`a="\`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r := mustReader(t, &ReadOptions{Time: "ts", Tag: "app"})
		entry, _ := r.AppendEntryAs(FormatLogfmt, nil, line, time.Unix(testSec, 0))
		entries := forward.ReadEntries(entry)
		if got, ok := entries.Next(); !ok || len(got.Raw) != len(entry) {
			t.Fatalf("%x: %v", entry, entries.Err())
		}
	})
}
