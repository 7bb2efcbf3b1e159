// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// record builds a map of string keys; a value that is a []byte is MessagePack already.
func record(pairs ...any) []byte {
	b := msgpack.AppendMapHeader(nil, len(pairs)/2)
	for i, p := range pairs {
		switch v := p.(type) {
		case string:
			b = msgpack.AppendString(b, v)
		case int:
			b = msgpack.AppendInt(b, int64(v))
		case []byte:
			b = append(b, v...)
		default:
			panic(fmt.Sprint(i, p))
		}
	}
	return b
}

func mustEncoder(tb testing.TB, o *Options) *Encoder {
	tb.Helper()
	e, err := NewEncoder(o)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

const testSec = 1795226584 // 2026-11-21T02:03:04Z

// TestOmitZero: the envelope that is remembered is that of the time.
func TestOmitZero(t *testing.T) {
	e := mustEncoder(t, &Options{OmitZero: true, Tag: Omit})
	for _, tt := range []struct {
		nsec uint32
		want string
	}{{0, "{}"}, {1, `{"time":"1970-01-01T00:00:00.000000001Z"}`}, {0, "{}"}} {
		if got := string(e.AppendLine(nil, "", forward.Entry{Nsec: tt.nsec, Record: record()})); got != tt.want+"\n" {
			t.Errorf("%d: got %s", tt.nsec, got)
		}
	}
}

func TestAppendLine(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options *Options
		tag     string
		entry   forward.Entry
		want    string
	}{
		{
			"plain", nil, "app.web",
			forward.Entry{Sec: testSec, Nsec: 123456789, Record: record("level", "INFO", "id", 42)},
			`{"time":"2026-11-21T02:03:04.123456789Z","tag":"app.web","level":"INFO","id":42}`,
		},
		{
			"nine digits", nil, "t",
			forward.Entry{Sec: 0, Nsec: 1000, Record: record("a", 1)},
			`{"time":"1970-01-01T00:00:00.000001000Z","tag":"t","a":1}`,
		},
		{
			"empty record", nil, "t",
			forward.Entry{Record: record()},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"t"}`,
		},
		{
			"empty tag", nil, "",
			forward.Entry{Record: record("a", 1)},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"","a":1}`,
		},
		{
			"hostile tag", nil, "a\"\n\x00\xff\\",
			forward.Entry{Record: record()},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"a\"\n\u0000` + "\ufffd" + `\\"}`,
		},
		{
			"newlines and keys out of order", nil, "t",
			forward.Entry{Record: record("z\n", "a\r\nb", "a", "\u2028")},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"t","z\n":"a\r\nb","a":"\u2028"}`,
		},
		{
			"collisions", nil, "t",
			forward.Entry{Record: record("time", 1, "tag", 2, "tag_", 3, "metadata", 4)},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"t","time_":1,"tag__":2,"tag_":3,"metadata":4}`,
		},
		{
			"metadata", nil, "t",
			forward.Entry{Meta: record("stream", "stdout"), Record: record("metadata", 4)},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"t","metadata":{"stream":"stdout"},"metadata_":4}`,
		},
		{
			"empty metadata", nil, "t",
			forward.Entry{Meta: []byte{0xdf, 0, 0, 0, 0}, Record: record("metadata", 4)},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"t","metadata":4}`,
		},
		{
			"renamed", &Options{Time: "@timestamp", Tag: "logger", Metadata: "meta"}, "t",
			forward.Entry{Meta: record("a", 1), Record: record("time", 1, "logger", 2)},
			`{"@timestamp":"1970-01-01T00:00:00.000000000Z","logger":"t","meta":{"a":1},"time":1,"logger_":2}`,
		},
		{
			"no time", &Options{Time: Omit}, "t",
			forward.Entry{Record: record("time", 1)},
			`{"tag":"t","time":1}`,
		},
		{
			"no tag", &Options{Tag: Omit}, "t",
			forward.Entry{Record: record("tag", 1)},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":1}`,
		},
		{
			"record only", &Options{Time: Omit, Tag: Omit, Metadata: Omit}, "t",
			forward.Entry{Meta: record("a", 1), Record: record("time", 1)},
			`{"time":1}`,
		},
		{"no zero time", &Options{OmitZero: true}, "t", forward.Entry{Record: record("a", 1)}, `{"tag":"t","a":1}`},
		{
			"no zero second", &Options{OmitZero: true}, "t",
			forward.Entry{Nsec: 1, Record: record("a", 1)},
			`{"time":"1970-01-01T00:00:00.000000001Z","tag":"t","a":1}`,
		},
		{"nothing at all", &Options{Time: Omit, Tag: Omit}, "t", forward.Entry{Record: record()}, `{}`},
		{
			"metadata only", &Options{Time: Omit, Tag: Omit}, "t",
			forward.Entry{Meta: record("a", 1), Record: record()},
			`{"metadata":{"a":1}}`,
		},
		{
			"event time, float and ext inside", nil, "t",
			forward.Entry{Record: record("t", forward.AppendEventTime(nil, testSec, 5), "f",
				msgpack.AppendFloat64(nil, math.NaN()), "x", msgpack.AppendExt(nil, 7, []byte("ab")))},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"t","t":"2026-11-21T02:03:04.000000005Z","f":null,"x":"ext:7:YWI="}`,
		},
		{
			"undecodable", nil, "t",
			forward.Entry{Record: []byte{0x81, 0xa1}},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"t","undecodable":"gaE="}`,
		},
		{
			"undecodable metadata", nil, "t",
			forward.Entry{Meta: []byte{0x81, 0xa1}, Record: record()},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"t","metadata":"gaE="}`,
		},
		{
			"no record", nil, "t",
			forward.Entry{},
			`{"time":"1970-01-01T00:00:00.000000000Z","tag":"t","undecodable":""}`,
		},
		{
			"last second of RFC 3339", nil, "t",
			forward.Entry{Sec: year10000 - 1, Nsec: 999999999, Record: record()},
			`{"time":"9999-12-31T23:59:59.999999999Z","tag":"t"}`,
		},
		{
			"after it", nil, "t",
			forward.Entry{Sec: year10000, Nsec: 7, Record: record()},
			`{"time":"253402300800.000000007","tag":"t"}`,
		},
		{
			"first second of RFC 3339", nil, "t",
			forward.Entry{Sec: yearZero, Record: record()},
			`{"time":"0000-01-01T00:00:00.000000000Z","tag":"t"}`,
		},
		{
			"long before", nil, "t",
			forward.Entry{Sec: math.MinInt64, Record: record()},
			`{"time":"-9223372036854775808.000000000","tag":"t"}`,
		},
		{
			"too many nanoseconds", nil, "t",
			forward.Entry{Sec: 1, Nsec: 4_294_967_295, Record: record()},
			`{"time":"1970-01-01T00:00:05.294967295Z","tag":"t"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := mustEncoder(t, tt.options)
			got := string(e.AppendLine([]byte("before"), tt.tag, tt.entry))
			if got != "before"+tt.want+"\n" {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
			if !json.Valid([]byte(tt.want)) {
				t.Error("not valid JSON")
			}
			// What an encoder remembers changes nothing.
			for _, other := range []forward.Entry{{Sec: tt.entry.Sec + 1}, {Sec: tt.entry.Sec}} {
				e.AppendLine(nil, tt.tag, other)
				e.AppendLine(nil, tt.tag+"x", other)
				if got := string(e.AppendLine(nil, tt.tag, tt.entry)); got != tt.want+"\n" {
					t.Errorf("again\n got %s\nwant %s", got, tt.want)
				}
			}
		})
	}
}

