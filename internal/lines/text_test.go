// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

func array(values ...[]byte) []byte {
	return append(msgpack.AppendArrayHeader(nil, len(values)), bytes.Join(values, nil)...)
}

func str(s string) []byte { return msgpack.AppendString(nil, s) }

func TestText(t *testing.T) {
	utc := StdFlags | UTC
	leveled := func(pairs ...any) []byte {
		return record(append([]any{"level", "INFO", "msg", "order placed"}, pairs...)...)
	}
	at := forward.Entry{Sec: testSec, Nsec: 123456789}
	for _, tt := range []struct {
		name   string
		o      TextOptions
		record []byte
		want   string
	}{
		{
			"all",
			TextOptions{Flags: utc},
			leveled("source", "main.go:12", "id", 42),
			"2026/11/21 02:03:04.123456 INFO main.go:12: order placed id=42",
		},
		{
			"short source",
			TextOptions{Flags: Bare | ShortSource},
			leveled("source", "/home/a/web/main.go:12"),
			"main.go:12: order placed",
		},
		{
			"long source",
			TextOptions{Flags: Bare | Source},
			leveled("source", "/home/a/web/main.go:12"),
			"/home/a/web/main.go:12: order placed",
		},
		{"bare", TextOptions{Flags: Bare}, leveled("id", 1), "order placed id=1"},
		{"date", TextOptions{Flags: UTC | Date}, leveled(), "2026/11/21 order placed"},
		{"time", TextOptions{Flags: UTC | Time | Level}, leveled(), "02:03:04 INFO order placed"},
		{"micros", TextOptions{Flags: UTC | Micros}, leveled(), "02:03:04.123456 order placed"},
		{"tag", TextOptions{Flags: Level | Tag}, leveled(), "INFO app.web order placed"},
		{"nothing", TextOptions{Flags: Bare}, record(), ""},
		{
			"posted",
			TextOptions{Flags: Bare | Level},
			record("id", 42, "level", "high", "msg", "x y", "source", "sensor"), "x y id=42 level=high source=sensor",
		},
		{"message", TextOptions{Flags: Bare}, record("a", 1, "message", "x y"), "x y a=1"},
		{"no message", TextOptions{Flags: Bare}, record("a", 1, "msg", 5), "a=1 msg=5"},
		{
			"named like parts",
			TextOptions{Flags: Bare | Level},
			leveled("level", "x", "msg", "y", "source", "z"),
			"INFO order placed level=x msg=y source=z",
		},
		{"quotes", TextOptions{Flags: Bare}, record("a", "x y", "b", `x"\`, "c", "", "d", "a=b", "e", "[", "f", "{x}",
			"g", "x,]", "h", "é"), `a="x y" b="x\"\\" c="" d="a=b" e="[" f="{x}" g=x,] h=é`},
		{"keys", TextOptions{Flags: Bare}, record("a b", 1, "", 2, "a=b", 3, "\n", 4), `"a b"=1 ""=2 "a=b"=3 "\n"=4`},
		{
			"groups",
			TextOptions{Flags: Bare},
			record("g", record("a", 1, "h", record("b c", 2), "e", record()), "x", 3),
			`g.a=1 g.h."b c"=2 g.e={} x=3`,
		},
		{
			"lists",
			TextOptions{Flags: Bare},
			record("l",
				array(str("a"), str("b c"), str("d,e"), str("]"), array(), record("k", 1, "m", "n"))),
			`l=[a,"b c","d,e","]",[],{k=1,m=n}]`,
		},
		{
			"scalars",
			TextOptions{Flags: Bare},
			record("n", msgpack.AppendNil(nil), "t", msgpack.AppendBool(nil, true), "f",
				msgpack.AppendFloat64(nil, 1.5), "g", msgpack.AppendFloat32(nil, 0.1),
				"i", -5, "u", msgpack.AppendUint(nil, math.MaxUint64), "nan", msgpack.AppendFloat64(nil, math.NaN()),
				"b", msgpack.AppendBin(nil, []byte("a\xff")),
				"t", forward.AppendEventTime(nil, testSec, 5), "x", msgpack.AppendExt(nil, 7, []byte("ab"))),
			`n=nil t=true f=1.5 g=0.1 i=-5 u=18446744073709551615 nan=NaN b="a\xff" t=2026-11-21T02:03:04.000000005Z x=ext:7:YWI=`,
		},
		{
			"hostile",
			TextOptions{Flags: Bare | Level | Source},
			record("level", "INFO\nFATAL", "msg",
				"a\n2026/11/21 FATAL b\r\t\x1b[31m\x00\x7f\u009b\u2028\u202e\xff C:\\x \"q\" 日本", "source", "a\nb", "k",
				"\x1b]0;x\a"),
			`"INFO\nFATAL" a\nb: a\n2026/11/21 FATAL b\r\t\x1b[31m\x00\x7f\u009b\u2028\u202e\xff C:\x "q" 日本 k="\x1b]0;x\x07"`,
		},
		{"no map", TextOptions{Flags: Bare}, []byte{1}, "undecodable=AQ=="},
		{"cut off", TextOptions{Flags: Bare}, []byte{0x82, 0xa1, 'a', 1, 0xa5}, "undecodable=gqFhAaU="},
		{
			"cut off behind a message",
			TextOptions{Flags: Bare},
			append([]byte{0x83}, append(record("msg", "m", "a", 1)[1:], 0xa5)...), "m a=1 undecodable=pQ==",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := at
			e.Record = tt.record
			got := NewText(&tt.o).AppendLine([]byte("before "), "app.web", e)
			want := "before " + tt.want + "\n"
			if string(got) != want {
				t.Errorf("\n got %q\nwant %q", got, want)
			}
		})
	}
}

func TestTextTimes(t *testing.T) {
	tx := NewText(&TextOptions{Flags: UTC | Date | Micros})
	for _, tt := range []struct {
		sec  int64
		nsec uint32
		want string
	}{
		{testSec, 999_999_999, "2026/11/21 02:03:04.999999 m"},
		{testSec, 1000, "2026/11/21 02:03:04.000001 m"},
		{testSec + 1, 0, "2026/11/21 02:03:05.000000 m"},
		{0, 0, "m"}, // no time at all
		{0, 1, "1970/01/01 00:00:00.000000 m"},
		{-1, 0, "1969/12/31 23:59:59.000000 m"},
	} {
		if got := string(tx.AppendLine(nil, "",
			forward.Entry{Sec: tt.sec, Nsec: tt.nsec, Record: record("msg", "m")})); got != tt.want+"\n" {
			t.Errorf("%d.%d: got %q", tt.sec, tt.nsec, got)
		}
	}
	local := NewText(&TextOptions{Flags: Date | Time})
	want := time.Unix(testSec, 0).Format("2006/01/02 15:04:05") + " m\n"
	if got := string(local.AppendLine(nil, "", forward.Entry{Sec: testSec, Record: record("msg", "m")})); got != want {
		t.Errorf("local: got %q, want %q", got, want)
	}
}

func TestTextColor(t *testing.T) {
	var zero Text
	e := forward.Entry{Sec: testSec, Record: record("level", "WARN+1", "msg", "m", "g", record("a", 1))}
	if got := string(zero.AppendLine(nil, "", e)); !strings.HasSuffix(got, " WARN+1 m g.a=1\n") {
		t.Errorf("zero value: %q", got)
	}
	tx := NewText(&TextOptions{Flags: UTC | Time | Level, Color: true})
	want := "\x1b[90m02:03:04\x1b[0m \x1b[33mWARN+1\x1b[0m m \x1b[36mg.a=\x1b[0m1\n"
	if got := string(tx.AppendLine(nil, "", e)); got != want {
		t.Errorf("got %q want %q", got, want)
	}
}

// uncolour takes away what a Text writes to colour a line.
var uncolour = strings.NewReplacer(plain, "", dim, "", cyan, "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[31m", "",
	"\x1b[1;31m", "")

// FuzzText wants one line that a terminal can take, whatever comes.
func FuzzText(f *testing.F) {
	f.Add(int64(testSec), uint32(5), "app", record("level", "INFO", "msg", "m\n", "source", "a.go:1", "k",
		record("a", array(str("b")))))
	f.Add(int64(0), uint32(0), "", []byte{0x83, 0xa1, 'a', 1, 0xa5})
	f.Add(int64(math.MaxInt64), uint32(math.MaxUint32), "\x1b", bytes.Repeat([]byte{0x91}, 200))
	f.Add(int64(math.MinInt64), uint32(1), "t", bytes.Repeat([]byte{0x81, 0xa1, 'a'}, 100))
	tx := NewText(&TextOptions{Flags: StdFlags | UTC | Tag})
	coloured := NewText(&TextOptions{Flags: StdFlags | UTC | Tag, Color: true})
	f.Fuzz(func(t *testing.T, sec int64, nsec uint32, tag string, rec []byte) {
		e := forward.Entry{Sec: sec, Nsec: nsec, Record: rec}
		line := tx.AppendLine(nil, tag, e)
		if n := bytes.IndexByte(line, '\n'); n != len(line)-1 {
			t.Fatalf("newline at %d: %q", n, line)
		}
		if !utf8.Valid(line) {
			t.Fatalf("no UTF-8: %q", line)
		}
		for _, r := range string(line[:len(line)-1]) {
			if r < ' ' || r == 0x7f || r >= 0x80 && isHidden(r) {
				t.Fatalf("%U in %q", r, line)
			}
		}
		if again := NewText(&TextOptions{Flags: StdFlags | UTC | Tag}).AppendLine(nil, tag, e); !bytes.Equal(again,
			line) {
			t.Fatalf("%q, then %q", line, again)
		}
		checkNext(t, tx, tag, rec)
		checkNext(t, mustEncoder(t, nil), tag, rec)
		if c := uncolour.Replace(string(coloured.AppendLine(nil, tag, e))); c != string(line) {
			t.Fatalf("%q, coloured %q", line, c)
		}
	})
}

type runAppender interface {
	AppendLine(dst []byte, tag string, entry forward.Entry) []byte
	AppendRun(dst []byte, tag string, entries []byte, most int) (out []byte, n, events int)
}

// checkNext wants the same of one pass as of an EntryReader and AppendLine.
func checkNext(t *testing.T, a runAppender, tag string, rec []byte) {
	t.Helper()
	for _, head := range heads() {
		checkNextAfter(t, a, tag, append(head, rec...))
	}
}

// heads are what nearly all senders write before a record.
func heads() [][]byte {
	return [][]byte{
		forward.AppendEventTime([]byte{0x92}, testSec, 5),
		msgpack.AppendMapHeader(forward.AppendEventTime([]byte{0x92, 0x92}, testSec, 5), 0),
		msgpack.AppendInt([]byte{0x92}, testSec),
	}
}

func checkNextAfter(t *testing.T, a runAppender, tag string, entries []byte) {
	t.Helper()
	got, n, _ := a.AppendRun([]byte("before "), tag, entries, 0)
	r := forward.ReadEntries(entries)
	e, ok := r.Next()
	if n == 0 {
		if string(got) != "before " {
			t.Fatalf("nothing taken, but appended %q", got)
		}
		return
	}
	if !ok {
		return // deeper than an EntryReader likes
	}
	if want := a.AppendLine([]byte("before "), tag, e); !bytes.Equal(got, want) || n != len(e.Raw) {
		t.Fatalf("got %q, %d bytes; want %q, %d bytes", got, n, want, len(e.Raw))
	}
}

func TestAppendRun(t *testing.T) {
	rec := textEntry().Record
	for _, a := range []runAppender{NewText(nil), mustEncoder(t, nil)} {
		for _, rec := range [][]byte{rec, record(), record("a", 1), record("a", 1, "message", "m")} {
			checkNext(t, a, "app", rec)
			checkNext(t, a, "app", append(rec[:len(rec):len(rec)], rec...)) // and another behind it
			for _, head := range heads() {
				entry := append(head, rec...)
				if _, n, events := a.AppendRun(nil, "app", entry, 0); n != len(entry) || events != 1 {
					t.Errorf("%x: %d of %d", entry, n, len(entry))
				}
				for i := range entry {
					if b, n, events := a.AppendRun(nil, "app", entry[:i], 0); n != 0 || len(b) != 0 || events != 0 {
						t.Errorf("%x: %q, %d", entry[:i], b, n)
					}
				}
			}
		}
		if _, n, _ := a.AppendRun(nil, "app", append([]byte{0x92, 5}, rec...), 0); n != 0 {
			t.Error("a time of another kind")
		}
	}
}

// TestAppendRuns goes over entries of several seconds in runs, and wants what AppendLine makes of
// each.
func TestAppendRuns(t *testing.T) {
	var entries []byte
	times := []struct {
		sec  int64
		nsec uint32
	}{{testSec, 5}, {testSec, 6}, {testSec, nanos - 1}, {testSec + 1, 0}, {0, 5}, {0, 0}, {0, 7}, {testSec, 8}}
	for i, at := range times {
		entries = forward.AppendEventTime(append(entries, 0x92), at.sec, at.nsec)
		entries = append(entries, record("i", i, "time", "x")...)
	}
	for name, a := range map[string]runAppender{
		"text": NewText(nil), "json": mustEncoder(t, nil), "omit zero": mustEncoder(t, &Options{OmitZero: true}),
		"ms":     mustEncoder(t, &Options{TimeFormat: "unix_ms"}),
		"layout": mustEncoder(t, &Options{TimeFormat: "02/Jan/2006:15:04:05.000 -0700"}),
	} {
		for _, most := range []int{0, 150, math.MaxInt} {
			var got, want []byte
			var runs []int
			for rest := entries; len(rest) > 0; {
				out, n, events := a.AppendRun(nil, "app", rest, most)
				if n == 0 {
					t.Fatalf("%s: nothing of %x", name, rest)
				}
				got, rest, runs = append(got, out...), rest[n:], append(runs, events)
			}
			r := forward.ReadEntries(entries)
			for e, ok := r.Next(); ok; e, ok = r.Next() {
				want = a.AppendLine(want, "app", e)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s, %d: got\n%swant\n%s", name, most, got, want)
			}
			if most == math.MaxInt && !slices.Equal(runs, []int{3, 1, 3, 1}) || most == 0 && len(runs) != len(times) {
				t.Errorf("%s, %d: runs of %d", name, most, runs)
			}
		}
	}
}

func textEntry() forward.Entry {
	return forward.Entry{
		Sec: testSec, Nsec: 5,
		Record: record("level", "INFO", "msg", "order placed", "source", "main.go:12",
			"id", 42, "user", record("name", "A. Smith", "id", 7), "state", "paid", "ok", msgpack.AppendBool(nil, true),
			"took", msgpack.AppendFloat64(nil, 0.25), "list", array(str("a"), str("日本 x"))),
	}
}

func TestTextAllocations(t *testing.T) {
	tx := NewText(&TextOptions{Color: true})
	e := textEntry()
	dst := make([]byte, 0, 1<<10)
	tx.AppendLine(dst, "app", e)
	if n := testing.AllocsPerRun(100, func() {
		e.Sec++
		tx.AppendLine(dst, "app.web\x1b", e)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkText(b *testing.B) {
	for _, bb := range []struct {
		name  string
		entry forward.Entry
	}{
		{"nine", textEntry()},
		{"one", forward.Entry{Sec: testSec, Record: record("level", "INFO", "msg", "order placed", "id", 42)}},
		{"1000 bytes", forward.Entry{Sec: testSec, Record: record("level", "INFO", "msg", strings.Repeat("#", 1000))}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			tx := NewText(nil)
			dst := tx.AppendLine(nil, "app", bb.entry)
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = tx.AppendLine(dst[:0], "app", bb.entry)
			}
		})
	}
}
