// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/msgpack"
)

var zurich = time.FixedZone("", 3600)

func TestParse(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ in, when, want string }{
		// RFC 5424, its own examples in other words.
		{
			`<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - 'su root' failed`,
			"2003-10-11T22:14:15.003Z",
			`{"facility":"auth","severity":"crit","host":"mymachine.example.com","app":"su","msgid":"ID47","message":"'su root' failed"}`,
		},
		{
			"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - \xef\xbb\xbf%% time",
			"2003-08-24T12:14:15.000003Z",
			`{"facility":"local4","severity":"notice","host":"192.0.2.1","app":"myproc","pid":"8710","message":"%% time"}`,
		},
		{
			`<0>1 - - - - - [a x="1" y="q\"b\\\]\n"][b@32473]`, "",
			`{"facility":"kern","severity":"emerg","data":{"a":{"x":"1","y":"q\"b\\]\\n"},"b@32473":{}},"message":""}`,
		},
		{
			`<13>1 2026-11-24T10:00:00Z h app 1 - [broken x="1] text`, "",
			`{"facility":"user","severity":"notice","message":"1 2026-11-24T10:00:00Z h app 1 - [broken x=\"1] text"}`,
		},
		{
			`<13>1 yesterday h app 1 - - text`, "",
			`{"facility":"user","severity":"notice","message":"1 yesterday h app 1 - - text"}`,
		},
		// RFC 3164 and what is sent in its name.
		{
			"<34>Oct 11 22:14:15 mymachine su: 'su root' failed", "2026-10-11T21:14:15Z",
			`{"facility":"auth","severity":"crit","host":"mymachine","app":"su","message":"'su root' failed"}`,
		},
		{
			"<13>Nov  4 22:14:15 root: no host\n", "2026-11-04T21:14:15Z",
			`{"facility":"user","severity":"notice","app":"root","message":"no host"}`,
		},
		{
			"<13>Nov 24 22:14:15.123456 h cron[12]: x", "2026-11-24T21:14:15.123456Z",
			`{"facility":"user","severity":"notice","host":"h","app":"cron","pid":"12","message":"x"}`,
		},
		{
			"<13>2026-11-24T22:14:15.5+02:00 h app[1]: x", "2026-11-24T20:14:15.5Z",
			`{"facility":"user","severity":"notice","host":"h","app":"app","pid":"1","message":"x"}`,
		},
		{
			"<13>2026-11-24T22:14:15 h app: x", "2026-11-24T21:14:15Z",
			`{"facility":"user","severity":"notice","host":"h","app":"app","message":"x"}`,
		},
		{
			"<189>Nov 24 2026 22:14:15: %SYS-5-CONFIG: x", "2026-11-24T21:14:15Z",
			`{"facility":"local7","severity":"notice","app":"%SYS-5-CONFIG","message":"x"}`,
		},
		{
			"<13>Nov 24 22:14:15 h just words here", "2026-11-24T21:14:15Z",
			`{"facility":"user","severity":"notice","host":"h","message":"just words here"}`,
		},
		{
			"<30>Nov 24 22:14:15 systemd[1]: Started x.", "2026-11-24T21:14:15Z",
			`{"facility":"daemon","severity":"info","app":"systemd","pid":"1","message":"Started x."}`,
		},
		{
			"<38>2026-11-24T22:14:15 localhost prg00000[1234]: seq", "2026-11-24T21:14:15Z",
			`{"facility":"auth","severity":"info","host":"localhost","app":"prg00000","pid":"1234","message":"seq"}`,
		},
		// Network gear.
		{
			"<189>45: *Nov 24 22:14:15.123 UTC: %SYS-5-CONFIG_I: x", "2026-11-24T22:14:15.123Z",
			`{"facility":"local7","severity":"notice","app":"%SYS-5-CONFIG_I","message":"x"}`,
		},
		{
			"<189>45: router1: 000123: Nov 24 22:14:15.123 CET: %SYS-5-CONFIG_I: x", "2026-11-24T21:14:15.123Z",
			`{"facility":"local7","severity":"notice","host":"router1","app":"%SYS-5-CONFIG_I","message":"x"}`,
		},
		{
			"<189>45: .Nov 24 22:14:15: words", "2026-11-24T21:14:15Z",
			`{"facility":"local7","severity":"notice","message":"words"}`,
		},
		{
			"<189>45: 00:00:46: %LINK-3-UPDOWN: up", "",
			`{"facility":"local7","severity":"notice","message":"45: 00:00:46: %LINK-3-UPDOWN: up"}`,
		},
		{
			"<189>: 2026 Nov 24 22:14:15 UTC: %ETHPORT-5-IF_UP: x", "2026-11-24T22:14:15Z",
			`{"facility":"local7","severity":"notice","app":"%ETHPORT-5-IF_UP","message":"x"}`,
		},
		{
			"<166>Nov 24 2026 22:14:15 fw1 : %ASA-6-302013: x", "2026-11-24T21:14:15Z",
			`{"facility":"local4","severity":"info","host":"fw1","app":"%ASA-6-302013","message":"x"}`,
		},
		{
			"<141>Nov 24 22:14:15 2026 ap1 sapd[12]: x", "2026-11-24T21:14:15Z",
			`{"facility":"local1","severity":"notice","host":"ap1","app":"sapd","pid":"12","message":"x"}`,
		},
		{
			"<30>Nov 24 22:14:15 CRON: %d", "2026-11-24T21:14:15Z",
			`{"facility":"daemon","severity":"info","app":"CRON","message":"%d"}`,
		},
		{
			`<189>date=2026-11-24 time=22:14:15 devname="f"`, "",
			`{"facility":"local7","severity":"notice","message":"date=2026-11-24 time=22:14:15 devname=\"f\""}`,
		},
		{
			"<30>Error: Nov 24 22:14:15 is a time", "",
			`{"facility":"daemon","severity":"info","message":"Error: Nov 24 22:14:15 is a time"}`,
		},
		{
			"<40>1 2026-11-24T22:14:15+00:00 h app web.3 - State changed", "2026-11-24T22:14:15Z",
			`{"facility":"syslog","severity":"emerg","host":"h","app":"app","pid":"web.3","message":"State changed"}`,
		},
		// Years are those that are nearest.
		{
			"<13>Jan  1 00:00:01 h a: x", "2026-12-31T23:00:01Z",
			`{"facility":"user","severity":"notice","host":"h","app":"a","message":"x"}`,
		},
		{
			"<13>Jun  1 00:00:01 h a: x", "2026-05-31T23:00:01Z",
			`{"facility":"user","severity":"notice","host":"h","app":"a","message":"x"}`,
		},
		{
			"<13>Feb 29 12:00:00 h a: x", "2028-02-29T11:00:00Z", // of a year that has it
			`{"facility":"user","severity":"notice","host":"h","app":"a","message":"x"}`,
		},
		// Four digits behind the time are a year only near to now.
		{
			"<13>Nov 24 14:05:06 1001 app[1]: x", "2026-11-24T13:05:06Z",
			`{"facility":"user","severity":"notice","host":"1001","app":"app","pid":"1","message":"x"}`,
		},
		{
			"<13>Nov 24 14:05:06 2023 app[1]: x", "2026-11-24T13:05:06Z",
			`{"facility":"user","severity":"notice","host":"2023","app":"app","pid":"1","message":"x"}`,
		},
		{
			"<13>Nov 24 14:05:06 2024 ap1 app[1]: x", "2024-11-24T13:05:06Z",
			`{"facility":"user","severity":"notice","host":"ap1","app":"app","pid":"1","message":"x"}`,
		},
		{
			"<13>Feb 29 14:05:06 2024 ap1 app[1]: x", "2024-02-29T13:05:06Z",
			`{"facility":"user","severity":"notice","host":"ap1","app":"app","pid":"1","message":"x"}`,
		},
		// Days that are none.
		{
			"<13>Feb 31 14:05:06 h a: x", "",
			`{"facility":"user","severity":"notice","message":"Feb 31 14:05:06 h a: x"}`,
		},
		{
			"<13>Jun 31 14:05:06 h a: x", "",
			`{"facility":"user","severity":"notice","message":"Jun 31 14:05:06 h a: x"}`,
		},
		{
			"<13>Feb 29 2025 14:05:06 h a: x", "",
			`{"facility":"user","severity":"notice","message":"Feb 29 2025 14:05:06 h a: x"}`,
		},
		{
			"<13>2026-02-29T14:05:06Z h a: x", "",
			`{"facility":"user","severity":"notice","message":"2026-02-29T14:05:06Z h a: x"}`,
		},
		// No syslog at all.
		{"no priority", "", `{"facility":"user","severity":"notice","message":"no priority"}`},
		{
			"Nov 24 22:14:15 h a: no priority, but a time", "2026-11-24T21:14:15Z",
			`{"facility":"user","severity":"notice","host":"h","app":"a","message":"no priority, but a time"}`,
		},
		{"<192>too much", "", `{"facility":"user","severity":"notice","message":"<192>too much"}`},
		{"<>x", "", `{"facility":"user","severity":"notice","message":"<>x"}`},
		{"<1234>x", "", `{"facility":"user","severity":"notice","message":"<1234>x"}`},
		{"<11>", "", `{"facility":"user","severity":"err","message":""}`},
		{"", "", `{"facility":"user","severity":"notice","message":""}`},
		{"<13>Error: not a program", "", `{"facility":"user","severity":"notice","message":"Error: not a program"}`},
		{"<13>app[12]: no time", "", `{"facility":"user","severity":"notice","app":"app","pid":"12","message":"no time"}`},
		{"<13>list[a]: no program", "", `{"facility":"user","severity":"notice","message":"list[a]: no program"}`},
		{
			"<13>Nov 31 25:14:15 h a: no time", "",
			`{"facility":"user","severity":"notice","message":"Nov 31 25:14:15 h a: no time"}`,
		},
	} {
		m := parse([]byte(tt.in), now, zurich)
		b := appendEntry(nil, &m, now, false, "", "")
		r := forward.ReadEntries(b)
		e, ok := r.Next()
		if !ok {
			t.Fatalf("%q: %v", tt.in, r.Err())
		}
		line, _, err := msgpack.AppendJSON(nil, e.Record, forward.AppendExtJSON)
		if err != nil || string(line) != tt.want {
			t.Errorf("%q:\n got %s, %v\nwant %s", tt.in, line, err, tt.want)
		}
		want := now
		if tt.when != "" {
			if want, err = time.Parse(time.RFC3339Nano, tt.when); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Unix(e.Sec, int64(e.Nsec)); !got.Equal(want) {
			t.Errorf("%q is of %v, want %v", tt.in, got.UTC(), want)
		}
	}
}

