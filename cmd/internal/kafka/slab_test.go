// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
)

// BenchmarkFill makes records of a chunk: what the output itself does, without its client.
func BenchmarkFill(b *testing.B) {
	for name, url := range map[string]string{
		"json":    "kafka://127.0.0.1:1/logs?key={user.id}",
		"msgpack": "kafka://127.0.0.1:1/logs?key={user.id}&value=msgpack",
		"topics":  "kafka://127.0.0.1:1/logs.{tag[0]}?topics=logs.*&key={user.id}&header=user:{user.id}",
	} {
		b.Run(name, func(b *testing.B) {
			open, err := plan(url)
			must(b, err)
			made, err := open(&collector.OutputEnv{
				Log:    slog.New(slog.DiscardHandler),
				Failed: func(error, time.Duration) {}, Works: func() {}, Throttled: func() {},
			})
			must(b, err)
			defer func() { must(b, made.Close(within(b))) }()
			o := made.(*output)
			c := chunkOf("id", 0, 0)
			for c.Events < 1000 {
				c.Entries = event(c.Entries, fmt.Sprint("u", c.Events%997), c.Events, 80)
				c.Events++
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(c.Entries)))
			for b.Loop() {
				s := o.fill(c)
				if len(s.records) != c.Events {
					b.Fatal("not all are records")
				}
				o.recycle(s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.Events), "ns/event")
		})
	}
}
