// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// FuzzLZ4: what is compressed is the same again, whatever its length, for the client's own reader.
func FuzzLZ4(f *testing.F) {
	f.Add([]byte(`{"level":"info","msg":"served"}`), uint(1), uint(0))
	f.Add([]byte(`{"level":"info","msg":"served"}`), uint(10_000), uint(3))
	f.Add([]byte{}, uint(0), uint(lz4Block))
	f.Add([]byte("a"), uint(lz4Block), uint(lz4Block+1))
	frames, reader := newLZ4(), kgo.DefaultDecompressor()
	f.Fuzz(func(t *testing.T, text []byte, times, noise uint) {
		src := bytes.Repeat(text, int(times%(1<<20/uint(max(len(text), 1))+1)))
		r := rand.New(rand.NewPCG(uint64(times), uint64(noise)))
		for range noise % (1 << 20) {
			src = append(src, byte(r.Uint32()))
		}
		var room bytes.Buffer
		out, codec := frames.Compress(&room, src)
		got, err := reader.Decompress(out, codec)
		if err != nil || !bytes.Equal(got, src) {
			t.Fatalf("%d bytes become %d, and those %d: %v", len(src), len(out), len(got), err)
		}
	})
}

// BenchmarkLZ4 compresses a batch of JSON, as this output does it and as the client does.
func BenchmarkLZ4(b *testing.B) {
	o, src := idle(b, "kafka://127.0.0.1:1/logs?key={user.id}"), []byte(nil)
	for i := 0; len(src) < 900_000; i++ {
		s := o.fill(chunkOf("id", i*1000, 1000))
		src = append(src, s.bytes...)
		o.recycle(s)
	}
	client, err := kgo.DefaultCompressor(kgo.Lz4Compression())
	must(b, err)
	for name, c := range map[string]kgo.Compressor{"frames": newLZ4(), "client": client} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			var room bytes.Buffer
			n := 0
			for b.Loop() {
				room.Reset()
				out, _ := c.Compress(&room, src)
				n = len(out)
			}
			b.ReportMetric(float64(len(src))/float64(n), "ratio")
		})
	}
}
