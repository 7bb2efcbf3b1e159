// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// theFinder is of a file that was written last on the first of March 2026, in a zone of its own.
var theFinder = finder{"time", time.FixedZone("", 2*3600), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}

// timeIn is what the first format finds that finds something.
func timeIn(line string) (format, at string) {
	for _, f := range formats {
		if ns, ok := f.time([]byte(line), &theFinder); ok {
			return f.name, time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
		}
	}
	return "", ""
}

func TestFormats(t *testing.T) {
	const at, local = "2025-11-21T02:03:04Z", "2025-11-21T00:03:04Z"
	for _, c := range []struct{ line, format, at string }{
		{`{"a":1,"time":"2025-11-21T02:03:04Z"}`, JSON, at},
		{`{"time":"2025-11-21 04:03:04 +0200"}`, JSON, at},
		{`{"time":"2025-11-21T02:03:04"}`, JSON, local},
		{`{"time":1763690584.5}`, JSON, "2025-11-21T02:03:04.5Z"},
		{`{"time":"1763690584"}`, JSON, at},
		{`{"time":1763690584125}`, JSON, "2025-11-21T02:03:04.125Z"},
		{`{"time":1763690584125000.5}`, JSON, "2025-11-21T02:03:04.1250005Z"},
		{`{"time":1763690584000000001}`, JSON, "2025-11-21T02:03:04.000000001Z"},
		{`{"time":9999999999999999999}`, "", ""},
		{`{"time":"2025-11-21T02:03:04Z and more"}`, "", ""},
		{`{"ts":1}`, "", ""},

		{`time=2025-11-21T02:03:04Z level=info msg="a b"`, Logfmt, at},
		{`level=info msg="a \" time=1 b" flag time="2025-11-21 02:03:04Z"`, Logfmt, at},
		{`ts=1763690584 caller=a.go:1`, Logfmt, at},
		{`at=1763690584`, "", ""},
		{`a time=1763690584`, "", ""},
		{` a=b time=1763690584`, "", ""},
		{`a="b time=1763690584`, "", ""},

		{"2025-11-21T02:03:04Z", Text, at},
		{"2025-11-21t02:03:04z and more", Text, at},
		{"2025-11-21T04:03:04+02:00 x", Text, at},
		{"2025-11-20T21:03:04-0500 x", Text, at},
		{"2025-11-21T03:03:04+01 x", Text, at},
		{"2025-11-21 02:03:04.000000001Z", Text, "2025-11-21T02:03:04.000000001Z"},
		{"2025-11-21 02:03:04,5000000009 UTC [12] LOG: x", Text, "2025-11-21T02:03:04.5Z"},
		{"2025-11-21 04:03:04 +0200 x", Text, at},
		{"2025-11-21 02:03:04 +02 x", Text, local},
		{"2025/11/21 02:03:04 main.go:3: x", Text, local},
		{"[2025-11-21 02:03:04] x", Text, local},
		{"<13>1 2025-11-21T02:03:04Z host app - - - x", Text, at},
		{"2025-11-21T02:03:60Z", Text, "2025-11-21T02:04:00Z"},
		{"2025-02-29T02:03:04Z", "", ""},
		{"2025-11-21T24:03:04Z", "", ""},
		{"2025-11-21T02:03:04Zebra", "", ""},
		{"2025-11-21T02:03", "", ""},
		{"2025-11/21 02:03:04", "", ""},
		{" 2025-11-21T02:03:04Z", "", ""},

		{"Nov 21 02:03:04 host app[1]: x", Text, local},
		{"<34>Nov  1 02:03:04 host x", Text, "2025-11-01T00:03:04Z"},
		{"Mar  1 02:03:04 host x", Text, "2026-03-01T00:03:04Z"},
		{"Mar  2 02:03:04 host x", Text, "2025-03-02T00:03:04Z"},
		{"Feb 29 02:03:04 host x", Text, "2024-02-29T00:03:04Z"},
		{"Nov 21 2025 02:03:04 x", Text, local},
		{"[Fri Nov 21 02:03:04.5 2025] [core:error] x", Text, "2025-11-21T00:03:04.5Z"},
		{"Fri Nov 21 02:03:04 UTC 2025", Text, at},
		{"Nov 31 02:03:04 host x", "", ""},
		{"Now 21 02:03:04 host x", "", ""},
		{"E1121 02:03:04.5     1 a.go:3] x", Text, "2025-11-21T00:03:04.5Z"},

		{"1763690584.25 300 10.0.0.1 TCP_MISS", Text, "2025-11-21T02:03:04.25Z"},
		{"1763690584", Text, at},
		{"0763690584 x", "", ""},
		{"17636905841 x", "", ""},

		{`::1 - ada [21/Nov/2025:04:03:04 +0200] "GET / HTTP/1.1" 200 12`, Text, at},
		{`host [x] - - [21/Nov/2025:04:03:04 +0200] "GET`, Text, at},
		{strings.Repeat("x", 600) + `[21/Nov/2025:04:03:04 +0200]`, "", ""},

		{"", "", ""},
		{"\tat com.example.Main(Main.java:12)", "", ""},
		{"goroutine 1 [running]:", "", ""},
	} {
		if format, at := timeIn(c.line); format != c.format || at != c.at {
			t.Errorf("%q: %q %s, want %q %s", c.line, format, at, c.format, c.at)
		}
	}
}

