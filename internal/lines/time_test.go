// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
)

func TestTimeFormats(t *testing.T) {
	const clf = "02/Jan/2006:15:04:05 -0700"
	for _, tt := range []struct {
		format string
		sec    int64
		nsec   uint32
		want   string
	}{
		{"", testSec, 123456789, `"2026-11-21T02:03:04.123456789Z"`},
		{"rfc3339", -1, 999999999, `"1969-12-31T23:59:59.999999999Z"`},
		// Half a second before the year 0, not one and a half.
		{"rfc3339", yearZero - 1, 500000000, `"-62167219200.500000000"`},
		{"unix", testSec, 123456789, `1795226584.123456789`},
		{"unix", testSec, 0, `1795226584.000000000`},
		{"unix", 0, 7, `0.000000007`},
		{"unix", -1, 250000000, `-0.750000000`},
		{"unix", -2, 0, `-2.000000000`},
		{"unix", math.MinInt64, 0, `-9223372036854775808.000000000`},
		{"unix_ms", testSec, 123456789, `1795226584123`},
		{"unix_us", testSec, 123456789, `1795226584123456`},
		{"unix_ns", testSec, 5, `1795226584000000005`},
		{"unix_ms", 0, 999999, `0`},
		{"unix_ms", 0, 20000000, `20`},
		{"unix_ms", -1, 1, `-1000`}, // the millisecond that it is in, as after 1970
		{"unix_ms", -1, 999000000, `-1`},
		{"unix_ns", math.MaxInt64, 999999999, `9223372036854775807999999999`},
		{"unix_ns", math.MinInt64, 1, `-9223372036854775807999999999`},
		{clf, testSec, 5, `"21/Nov/2026:02:03:04 +0000"`},
		{"2006-01-02 15:04:05.000", testSec, 123456789, `"2026-11-21 02:03:04.123"`},
		{`"2006" 01 02 15:04:05`, testSec, 0, `"\"2026\" 11 21 02:03:04"`},
		{clf, year10000, 5, `"253402300800.000000005"`},
	} {
		e := mustEncoder(t, &Options{Tag: Omit, TimeFormat: tt.format})
		for _, before := range []uint32{tt.nsec, 1, 999999999} { // what is remembered changes nothing
			e.AppendLine(nil, "", forward.Entry{Sec: tt.sec, Nsec: before, Record: record()})
			got := e.AppendLine(nil, "", forward.Entry{Sec: tt.sec, Nsec: tt.nsec, Record: record()})
			if want := `{"time":` + tt.want + "}\n"; string(got) != want || !json.Valid(got) {
				t.Errorf("%q of %d.%09d: got %s, want %s", tt.format, tt.sec, tt.nsec, got, want)
			}
		}
	}
	for _, bad := range []string{
		"RFC3339", "unixms", "2006-01-02", "15:04:05", "Jan _2 15:04:05",
		"Mon, 02 Jan 2006 15:04:05 MST", "03:04:05 2006-01-02", "x",
	} {
		if _, err := NewEncoder(&Options{TimeFormat: bad}); !errors.Is(err, ErrTimeFormat) ||
			!strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestReadTime(t *testing.T) {
	for _, tt := range []struct {
		format, value string
		sec           int64
		nsec          uint32 // 1e9: it cannot be read
	}{
		{"", `"2026-11-21T02:03:04Z"`, testSec, 0},
		{"", `"2026-11-21T02:03:04.5+00:00"`, testSec, 500000000},
		{"", `"2026-11-21T03:33:04.123456789+01:30"`, testSec, 123456789},
		{"", `"2026-11-20T21:03:04.1234567899999-05:00"`, testSec, 123456789},
		{"", `"2026-11-21t02:03:04z"`, testSec, 0},
		{"", `"2026-11-21 02:03:04.25Z"`, testSec, 250000000},
		{"", `"2016-12-31T23:59:60.5Z"`, 1483228800, 500000000},
		{"", `"253402300800.000000007"`, year10000, 7},
		{"", `"-62167219200.500000000"`, yearZero - 1, 500000000},
		{"", `"1795226584.123456789"`, 0, nanos}, // RFC 3339 has words for it
		{"", `"1795226584123"`, 0, nanos},
		{"", `1795226584`, 0, nanos},
		{"", `"2026-11-21T02:03:04"`, 0, nanos},
		{"", `"2026-11-22T02:02:04+23:59"`, testSec, 0},
		{"", `"2026-11-21T02:03:04+24:00"`, 0, nanos},
		{"", `"2026-11-21 02:03:04.5-24:00"`, 0, nanos},
		{"", `"2026-02-30T02:03:04Z"`, 0, nanos},
		{"", `"2026-11-21T02:03:04Z and more"`, 0, nanos},
		{"", `null`, 0, nanos},
		{"", `{"seconds":1}`, 0, nanos},
		{"", `"` + strings.Repeat("2", 1000) + `"`, 0, nanos},
		{"unix", `1795226584`, testSec, 0},
		{"unix", `1795226584.1234567`, testSec, 123456700},
		{"unix", `"1795226584.123456789123"`, testSec, 123456789},
		{"unix", `1.795226584123456789E9`, testSec, 123456789},
		{"unix", `1795226584123456789e-9`, testSec, 123456789},
		{"unix", `-0.75`, -1, 250000000},
		{"unix", `-9223372036854775808`, math.MinInt64, 0},
		{"unix", `9223372036854775808`, 0, nanos},
		{"unix", `-9223372036854775809`, 0, nanos},
		{"unix", `92233720368547758080`, 0, nanos}, // ten times 1<<63, which wraps to 0
		{"unix", `-92233720368547758090`, 0, nanos},
		{"unix", `18446744073709551617`, 0, nanos},
		{"unix", `1e400`, 0, nanos},
		{"unix", `1e99999999999`, 0, nanos},
		{"unix", `"0x10"`, 0, nanos},
		{"unix", `"+1"`, 0, nanos},
		{"unix", `"1."`, 0, nanos},
		{"unix", `""`, 0, nanos},
		{"unix", `"-"`, 0, nanos},
		{"unix", `true`, 0, nanos},
		{"unix", `0`, 0, nanos},     // means now to a receiver
		{"unix", `1e-10`, 0, nanos}, // as good as 0
		{"unix", `9007199254740992.5`, 0, nanos},
		{"unix_ms", `1795226584123`, testSec, 123000000},
		{"unix_ms", `1795226584123.456789`, testSec, 123456789},
		{"unix_ms", `"-1500"`, -2, 500000000},
		{"unix_ms", `1`, 0, 1000000},
		{"unix_us", `1795226584123456`, testSec, 123456000},
		{"unix_ns", `1795226584123456789`, testSec, 123456789},
		{"2006-01-02 15:04:05", `"2026-11-21 02:03:04,123"`, testSec, 123000000},
		{"2006-01-02 15:04:05", `"2026-11-21T02:03:04"`, 0, nanos},
		{"02/Jan/2006:15:04:05 -0700", `"21/Nov/2026:04:03:04 +0200"`, testSec, 0},
		{"02/Jan/2006:15:04:05 -0700", `"21/Nov/2026:04:03:04 +2400"`, 0, nanos},
	} {
		r, err := NewReader(&ReadOptions{Time: "t", TimeFormat: tt.format})
		if err != nil {
			t.Fatal(err)
		}
		line := `{"a":1,"t" : ` + tt.value + ` ,"b":2}`
		got, e := r.AppendRecord([]byte("before"), []byte(line))
		if tt.nsec == nanos {
			if want, _ := new(Reader).AppendRecord([]byte("before"), []byte(line)); e.Time != FindingUnreadable ||
				!bytes.Equal(got, want) {
				t.Errorf("%q %s: %+v, %q", tt.format, tt.value, e, got)
			}
			continue
		}
		if e.Time != FindingSaid || e.Sec != tt.sec || e.Nsec != tt.nsec ||
			string(got) != "before"+string(record("a", 1, "b", 2)) {
			t.Errorf("%q %s: %+v, %q", tt.format, tt.value, e, got)
		}
	}
}

// FuzzReadTime: what is read from any text is written so that the same is read from it.
func FuzzReadTime(f *testing.F) {
	for _, s := range []string{
		"2026-11-21T02:03:04.5+01:30", "253402300800.000000007", "-0.75", "1.5e9",
		"1795226584123", "2016-12-31 23:59:60z", "21/Nov/2026:04:03:04 +0200",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, name := range []string{"rfc3339", "unix", "unix_ns", "02/Jan/2006:15:04:05.999999999 -0700"} {
			format, err := parseTimeFormat(name)
			if err != nil {
				t.Fatal(err)
			}
			sec, nsec, ok := format.read(nil, []byte(s), true)
			if !ok {
				continue
			}
			if nsec >= nanos {
				t.Fatalf("%s: %q: %d nanoseconds", name, s, nsec)
			}
			b, _, _ := format.append(nil, sec, nsec)
			var text string
			if json.Unmarshal(b, &text) != nil {
				text = string(b)
			}
			if again, n, ok := format.read(nil, []byte(text), true); !ok || again != sec || n != nsec {
				t.Fatalf("%s: %q is %d.%09d, written %s, read %d.%09d, %t", name, s, sec, nsec, b, again, n, ok)
			}
		}
	})
}
