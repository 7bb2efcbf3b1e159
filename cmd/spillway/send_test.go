// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/lines"
)

// TestSendTimeAndTag: time and tag of a line are its event's; where they cannot be read, the line
// is sent all the same, and that is told.
func TestSendTimeAndTag(t *testing.T) {
	url, _, stop := serve(t)
	in := `{"ts":1795226584.123456789,"logger":"a","n":1}` + "\n" +
		`{"n":2,"logger":"b","ts":"1795226585"}` + "\n" +
		`{"n":3,"logger":"a","ts":"yesterday"}` + "\n" +
		"text\n" +
		`{"n":4,"ts":1,"logger":[]}` + "\n" +
		"more text\n"
	got := command(t, in, "send", "--to", url, "--tag", "other", "--time-key", "ts", "--time-format", "unix",
		"--tag-key", "logger")
	want := `spillway: line 3: the time under "ts" cannot be read and stays in the record; it is sent with the time of its reading
spillway: line 4: no time under "ts"; it is sent with the time of its reading
spillway: line 4: no tag under "logger"; it is sent under the tag "other"
spillway: line 5: the tag under "logger" cannot be read and stays in the record; it is sent under the tag "other"
spillway: line 6: no time under "ts"; it is sent with the time of its reading
spillway: line 6: no tag under "logger"; it is sent under the tag "other"
spillway: of 6 lines, 2 without a time under "ts" and 1 with one that cannot be read were sent with the time of its reading
spillway: of 6 lines, 2 without a tag under "logger" and 1 with one that cannot be read were sent under the tag "other"
`
	if got.code != 0 || got.out != "6 acked\n" || got.err != want {
		t.Errorf("%d, %s\n%s, want\n%s", got.code, got.out, got.err, want)
	}
	out := strings.Split(stop(), "\n")
	for i, want := range []string{
		`{"time":"2026-11-21T02:03:04.123456789Z","tag":"a","n":1}`,
		`{"time":"2026-11-21T02:03:05.000000000Z","tag":"b","n":2}`,
		`"tag":"a","n":3,"ts":"yesterday"}`,
		`"tag":"other","message":"text"}`,
		`{"time":"1970-01-01T00:00:01.000000000Z","tag":"other","n":4,"logger":[]}`,
		`"tag":"other","message":"more text"}`,
		``,
	} {
		const old = `{"time":"1970-`
		if !strings.HasSuffix(out[i], want) || strings.HasPrefix(out[i], old) != strings.HasPrefix(want, old) {
			t.Errorf("line %d is %s, want %s", i, out[i], want)
		}
	}
}

func TestSendTellsAFew(t *testing.T) {
	url, _, _ := serve(t)
	got := command(t, strings.Repeat("text\n", 1000), "send", "--to", url, "--time-key", "ts")
	if got.code != 0 || strings.Count(got.err, "\n") != findsTold+1 ||
		!strings.Contains(got.err, "of 1000 lines, 1000 without a time") {
		t.Errorf("%+v", got)
	}
}

func TestSendFlags(t *testing.T) {
	for _, tc := range [][]string{
		{"--time-key", "a", "--tag-key", "a"},
		{"--time-key", "ts", "--time-format", "iso"},
		{"--time-format", "unix"},
	} {
		if got := command(t, "", append([]string{"send"}, tc...)...); got.code != 2 ||
			!strings.Contains(got.err, "--time-") {
			t.Errorf("%q: %+v", tc, got)
		}
	}
}

// TestSendInterleaved: lines come out in their order, however their tags change, and each is acked.
func TestSendInterleaved(t *testing.T) {
	url, _, stop := serve(t)
	var in, want strings.Builder
	const count = 20_000
	for i := range count {
		fmt.Fprintf(&in, `{"tag":"t%d","n":%d,"time":"2026-11-21T02:03:04Z"}`+"\n", i%7/2, i)
		fmt.Fprintf(&want, `{"time":"2026-11-21T02:03:04.000000000Z","tag":"t%d","n":%d}`+"\n", i%7/2, i)
	}
	if got := command(t, in.String(), "send", "--to", url, "--tag-key", "tag", "--time-key", "time"); got.code != 0 ||
		got.out != fmt.Sprintf("%d acked\n", count) || got.err != "" {
		t.Fatalf("%+v", got)
	}
	if got := stop(); got != want.String() {
		t.Errorf("%d bytes, want %d", len(got), want.Len())
	}
}

func BenchmarkLineBatches(b *testing.B) {
	const count = 10_000
	for _, bb := range []struct {
		name, line string
		o          lines.ReadOptions
	}{
		{"plain", `{"level":"info","msg":"order placed","id":%d}` + "\n", lines.ReadOptions{}},
		{"text", "order %d placed\n", lines.ReadOptions{}},
		{
			"interleaved", `{"time":"2026-11-21T02:03:04Z","tag":"t%d","msg":"order placed"}` + "\n",
			lines.ReadOptions{Time: "time", Tag: "tag"},
		},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var in strings.Builder
			for i := range count {
				fmt.Fprintf(&in, bb.line, i)
			}
			reader, err := lines.NewReader(&bb.o)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(in.Len()))
			b.ReportAllocs()
			for b.Loop() {
				l := newLineBatches(strings.NewReader(in.String()), reader, "tag")
				go l.read()
				for {
					if batch := l.next(b.Context()); batch.events == 0 {
						break
					}
				}
			}
		})
	}
}

// TestSendNamesLines: lines are numbered as an editor does it, blank ones counted.
func TestSendNamesLines(t *testing.T) {
	url, _, _ := serve(t)
	got := command(t, "\n\n{\"time\":\"2026-11-21T02:03:04Z\"}\n\n{\"a\":1}\n"+strings.Repeat("x", maxLine+1), "send",
		"--to", url, "--time-key", "time")
	if got.code != exitFailed || !strings.Contains(got.err, "line 5: no time") ||
		!strings.Contains(got.err, "line 6 is longer") {
		t.Errorf("%+v", got)
	}
}

// TestBatchBoundsTags: a batch of many long tags is as large as it is, not as its entries are.
func TestBatchBoundsTags(t *testing.T) {
	var b batch
	for i := 0; b.size < maxBatch; i++ {
		b.add([]byte{0x92}, &lines.Event{Tagged: lines.FindingSaid, Tag: fmt.Appendf(nil, "%01000d", i)}, "t")
	}
	if len(b.runs) > 1100 || len(b.runs) < 900 {
		t.Errorf("%d tags of 1,000 bytes are in it", len(b.runs))
	}
}
