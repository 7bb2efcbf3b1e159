// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// BenchmarkState is what a commit of the cursor costs more where a step knows as many keys as it
// does without being told otherwise.
func BenchmarkState(b *testing.B) {
	s := sifterOf(b, "", Step{Dedup: &Dedup{Window: time.Hour, By: []string{"bytes"}}})
	var out Sifted
	if err := s.Sift(&out, "t", tenFields(usualKeys), 1, 0); err != nil {
		b.Fatal(err)
	}
	record, _ := s.Learnt()
	s.Settle(record)
	var state []byte
	b.ReportAllocs()
	for b.Loop() {
		state = s.AppendState(state[:0])
	}
	b.ReportMetric(float64(len(state))/usualKeys, "bytes/key")
}

// tenFields is entries of records with ten fields, 450 bytes each. Every fourth is to be dropped.
func tenFields(n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, 0x92, 0xd7, 0, 1, 2, 3, 4, 5, 6, 7, 8)
		b = msgpack.AppendMapHeader(b, 10)
		text := func(key, value string) { b = msgpack.AppendString(msgpack.AppendString(b, key), value) }
		text("level", [...]string{"INFO", "WARN", "DEBUG", "ERROR"}[i%4])
		text("msg", "request "+strings.Repeat("served ", 12))
		text("host", "web-17.example.org")
		text("path", "/api/v1/orders/17/items?"+strings.Repeat("q=x&", 16))
		text("trace", "4bf92f3577b34da6a3ce929d0e0e4736")
		text("agent", "Mozilla/5.0 (X11; Linux x86_64)")
		b = msgpack.AppendInt(msgpack.AppendString(b, "status"), 200)
		b = msgpack.AppendInt(msgpack.AppendString(b, "bytes"), int64(100_000+i))
		b = msgpack.AppendFloat64(msgpack.AppendString(b, "seconds"), 0.125)
		b = msgpack.AppendString(b, "user")
		b = msgpack.AppendMapHeader(b, 2)
		text("id", "u-123456")
		text("email", "somebody@example.org")
	}
	return b
}

// BenchmarkSift is what steps cost an event: the chain of the issue of all loggers, a mask inside
// of a map, and the copy that is made in any case.
func BenchmarkSift(b *testing.B) {
	table := filepath.Join(b.TempDir(), "hosts.csv")
	rows := "host,team\n"
	for i := range 1000 {
		rows += fmt.Sprintf("web-%d.example.org,team %d\n", i, i%10)
	}
	tableFile(b, table, rows)
	for _, test := range []struct {
		name string
		do   []Step
	}{
		{"nothing", []Step{{Drop: "missing"}}},
		{"drop+rename+set", []Step{
			{Drop: `level == "DEBUG"`},
			{Rename: Names{{"msg", "message"}}},
			{Set: Values{{"env", "production"}}},
		}},
		{"drop", []Step{{Drop: `level == "DEBUG"`}}},
		{"mask within", []Step{{Mask: []string{"user.email"}}}},
		{"throttle", []Step{{Throttle: &Throttle{Events: 1 << 20, Per: time.Minute, By: []string{"host"}}}}},
		{"dedup by a field, all are known", []Step{{Dedup: &Dedup{Window: time.Hour, By: []string{"bytes"}}}}},
		{"dedup by a field, all are new", []Step{{Dedup: &Dedup{Window: time.Hour, By: []string{"bytes"}, Keys: 500}}}},
		{"dedup", []Step{{Dedup: &Dedup{Window: time.Hour}}}},
		{"lookup", []Step{{Lookup: &Lookup{File: table, Field: "host", Columns: []string{"team"}}}}},
	} {
		b.Run(test.name, func(b *testing.B) {
			const events = 1000
			entries := tenFields(events)
			r, err := Read([]Route{{Match: "app.**", Do: test.do, To: []string{"x"}}}, []string{"x"}, 8<<20, nil)
			if err != nil {
				b.Fatal(err)
			}
			s := r.For("x")
			var into Sifted
			b.SetBytes(int64(len(entries)))
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Sift(&into, "app.web", entries, 1, 0); err != nil {
					b.Fatal(err)
				}
				record, _ := s.Learnt()
				s.Settle(record)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
		})
	}
}
