// SPDX-License-Identifier: Apache-2.0

//go:build unix

package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/msgpack"
)

// discard is a handler that takes everything.
type discard struct{ events, chunks int }

func (d *discard) ServeForward(_ context.Context, c *Chunk) error {
	d.events += c.Events
	d.chunks++
	return nil
}

func (d *discard) ServeGroup(_ context.Context, chunks []*Chunk) (func(context.Context) error, error) {
	for _, c := range chunks {
		d.events += c.Events
	}
	d.chunks += len(chunks)
	return nil, nil
}

// loop is a connection that reads the same bytes again and again, step bytes at most at a time.
type loop struct {
	script
	data []byte
	at   int
	step int
	more func() bool // another round?
}

func (l *loop) Read(p []byte) (int, error) {
	if l.at == len(l.data) {
		if !l.more() {
			return 0, io.EOF
		}
		l.at = 0
	}
	n := copy(p[:min(len(p), l.step)], l.data[l.at:])
	l.at += n
	return n, nil
}

func (l *loop) Write(p []byte) (int, error) { return len(p), nil }

// replay serves data on one connection, as long as there is more.
func replay(s *Server, data []byte, step int, more func() bool) {
	s.init()
	s.serve(s.admit(&loop{data: data, at: len(data), step: step, more: more}, &s.Endpoint, nil))
}

func forwardMessage(n int) []byte {
	b := msgpack.AppendArrayHeader(nil, 3)
	b = msgpack.AppendString(b, "app.web")
	b = msgpack.AppendArrayHeader(b, n)
	b = append(b, entries(n)...)
	return append(b, unhex("81"+hexChunk)...)
}

func messages(n int, tags int, id bool) []byte {
	var b []byte
	r := ReadEntries(entries(n))
	for i := 0; ; i++ {
		e, ok := r.Next()
		if !ok {
			return b
		}
		if id {
			b = msgpack.AppendArrayHeader(b, 4)
		} else {
			b = msgpack.AppendArrayHeader(b, 3)
		}
		b = msgpack.AppendString(b, fmt.Sprintf("app.web%d", i%tags))
		b = append(b, e.Raw[1:]...)
		if id {
			b = append(b, unhex("81"+hexChunk)...)
		}
	}
}

// cpu is the time that this process has used: on a machine that others use too, it says more than
// the clock.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkDecode(b *testing.B) {
	for _, bc := range []struct {
		name   string
		data   []byte
		events int
	}{
		{"packed", packedMessage("app.web", 1000, ""), 1000},
		{"forward100", forwardMessage(100), 100},
		{"message", messages(1000, 1, false), 1000},
		{"message8tags", messages(1000, 8, false), 1000},
		{"messageAck", messages(1000, 1, true), 1000},
		{"gzip", packedMessage("app.web", 1000, "gzip"), 1000},
		{"zstd", packedMessage("app.web", 1000, "zstd"), 1000},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bc.data)))
			d := new(discard)
			before := cpu(b)
			replay(&Server{Handler: d}, bc.data, 1<<20, b.Loop)
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(d.events), "cpu-ns/event")
			if d.events != b.N*bc.events {
				b.Fatalf("%d events, want %d", d.events, b.N*bc.events)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(d.events), "ns/event")
		})
	}
}

// perEvent reports the processor time since before for each of a thousand events.
func perEvent(b *testing.B, before time.Duration) {
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N)/1000, "cpu-ns/event")
}

