// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// BenchmarkGunzip is the least that a server has to do for the gzip messages that a run sends:
// decompress them. SPILLWAY_RECORDS names a file as --events does.
func BenchmarkGunzip(b *testing.B) {
	o, err := Options{Compress: "gzip", Dial: (&Dialer{}).Dial}.resolve()
	if err != nil {
		b.Fatal(err)
	}
	c, err := newCompressor("gzip")
	if err != nil {
		b.Fatal(err)
	}
	m := &maker{size: o.Size, when: time.Now()}
	if file := os.Getenv("SPILLWAY_RECORDS"); file != "" {
		f, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		if m.records, err = ReadRecords(f); err != nil {
			b.Fatal(err)
		}
	}
	var bodies [][]byte
	for range variants {
		var e entries
		if err := e.fill(o.Batch, m); err != nil {
			b.Fatal(err)
		}
		body, err := c.compress(nil, e.bytes)
		if err != nil {
			b.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	var in bytes.Reader
	in.Reset(bodies[0])
	z, err := gzip.NewReader(&in)
	if err != nil {
		b.Fatal(err)
	}
	out := make([]byte, 64<<10)
	plain, messages := 0, 0
	before, _ := usageOf([]int{os.Getpid()})
	b.ReportAllocs()
	for b.Loop() {
		in.Reset(bodies[messages%len(bodies)])
		messages++
		if err := z.Reset(&in); err != nil {
			b.Fatal(err)
		}
		for {
			n, err := z.Read(out)
			plain += n
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	if m.records == nil && plain != messages*o.Batch*(o.Size+1) {
		b.Fatalf("%d bytes in %d messages", plain, messages)
	}
	b.ReportMetric(float64(len(bodies[0])), "bytes/message")
	if after, err := usageOf([]int{os.Getpid()}); err == nil { // CPU and not time: others may use the machine
		b.ReportMetric((after.cpu-before.cpu).Seconds()/float64(messages*o.Batch)*1e6, "CPU-s/Mevents")
	}
}