// TestLeapDay: one without a year is of the nearest year that has it.
func TestLeapDay(t *testing.T) {
	for now, want := range map[string]int{
		"2023-12-01T00:00:00Z": 2024, "2024-02-28T00:00:00Z": 2024, "2024-12-31T00:00:00Z": 2024,
		"2025-01-01T00:00:00Z": 2024, "2026-01-01T00:00:00Z": 2024, "2027-02-28T00:00:00Z": 2028,
		"2099-01-01T00:00:00Z": 2096, "2101-01-01T00:00:00Z": 2104,
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		got, n := stamp([]byte("Feb 29 12:00:00 h a: x"), at, time.UTC)
		if n != 15 || !got.Equal(time.Date(want, 2, 29, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("at %s it is %v, %d, want %d", now, got, n, want)
		}
	}
}

// TestRecordKeys: a record has each of the keys that no address may have, and no other ones.
func TestRecordKeys(t *testing.T) {
	m := parse([]byte(`<13>1 2026-11-24T14:05:06Z h app 1 ID [a x="1"] text`), time.Now(), time.UTC)
	entries := forward.ReadEntries(appendEntry(nil, &m, time.Now(), true, "", ""))
	e, ok := entries.Next()
	if !ok {
		t.Fatal(entries.Err())
	}
	head, at, err := msgpack.ReadToken(e.Record)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for range head.Len {
		key, _, n, err := msgpack.ReadBytes(e.Record[at:])
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, string(key))
		at += n
		if n, err = msgpack.Skip(e.Record[at:]); err != nil {
			t.Fatal(err)
		}
		at += n
	}
	if !slices.Equal(keys, recordKeys) {
		t.Errorf("%q, want %q", keys, recordKeys)
	}
}