func TestZeroEncoder(t *testing.T) {
	var e Encoder
	entry := forward.Entry{Sec: testSec, Record: record("a", 1)}
	want := mustEncoder(t, nil).AppendLine(nil, "t", entry)
	if got := e.AppendLine(nil, "t", entry); !bytes.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOptionsErrors(t *testing.T) {
	for _, o := range []Options{
		{Time: "tag"},
		{Time: "a", Metadata: "a"},
		{Tag: "a\"b"},
		{Tag: "ä"},
		{Metadata: "a\\"},
		{Time: "a\n"},
	} {
		if _, err := NewEncoder(&o); !errors.Is(err, ErrKey) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// smallEntry is an event of about 140 bytes with four keys.
func smallEntry() forward.Entry {
	r := record(
		"level", "INFO",
		"msg", "order placed for customer in the northern region",
		"id", 184467,
		"path", "/api/v1/orders/184467/items/created",
	)
	raw := append([]byte{0x92}, forward.AppendEventTime(nil, testSec, 123456789)...)
	raw = append(raw, r...)
	return forward.Entry{Sec: testSec, Nsec: 123456789, Record: r, Raw: raw}
}

func TestAppendLineAllocs(t *testing.T) {
	entry := smallEntry()
	entry.Meta = record("a", 1)
	dst := make([]byte, 0, 4096)
	tags := []string{"app.web", "app.api"}
	for _, format := range []string{"rfc3339", "unix", "unix_ms", "02/Jan/2006:15:04:05.000 -0700"} {
		e := mustEncoder(t, &Options{TimeFormat: format})
		i := 0
		if n := testing.AllocsPerRun(1000, func() {
			i++
			entry.Sec += int64(i % 3)
			entry.Nsec++
			dst = e.AppendLine(dst[:0], tags[i/2%2], entry)
		}); n != 0 {
			t.Errorf("%s: %v allocations an event", format, n)
		}
	}
}

func BenchmarkAppendLine(b *testing.B) {
	entry := smallEntry()
	for _, bb := range []struct {
		name string
		step int64
	}{{"same second", 0}, {"new second", 1}} {
		b.Run(strings.ReplaceAll(bb.name, " ", "-"), func(b *testing.B) {
			var e Encoder
			entry := entry
			dst := make([]byte, 0, 64<<10)
			b.SetBytes(int64(len(entry.Raw)))
			b.ReportAllocs()
			for b.Loop() {
				entry.Sec += bb.step
				entry.Nsec = (entry.Nsec + 7919) % nanos
				if dst = e.AppendLine(dst, "app.web", entry); len(dst) > 60<<10 {
					dst = dst[:0]
				}
			}
		})
	}
	b.Run("pairs-only", func(b *testing.B) { // the part that package msgpack does
		dst := make([]byte, 0, 64<<10)
		b.SetBytes(int64(len(entry.Raw)))
		b.ReportAllocs()
		names := []string{"time", "tag"}
		for b.Loop() {
			if dst, _, _ = msgpack.AppendJSONPairs(dst, entry.Record, names, forward.AppendExtJSON); len(dst) > 60<<10 {
				dst = dst[:0]
			}
		}
	})
}

// FuzzAppendLine wants one line of valid JSON for any bytes, the same every time, with the
// envelope's values at its start.
func FuzzAppendLine(f *testing.F) {
	f.Add("app.web", int64(testSec), uint32(5), []byte(nil), record("a", 1, "time", "x", "tag", "\n"))
	f.Add("\n\xff", int64(-1), uint32(math.MaxUint32), record("a", record("b", "c")), record("metadata", "x"))
	f.Add("t", int64(math.MaxInt64), uint32(0), []byte{0x80}, []byte{0x81, 0xa1})
	f.Add("t", int64(0), uint32(0), []byte{0xdf, 0, 0, 0, 0},
		[]byte{0x82, 0x91, 0x01, 0xc0, 0xc4, 1, 0xff, 0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0})
	var used Encoder
	f.Fuzz(func(t *testing.T, tag string, sec int64, nsec uint32, meta, rec []byte) {
		entry := forward.Entry{Sec: sec, Nsec: nsec, Meta: meta, Record: rec}
		var fresh Encoder
		line := fresh.AppendLine(nil, tag, entry)
		if again := used.AppendLine([]byte("x"), tag, entry); !bytes.Equal(again[1:], line) {
			t.Fatalf("an encoder that was used says\n%s, a fresh one\n%s", again[1:], line)
		}
		body, ok := bytes.CutSuffix(line, []byte("\n"))
		if !ok || bytes.ContainsAny(body, "\n\r") {
			t.Fatalf("not one line: %q", line)
		}
		if !json.Valid(body) || !utf8.Valid(body) {
			t.Fatalf("not valid JSON: %q", line)
		}
		if err := json.Unmarshal(body, &map[string]any{}); err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(body))
		var got []string
		for range 5 { // { "time" value "tag" value
			tok, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(tok))
		}
		if got[1] != "time" || got[3] != "tag" || utf8.ValidString(tag) && got[4] != tag {
			t.Fatalf("%q: %q", tag, got)
		}
	})
}
