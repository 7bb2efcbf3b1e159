// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/bench/internal/peers"
)

// BenchmarkTen logs a message with ten fields, about 320 bytes of JSON.
func BenchmarkTen(b *testing.B) {
	r := peers.TheRequest
	locals(b, func(l peers.Local, _ int) { l.Ten(&r) })
}

// BenchmarkOne logs a message with one field.
func BenchmarkOne(b *testing.B) {
	locals(b, peers.Local.One)
}

// BenchmarkLine logs a text of 1,000 bytes.
func BenchmarkLine(b *testing.B) {
	text := strings.Repeat("#", 1000)
	locals(b, func(l peers.Local, _ int) { l.Line(text) })
}

func locals(b *testing.B, call func(l peers.Local, n int)) {
	for _, to := range []string{"nothing", "file"} {
		for _, kind := range peers.Locals {
			b.Run(to+"/"+kind.Name, func(b *testing.B) {
				path := ""
				if to == "file" {
					path = filepath.Join(b.TempDir(), "log")
				}
				l, err := kind.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					call(l, n)
					n++
				}
				b.StopTimer()
				if err := l.Close(); err != nil {
					b.Error(err)
				}
				if d := l.Dropped(); d > 0 {
					b.ReportMetric(float64(d)/float64(n), "dropped/op")
				}
			})
		}
	}
}

// BenchmarkTenParallel is BenchmarkTen from as many goroutines as there are processors.
func BenchmarkTenParallel(b *testing.B) {
	for _, kind := range peers.Locals {
		b.Run(kind.Name, func(b *testing.B) {
			l, err := kind.Open("")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := peers.TheRequest
				for pb.Next() {
					l.Ten(&r)
				}
			})
			b.StopTimer()
			if err := l.Close(); err != nil {
				b.Error(err)
			}
			if d := l.Dropped(); d > 0 {
				b.ReportMetric(float64(d)/float64(b.N), "dropped/op")
			}
		})
	}
}

// BenchmarkCall is what the calls alone cost: the mover gets time of its own, which is not
// measured, to bring away each burst before the ring is full. The contenders that write in the call
// are beside it, with the same pauses.
func BenchmarkCall(b *testing.B) {
	const burst = 10_000
	r := peers.TheRequest
	for _, what := range []struct {
		name string
		call func(l peers.Local, n int)
	}{
		{"ten", func(l peers.Local, _ int) { l.Ten(&r) }},
		{"one", peers.Local.One},
	} {
		for _, kind := range peers.Locals {
			if kind.Async && !strings.HasPrefix(kind.Name, "spillway") {
				continue // they cannot be asked to finish a burst
			}
			b.Run(what.name+"/"+kind.Name, func(b *testing.B) {
				l, err := kind.Open("")
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					if n++; n%burst == 0 {
						b.StopTimer()
						if f, ok := l.(interface{ Flush() error }); ok {
							if err := f.Flush(); err != nil {
								b.Fatal(err)
							}
						}
						b.StartTimer()
					}
					what.call(l, n)
				}
				b.StopTimer()
				if err := l.Close(); err != nil {
					b.Error(err)
				}
				if d := l.Dropped(); d > 0 {
					b.ReportMetric(float64(d)/float64(n), "dropped/op")
				}
			})
		}
	}
}