// FuzzFrame cuts a stream into pieces in any way: the messages are the same.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("<13>a\n12 <13>message!<13>b\n\n3 x\n99999 <1"), uint16(3))
	f.Add([]byte("5 <13>x5 <13>y"), uint16(1))
	f.Add(bytes.Repeat([]byte("x"), 100), uint16(7))
	f.Add([]byte("0 <13>a\n1234567890 <b\n1 \n1 <\n"), uint16(2))
	f.Add([]byte("<13>a\x00<13>b\x00\n<13>c\n\x00d"), uint16(4))
	f.Fuzz(func(t *testing.T, stream []byte, step uint16) {
		frames := func(step int) (all []string) {
			one := func(m []byte, cut bool) { all = append(all, fmt.Sprintf("%v %q", cut, m)) }
			f := framer{maxMessage: 32, memory: &memory{limit: 1 << 20}}
			for rest := stream; len(rest) > 0; {
				n := copy(f.room(), rest[:min(step, len(rest))])
				f.took(n)
				f.each(one)
				rest = rest[n:]
				if len(f.buf) > 32+maxDigits+2 || len(f.room()) == 0 {
					t.Fatalf("%d bytes are kept, and there is room for %d", len(f.buf), len(f.room()))
				}
			}
			f.last(one)
			if f.free(); f.memory.held.Load() != 0 {
				t.Fatalf("%d bytes are held", f.memory.held.Load())
			}
			return all
		}
		if whole, parts := frames(len(stream)+1), frames(int(step%64)+1); !slices.Equal(whole, parts) {
			t.Errorf("at once %q, in parts %q", whole, parts)
		}
	})
}

