// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func aReport() *Report {
	server := func(v float64) *Usage {
		return &Usage{CPUSeconds: v, CPUPercent: 10 * v, CPUPerMillion: .155, Resident: 30e6, ResidentMax: 31e6}
	}
	return &Report{
		Schema: Schema, Started: time.Unix(1441588984, 0).UTC(), To: `forward://logs.example:24224?x=<&">`,
		Version: "v1", Go: "go1.26", OS: "linux", Arch: "amd64", CPUs: 1,
		Runs: []Result{
			{
				Mode: ModePacked, Compress: "none", Batch: 1000, Size: 140, Connections: 4, Ack: true, Depth: 16,
				Rate:    4e5,
				Seconds: 10, Drained: true, Offered: 400_010, Sent: 400_000,
				Acked: 400_000, Taken: 400_000, KeptUp: true,
				Latency: &Latency{Count: 4000, P50: 310, P90: 900, P99: 1500, P999: 25_000, Max: 1.5e6},
				Server:  server(3),
			},
			{
				Mode: ModePacked, Compress: "none", Batch: 1000, Size: 140, Connections: 4, Ack: true, Depth: 16,
				Rate: 2.6e6, Seconds: 10, Offered: 2_600_000, Sent: 2_000_000,
				Acked: 2_000_000, Taken: 2_000_000, Backlog: 6_000_000,
				Latency: &Latency{Count: 4000, P50: 310, P90: 900, P99: 1500, P999: 25_000, Max: 15e6},
				Server:  server(8),
			},
			{
				Mode: ModePacked, Compress: "gzip", Batch: 1000, Size: 140, Connections: 4, Rate: 0, Seconds: 10,
				Offered: 3e6,
				Sent:    3e6, Taken: 2.9e6, KeptUp: true,
			},
			{
				Mode: ModeMessage, Compress: "none", Batch: 1, Size: 140, Connections: 4, Rate: 1e6, Seconds: 1.5,
				Offered: 1e6, Sent: 9e5, Taken: 9e5, Unacked: 3, Error: "connection 1: <reset>",
			},
		},
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := aReport().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	const want = `
                     OFFERED/s     SENT/s  ACKED/s, TAKEN/s  KEPT UP     p50     p90     p99    p99.9      MAX   CPU  CPU s/M  RESIDENT  OWN CPU
       packed ×1000    400,010    400,000           400,000      yes  310 µs  900 µs  1.5 ms  25.0 ms  1500 ms  30 %    0.155     31 MB        -
       packed ×1000  2,600,000  2,000,000         2,000,000       NO  310 µs  900 µs  1.5 ms  25.0 ms     15 s  80 %    0.155     31 MB        -
  packed gzip ×1000  3,000,000  3,000,000         2,900,000        -       -       -       -        -        -     -        -         -        -
            message  1,000,000    900,000           900,000       NO       -       -       -        -        -     -        -         -        -
packed ×1000, 2,600,000/s: did not keep up: 6,000,000 events were due and not sent
packed gzip ×1000, 3,000,000/s: the server did not close the connections, so nobody knows whether it has read everything
message, 1,000,000/s: failed after 1.5 s: connection 1: <reset>
message, 1,000,000/s: 3 messages without an ack
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// keys collects the names in a JSON value, with their types, as path: type.
func keys(prefix string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			keys(prefix+"."+k, e, into)
		}
	case []any:
		for _, e := range v {
			keys(prefix+"[]", e, into)
		}
	case string:
		into[prefix] = "string"
	case float64:
		into[prefix] = "number"
	case bool:
		into[prefix] = "bool"
	case nil:
		if into[prefix] == "" {
			into[prefix] = "null"
		}
	}
}

// TestSchema holds still what programs read. Add to it; change the name of the schema before
// anything else.
func TestSchema(t *testing.T) {
	var b bytes.Buffer
	if err := aReport().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	keys("", v, got)
	want := map[string]string{}
	for kind, names := range map[string]string{
		"string": ".schema .started .to .version .go .os .arch .runs[].mode .runs[].compress .runs[].error",
		"bool":   ".runs[].ack .runs[].drained .runs[].kept_up",
		"number": `.cpus .runs[].batch .runs[].event_bytes .runs[].message_bytes .runs[].connections .runs[].depth .runs[].rate .runs[].seconds
			.runs[].drain_seconds .runs[].offered_per_s .runs[].sent_per_s .runs[].sent_bytes_per_s .runs[].acked_per_s .runs[].taken_per_s
			.runs[].backlog_events .runs[].unacked_messages
			.runs[].total.messages .runs[].total.events .runs[].total.bytes .runs[].total.acked_messages
			.runs[].latency.count .runs[].latency.mean_us .runs[].latency.p50_us .runs[].latency.p90_us .runs[].latency.p99_us
			.runs[].latency.p999_us .runs[].latency.max_us
			.runs[].server.cpu_s .runs[].server.cpu_percent .runs[].server.cpu_s_per_million
			.runs[].server.resident_bytes .runs[].server.resident_max_bytes`,
		"null": ".runs[].latency .runs[].server .runs[].generator",
	} {
		for name := range strings.FieldsSeq(names) {
			want[name] = kind
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", sorted(got), sorted(want))
	}
	var back Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != "spillway-bench-forward/1" || back.To != aReport().To || len(back.Runs) != 4 ||
		back.Runs[0].Latency.P999 != 25_000 {
		t.Errorf("%+v", back)
	}
}

func sorted(m map[string]string) []string {
	var list []string
	for k, v := range m {
		list = append(list, k+": "+v)
	}
	slices.Sort(list)
	return list
}

// wellFormed returns the text in an XML document.
func wellFormed(t *testing.T, doc string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(doc))
	var text strings.Builder
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		switch tok := tok.(type) {
		case xml.CharData:
			text.Write(tok)
			text.WriteByte('\n')
		case xml.StartElement:
			for _, a := range tok.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") ||
					strings.Contains(a.Value, "e+") {
					t.Errorf("%s=%q", a.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestSVG(t *testing.T) {
	var b strings.Builder
	if err := aReport().WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	text := wellFormed(t, b.String())
	for _, want := range []string{
		`?x=<&">`, "packed ×1000", "packed gzip ×1000", "message", "CPU of the server",
		"2,600,000/s offered", "prefers-color-scheme: dark",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in it", want)
		}
	}
	many := aReport()
	for i := range 10 {
		r := many.Runs[0]
		r.Batch += i
		many.Runs = append(many.Runs, r)
	}
	for _, r := range []*Report{
		many,
		{},
		{Runs: []Result{{}}},
		{To: "\x00\xff", Runs: []Result{{Rate: 1, Server: &Usage{}}}},
	} {
		b.Reset()
		if err := r.WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b.String())
		var table strings.Builder
		if err := r.WriteTable(&table); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAxis(t *testing.T) {
	for _, most := range []float64{1e-9, .3, 1, 1.01, 7, 9.99, 10, 11, 99, 100, 101, 2.6e6, 4.9e6, 5e6, 1e9} {
		a := axisFor(most)
		if n := len(a.ticks()) - 1; a.end < most || n < 3 || n > 10 || math.Abs(a.ticks()[n]-a.end) > a.end*1e-9 {
			t.Errorf("%v: %+v, %v", most, a, a.ticks())
		}
	}
	for _, most := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if a := axisFor(most); a.end != 1 {
			t.Errorf("%v: %+v", most, a)
		}
	}
}