// TestPairs: a key is found wherever it stands in a logfmt line.
func TestPairs(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"a=1 b=2 k=3 k=4", "3"},
		{`a="x k=1" k="2 \" 3" c`, `"2 \" 3"`},
		{"a= k=", ""},
		{"a=\x01k=1", "none"},
		{"kk=1 =2 k=3", "none"},
		{"", "none"},
	} {
		if got, ok := pair([]byte(c.line), "k"); ok == (c.want == "none") || ok && string(got) != c.want {
			t.Errorf("%q: %q, %v; want %q", c.line, got, ok, c.want)
		}
	}
}

// FuzzFormats: whatever a line is, it has a time or none, and the time is that of package time.
func FuzzFormats(f *testing.F) {
	for _, s := range []string{
		`{"time":"2025-11-21 04:03:04 +0200"}`, `a=1 time="2025-11-21 02:03:04Z" b`, "2025-11-21T04:03:04+02:00",
		"<34>Feb 29 02:03:04.5 host", "[Fri Nov 21 02:03:04 UTC 2025]", "E1121 02:03:04.5 1 a.go", "1763690584.25 x",
		`::1 - ada [21/Nov/2025:04:03:04 +0200] "GET`, "1678-01-01 00:00:00", "2261-12-31T23:59:60.9999999999-23:59",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, format := range formats {
			b := []byte(line)
			format.time(b, &theFinder)
			if string(b) != line {
				t.Fatalf("%s changes the line", format.name)
			}
		}
		want, err := time.Parse(time.RFC3339Nano, line)
		if err != nil || want.Year() < 1679 || want.Year() > 2260 || strings.Contains(line, ",") || line[13] != ':' {
			return // package time lets a comma be, and an hour of one digit, and has other years
		}
		_, offset := want.Zone()
		if ns, ok := isoTime([]byte(line), &theFinder); !ok && offset/3600 < 24 || ok && ns != want.UnixNano() {
			t.Errorf("%q: %d, %v; want %d", line, ns, ok, want.UnixNano())
		}
	})
}

// FuzzFile: of a file of whatever bytes each line is written as it is, in its place, or left out
// and told; how it is cut into reads changes nothing.
func FuzzFile(f *testing.F) {
	for _, s := range []string{
		"{\"time\":1}\n{\"time\":2}\n{\"time\":", "banner\n2025-11-21 02:03:04 a\n  at x\n\n2025-11-21 02:03:05 b",
		"time=1763690584 a=b\nc\n", "time=1763690584 tag= a=b\nc\n", "x\ny\n\n", "\n\n", "{\n2025-11-21T02:03:04Z\n",
	} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, content []byte, seed uint64) {
		var got [2]string
		m := newMerge(&Options{Tag: "t"}, 1) // whatever the tags are
		in := &input{from: bytes.NewReader(content), base: 64 << 10, finder: theFinder}
		if err := m.merge([]*input{in}, func(*input) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			told := map[int]bool{}
			m := newMerge(&Options{Warn: func(_ string, line int, _ error) { told[line] = true }}, 1)
			in := &input{from: bytes.NewReader(content), base: 64 << 10, finder: theFinder}
			if i == 1 {
				in.from = &pieces{bytes.NewReader(content), rand.New(rand.NewPCG(seed, 1))}
			}
			var out, want strings.Builder
			err := m.merge([]*input{in}, func(f *input) error {
				out.Write(f.line)
				out.WriteByte('\n')
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			blanks := in.format != nil && in.format.name != JSON // are written
			lines := bytes.SplitAfter(content, []byte{'\n'})
			for n, line := range lines {
				line = bytes.TrimSuffix(line, []byte{'\n'})
				if n < len(lines)-1 || len(line) > 0 {
					if (blanks || len(bytes.TrimSpace(line)) > 0) && !told[n+1] {
						want.Write(line)
						want.WriteByte('\n')
					}
				}
			}
			if got[i] = out.String(); got[i] != want.String() || got[i] != got[0] {
				t.Errorf("%q: %q, want %q; told are %v; before %q", content, got[i], want.String(), told, got[0])
			}
		}
	})
}

// pieces are read in pieces of any size.
type pieces struct {
	*bytes.Reader
	r *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), 1+p.r.IntN(7))]) }