// FuzzStream cuts a stream into pieces in any way: the events are the same.
func FuzzStream(f *testing.F) {
	f.Add([]byte("<13>Nov 24 14:05:06 h app[1]: a\n62 <13>1 2026-11-24T14:05:06Z h app 1 ID [a x=\"1\"][b y=\"\\\"\"] text"), []byte{7, 1, 30})
	f.Add([]byte("45: r1: 7: *Nov 24 14:05:06.1 UTC: %SYS-5-X: a\x00<13>app[1]: b\n9 <13>\xff\xfe\xef\xbb\xbf"),
		[]byte{1})
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		events := func(cuts []byte) map[string][]byte {
			in := &input{
				settings: &settings{zone: zurich, maxMessage: 64, addressKey: "peer"},
				env:      &collector.InputEnv{Log: slog.New(slog.DiscardHandler)},
			}
			in.warned.kinds = map[codes.Code]*allowance{}
			in.tag = tagTemplate{{field: "host"}, {text: "."}, {field: "app"}}
			b := in.batch()
			one := func(m []byte, cut bool) { b.add(m, cut, now, origin{name: "h"}) }
			f := framer{maxMessage: in.maxMessage, memory: &memory{limit: 1 << 20}}
			for rest, i := stream, 0; len(rest) > 0; i++ {
				n := len(rest)
				if len(cuts) > 0 {
					n = min(n, 1+int(cuts[i%len(cuts)]))
				}
				n = copy(f.room(), rest[:n])
				f.took(n)
				f.each(one)
				rest = rest[n:]
			}
			f.last(one)
			all := map[string][]byte{}
			for _, c := range b.order {
				r := forward.ReadEntries(c.Entries)
				n := 0
				for _, ok := r.Next(); ok; _, ok = r.Next() {
					n++
				}
				if r.Err() != nil || n != c.Events {
					t.Fatalf("%d events of %d: %v", n, c.Events, r.Err())
				}
				all[c.Tag] = c.Entries
			}
			return all
		}
		if whole, parts := events(nil), events(cuts); !maps.EqualFunc(whole, parts, bytes.Equal) {
			t.Errorf("at once %q, in parts %q", whole, parts)
		}
	})
}

// FuzzParse: whatever comes, the event can be read, and the message lacks nothing but what was
// understood of it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`<34>1 2003-10-11T22:14:15.003Z h su 1 ID47 [a x="1"] text`))
	f.Add([]byte("<13>Nov 24 22:14:15 h app[1]: text"))
	f.Add([]byte("<13>2026-11-24 22:14:15,5-0330 h app text"))
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		m := parse(b, now, zurich)
		entry := appendEntry(nil, &m, now, true, "peer", "1.2.3.4:5")
		r := forward.ReadEntries(entry)
		if _, ok := r.Next(); !ok || r.Err() != nil {
			t.Fatalf("%q: %x: %v", b, entry, r.Err())
		}
		if n, err := msgpack.Skip(entry); err != nil || n != len(entry) {
			t.Fatalf("%q: %d of %d bytes, %v", b, n, len(entry), err)
		}
		if !bytes.Equal(b, before) {
			t.Fatalf("%q was changed to %q", before, b)
		}
		if text := bytes.TrimRight(b, "\r\n\x00"); !bytes.HasSuffix(text, m.text) {
			t.Fatalf("%q has the text %q", b, m.text)
		}
		if tag := (tagTemplate{{text: "a."}, {field: "host"}, {field: "app"}}).append(nil,
			&m); len(tag) > 2+2*maxField {
			t.Fatalf("tag %q", tag)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	now := time.Now()
	for name, text := range map[string]string{
		"3164": "<134>Nov 24 14:05:06 web1 nginx[812]: 192.0.2.1 - - \"GET /api/v1/orders/12345/items HTTP/1.1\" 200 5123 \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\" rt=0.012 uct=0.001 up",
		"5424": `<134>1 2026-11-24T14:05:06.123456Z web1 nginx 812 - - 192.0.2.1 - - "GET /api/v1/orders/12345/items HTTP/1.1" 200 5123 "-" "Mozilla/5.0 (X11; Linux x86_64)" rt=0.0`,
	} {
		b.Run(name, func(b *testing.B) {
			var entry []byte
			text := []byte(text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				m := parse(text, now, time.UTC)
				entry = appendEntry(entry[:0], &m, now, false, "", "")
			}
		})
	}
}
