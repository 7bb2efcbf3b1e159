// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

func mustReader(tb testing.TB, o *ReadOptions) *Reader {
	tb.Helper()
	r, err := NewReader(o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestOtherLoggers: what they write by default keeps its time, and the name of the logger can be
// the tag.
func TestOtherLoggers(t *testing.T) {
	for _, tt := range []struct {
		name, key, format, tag string
		line                   string
		nsec                   uint32
		wantTag, rest          string
	}{
		{"zap", "ts", "unix", "logger", `{"level":"info","ts":1795226584.1234567,"logger":"shop.web","caller":"web/main.go:12","msg":"order placed","id":42}`, 123456700, "shop.web", `{"level":"info","caller":"web/main.go:12","msg":"order placed","id":42}`},
		{
			"zerolog", "time", "", "", `{"level":"info","id":42,"time":"2026-11-21T02:03:04Z","message":"order placed"}`,
			0, "", `{"level":"info","id":42,"message":"order placed"}`,
		},
		{
			"zerolog unix", "time", "unix", "", `{"level":"info","time":1795226584,"message":"order placed"}`, 0, "",
			`{"level":"info","message":"order placed"}`,
		},
		{
			"zerolog unix ms", "time", "unix_ms", "", `{"level":"info","time":1795226584123,"message":"order placed"}`,
			123000000, "", `{"level":"info","message":"order placed"}`,
		},
		{
			"logrus", "time", "", "", `{"id":42,"level":"info","msg":"order placed","time":"2026-11-21T03:03:04+01:00"}`,
			0, "", `{"id":42,"level":"info","msg":"order placed"}`,
		},
		{"slog", "time", "", "", `{"time":"2026-11-21T03:03:04.123456789+01:00","level":"INFO","msg":"order placed","id":42}`, 123456789, "", `{"level":"INFO","msg":"order placed","id":42}`},
		{"pino", "time", "unix_ms", "name", `{"level":30,"time":1795226584123,"pid":7,"hostname":"h","name":"shop","msg":"order placed"}`, 123000000, "shop", `{"level":30,"pid":7,"hostname":"h","msg":"order placed"}`},
		{"bunyan", "time", "", "name", `{"name":"shop","hostname":"h","pid":7,"level":30,"msg":"order placed","time":"2026-11-21T02:03:04.123Z","v":0}`, 123000000, "shop", `{"hostname":"h","pid":7,"level":30,"msg":"order placed","v":0}`},
		{"winston", "timestamp", "", "", `{"level":"info","message":"order placed","timestamp":"2026-11-21T02:03:04.123Z"}`, 123000000, "", `{"level":"info","message":"order placed"}`},
		{
			"structlog", "timestamp", "", "logger",
			`{"event": "order placed", "logger": "shop", "timestamp": "2026-11-21T02:03:04.123456Z"}`, 123456000,
			"shop", `{"event":"order placed"}`,
		},
		{
			"a Java double", "timestamp", "unix", "", `{"timestamp":1.795226584123E9,"msg":"order placed"}`, 123000000,
			"",
			`{"msg":"order placed"}`,
		},
		{
			"nginx $msec", "msec", "unix", "", `{"msec":"1795226584.123","status":"200"}`, 123000000, "",
			`{"status":"200"}`,
		},
		{
			"a container's file", "time", "", "",
			`{"log":"order placed\n","stream":"stdout","time":"2026-11-21T02:03:04.123456789Z"}`, 123456789, "",
			`{"log":"order placed\n","stream":"stdout"}`,
		},
		{"Spillway", "time", "", "tag", `{"time":"2026-11-21T02:03:04.123456789Z","tag":"app.web","level":"INFO","time_":1}`, 123456789, "app.web", `{"level":"INFO","time_":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := mustReader(t, &ReadOptions{Time: tt.key, TimeFormat: tt.format, Tag: tt.tag})
			entry, e := r.AppendEntry(nil, []byte(tt.line), time.Unix(1, 2))
			entries := forward.ReadEntries(entry)
			got, ok := entries.Next()
			if !ok || len(got.Raw) != len(entry) {
				t.Fatalf("%x: %v", entry, entries.Err())
			}
			if got.Sec != testSec || got.Nsec != tt.nsec || e.Time != FindingSaid {
				t.Errorf("%d.%09d, want %d.%09d", got.Sec, got.Nsec, testSec, tt.nsec)
			}
			if string(e.Tag) != tt.wantTag || (e.Tagged == FindingSaid) != (tt.tag != "") {
				t.Errorf("tag %q, %d", e.Tag, e.Tagged)
			}
			if text, _, err := msgpack.AppendJSON(nil, got.Record, nil); string(text) != tt.rest {
				t.Errorf("%s, %v, want %s", text, err, tt.rest)
			}
		})
	}
}

func TestReader(t *testing.T) {
	deep := func(levels int) string {
		return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}"
	}
	many := func(n int) string {
		members := make([]string, n)
		for i := range members {
			members[i] = `"` + strings.Repeat("k", i+1) + `":1`
		}
		return strings.Join(members, ",")
	}
	long := strings.Repeat("x", 128<<10)
	for _, tt := range []struct {
		o          ReadOptions
		line, want string // "": text
		time, tag  Finding
	}{
		{line: `{}`, want: `{}`},
		{line: ` {"b":1 , "a":2,"b":3}` + "\r\n", want: `{"b":1,"a":2,"b":3}`},
		{line: `{"a":"` + long + `"}`, want: `{"a":"` + long + `"}`},
		{line: `{` + many(15) + `}`, want: `{` + many(15) + `}`},
		{line: `{` + many(16) + `}`, want: `{` + many(16) + `}`},
		{line: `{` + many(70) + `}`, want: `{` + many(70) + `}`},
		{line: ``},
		{line: ` `},
		{line: `{`},
		{line: `}`},
		{line: `{"a":1`},
		{line: `{"a":1}}`},
		{line: `{"a":1}{}`},
		{line: `{"a" 1}`},
		{line: `{1:2}`},
		{line: `{a}`},
		{line: `[{}]`},
		{line: `{"a":1]}`},
		{line: deep(128), want: deep(128)},
		{line: deep(129)},
		{o: ReadOptions{Depth: 100}, line: deep(100), want: deep(100)},
		{o: ReadOptions{Depth: 100}, line: deep(101)},
		{o: ReadOptions{Depth: 1}, line: `{"a":1}`, want: `{"a":1}`},
		{o: ReadOptions{Depth: 1}, line: `{"a":{}}`},
		{o: ReadOptions{Time: "t"}, line: `{"time":"2026-11-21T02:03:04Z"}`, want: `{"time":"2026-11-21T02:03:04Z"}`},
		{
			o: ReadOptions{Time: "t"}, line: `{"a":{"t":"2026-11-21T02:03:04Z"}}`,
			want: `{"a":{"t":"2026-11-21T02:03:04Z"}}`,
		},
		{
			o: ReadOptions{Time: "t"}, line: `{"t":1,"t":"2026-11-21T02:03:04Z","t":"2026-11-21T02:03:05Z"}`,
			want: `{"t":1,"t":"2026-11-21T02:03:05Z"}`, time: FindingSaid,
		},
		{o: ReadOptions{Time: "t"}, line: `{"t":"2026-11-21T02:03:04Z"}}`},
		{o: ReadOptions{Time: Omit, Tag: Omit}, line: `{"-":1}`, want: `{"-":1}`},
		{
			o: ReadOptions{Time: "t", TimeFormat: "unix", EventTime: true}, line: `{"t":-1}`, want: `{"t":-1}`,
			time: FindingUnreadable,
		},
		{
			o: ReadOptions{Time: "t", TimeFormat: "unix", EventTime: true}, line: `{"t":4294967296}`,
			want: `{"t":4294967296}`, time: FindingUnreadable,
		},
		{
			o: ReadOptions{Time: "t", TimeFormat: "unix", EventTime: true}, line: `{"t":4294967295.5}`, want: `{}`,
			time: FindingSaid,
		},
		{o: ReadOptions{Tag: "g"}, line: `{"g":""}`, want: `{}`, tag: FindingSaid},
		{o: ReadOptions{Tag: "g", NamedTag: true}, line: `{"g":""}`, want: `{"g":""}`, tag: FindingUnreadable},
		{o: ReadOptions{Tag: "g", NamedTag: true}, line: `{"g":"","g":"x"}`, want: `{"g":""}`, tag: FindingSaid},
		{o: ReadOptions{Tag: "g"}, line: `{"g":5}`, want: `{"g":5}`, tag: FindingUnreadable},
		{
			o: ReadOptions{Tag: "g"}, line: `{"g":"` + strings.Repeat("x", forward.MaxTag) + `"}`, want: `{}`,
			tag: FindingSaid,
		},
		{
			o: ReadOptions{Tag: "g"}, line: `{"g":"` + strings.Repeat("x", forward.MaxTag+1) + `"}`,
			want: `{"g":"` + strings.Repeat("x", forward.MaxTag+1) + `"}`, tag: FindingUnreadable,
		},
	} {
		r := mustReader(t, &tt.o)
		for range 2 { // whatever came before, the next line is read
			got, e := r.AppendRecord([]byte("before"), []byte(tt.line))
			want := tt.want
			if want == "" {
				b, err := json.Marshal(map[string]string{"message": tt.line})
				if err != nil {
					t.Fatal(err)
				}
				want = string(b)
			}
			text, n, err := msgpack.AppendJSON(nil, bytes.TrimPrefix(got, []byte("before")), nil)
			if err != nil || n != len(got)-6 || string(text) != want || e.Time != tt.time || e.Tagged != tt.tag {
				t.Errorf("%.100s: %.200s, %+v, %v, want %.200s", tt.line, text, e, err, want)
			}
			if got, _ := r.AppendRecord(nil, []byte(`{"next":1}`)); string(got) != string(record("next", 1)) {
				t.Errorf("after %.100s: %q", tt.line, got)
			}
		}
	}
	if got, _ := mustReader(t, &ReadOptions{Text: "line"}).AppendRecord(nil,
		[]byte("a\xff")); string(got) != string(record("line", "a\xff")) {
		t.Errorf("%q", got)
	}
	for _, o := range []ReadOptions{{Time: "a", Tag: "a"}, {TimeFormat: "never"}} {
		if _, err := NewReader(&o); !errors.Is(err, ErrKey) && !errors.Is(err, ErrTimeFormat) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// FuzzReader wants a whole record of any line, the same whatever was read before, and nothing of an
// object lost.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"time":"2026-11-21T02:03:04Z","tag":"a","x":[1,{"y":null}]}`), []byte(`{"a":1}}`))
	f.Add([]byte(`{"time":1e9,"tag":{},"time":"-1.000000000"}`), []byte(`{"a":`))
	f.Add([]byte("text \xff"), []byte(` { } `))
	f.Add([]byte(strings.Repeat(`{"a":`, 129)+strings.Repeat("}", 129)), []byte(`{"a":1}{"b":2}`))
	used := mustReader(f, &ReadOptions{Time: "time", Tag: "tag"})
	f.Fuzz(func(t *testing.T, line, before []byte) {
		fresh := mustReader(t, &ReadOptions{Time: "time", Tag: "tag"})
		entry, e := fresh.AppendEntry(nil, line, time.Unix(testSec, 0))
		used.AppendEntry(nil, before, time.Unix(testSec, 0))
		again, f := used.AppendEntry(nil, line, time.Unix(testSec, 0))
		if !bytes.Equal(entry, again) || e.Time != f.Time || e.Tagged != f.Tagged || !bytes.Equal(e.Tag, f.Tag) {
			t.Fatalf("%x, %+v, after another line %x, %+v", entry, e, again, f)
		}
		entries := forward.ReadEntries(entry)
		got, ok := entries.Next()
		if !ok || len(got.Raw) != len(entry) {
			t.Fatalf("%x: %v", entry, entries.Err())
		}
		whole, _ := new(Reader).AppendRecord(nil, line)
		all, _, err := msgpack.ReadToken(whole)
		if err != nil {
			t.Fatal(err)
		}
		kept, _, err := msgpack.ReadToken(got.Record)
		if err != nil {
			t.Fatal(err)
		}
		taken := 0
		for _, said := range []Finding{e.Time, e.Tagged} {
			if said == FindingSaid {
				taken++
			}
		}
		if kept.Len+taken != all.Len {
			t.Fatalf("%d members, %d taken, %d kept", all.Len, taken, kept.Len)
		}
		if exact := isEventTime(e.Sec) || e.Nsec == 0; e.Time == FindingSaid && exact &&
			(got.Sec != e.Sec || got.Nsec != e.Nsec) {
			t.Fatalf("said %d.%09d, got %d.%09d", e.Sec, e.Nsec, got.Sec, got.Nsec)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for _, bb := range []struct {
		name, line string
		o          ReadOptions
	}{
		{
			"object", `{"level":"info","msg":"order placed","id":184467,"path":"/api/v1/orders/184467/items","took":0.25}`,
			ReadOptions{},
		},
		{"nested", `{"level":"info","user":{"name":"ada","roles":["a","b","c"]},"id":184467}`, ReadOptions{}},
		{"text", "192.0.2.1 - - GET /api/v1/orders/184467/items HTTP/1.1 200 5316", ReadOptions{}},
		{
			"rfc3339", `{"time":"2026-11-21T02:03:04.123456789Z","tag":"app.web","msg":"order placed","id":184467}`,
			ReadOptions{Time: "time", Tag: "tag"},
		},
		{
			"unix", `{"ts":1795226584.1234567,"msg":"order placed","id":184467}`,
			ReadOptions{Time: "ts", TimeFormat: "unix"},
		},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := mustReader(b, &bb.o)
			line := []byte(bb.line)
			now := time.Now()
			var dst []byte
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = r.AppendEntry(dst[:0], line, now)
			}
		})
	}
}