// BenchmarkFloor is what the figures of BenchmarkDecode are compared with.
func BenchmarkFloor(b *testing.B) {
	packed := entries(1000)
	b.Run("skip", func(b *testing.B) {
		b.SetBytes(int64(len(packed)))
		defer perEvent(b, cpu(b))
		for b.Loop() {
			for rest := packed; len(rest) > 0; {
				n, err := msgpack.Skip(rest)
				if err != nil {
					b.Fatal(err)
				}
				rest = rest[n:]
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(int64(len(packed)))
		dst := make([]byte, len(packed))
		for b.Loop() {
			copy(dst, packed)
		}
	})
	b.Run("gunzip", func(b *testing.B) { gunzips(b, packed) })
}

// gunzips decompresses packed again and again.
func gunzips(b *testing.B, packed []byte) {
	z, free, err := (&wire.Deflater{How: "gzip"}).Deflate(packed)
	if err != nil {
		b.Fatal(err)
	}
	defer free()
	var src bytes.Reader
	src.Reset(z)
	r, err := gzip.NewReader(&src)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, len(packed)+1)
	defer perEvent(b, cpu(b))
	for b.Loop() {
		src.Reset(z)
		if err := r.Reset(&src); err != nil {
			b.Fatal(err)
		}
		if n, err := io.ReadFull(r, dst); !errors.Is(err, io.ErrUnexpectedEOF) || n != len(packed) {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkServer has as many connections as there are cores, without sockets: what connections
// share shows in the processor time of an event, which stays the same where they share nothing. Run
// it with -cpu 1,2.
func BenchmarkServer(b *testing.B) {
	for _, bc := range []struct {
		name   string
		data   []byte
		events int
	}{
		{"packed", packedMessage("app.web", 1000, ""), 1000},
		{"forward100", forwardMessage(100), 100},
		{"message", messages(1000, 1, false), 1000},
		{"messageAck", messages(1000, 1, true), 1000},
		{"oneMessage", messages(1, 1, true), 1},
		{"gzip", packedMessage("app.web", 1000, "gzip"), 1000},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := &Server{Handler: nothing{}}
			s.init()
			var done atomic.Int64
			before := cpu(b)
			b.SetBytes(int64(len(bc.data)))
			b.RunParallel(func(pb *testing.PB) {
				rounds := int64(0)
				replay(s, bc.data, 1<<20, func() bool {
					if pb.Next() {
						rounds++
						return true
					}
					return false
				})
				done.Add(rounds * int64(bc.events))
			})
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(done.Load()), "cpu-ns/event")
			b.ReportMetric(float64(done.Load())/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// accessLog is n entries of which no two are alike, as those of a web server are.
func accessLog(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	var b []byte
	for i := range n {
		b = AppendEventTime(append(b, wire.CodeArray2), 1441588984+int64(i/100), rng.Uint32N(1e9))
		b = msgpack.AppendMapHeader(b, 5)
		for key, value := range map[string]string{
			"remote":  fmt.Sprintf("10.%d.%d.%d", rng.IntN(256), rng.IntN(256), rng.IntN(256)),
			"request": fmt.Sprintf("GET /shop/items/%d?session=%016x HTTP/1.1", rng.IntN(10000), rng.Uint64()),
			"agent":   "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
			"took":    fmt.Sprintf("%.6f", rng.Float64()),
		} {
			b = msgpack.AppendString(msgpack.AppendString(b, key), value)
		}
		b = msgpack.AppendInt(msgpack.AppendString(b, "size"), int64(rng.IntN(100000)))
	}
	return b
}

// BenchmarkGzip compares a server that gets gzip with a bare gunzip of the same bytes.
func BenchmarkGzip(b *testing.B) {
	for name, packed := range map[string][]byte{"repetitive": entries(1000), "accessLog": accessLog(1000)} {
		b.Run(name+"/server", func(b *testing.B) {
			data := wireOf(&Chunk{Tag: "app.web", Entries: packed, Events: 1000, ID: []byte("an id")}, "gzip")
			b.SetBytes(int64(len(packed)))
			defer perEvent(b, cpu(b))
			replay(&Server{Handler: new(discard)}, data, 1<<20, b.Loop)
		})
		b.Run(name+"/bare", func(b *testing.B) {
			b.SetBytes(int64(len(packed)))
			gunzips(b, packed)
		})
	}
}

// BenchmarkPieces shows that it costs the same however small the reads are, but for the reads.
func BenchmarkPieces(b *testing.B) {
	big := packedMessage("app.web", 8<<20/140, "")
	asForward := forwardMessage(8 << 20 / 140)
	for name, data := range map[string][]byte{"packed": big, "forward": asForward} {
		for _, step := range []int{1460, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%d", name, step), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				replay(&Server{Handler: new(discard)}, data, step, b.Loop)
			})
		}
	}
}
