// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/ring"
)

func benchMover(b *testing.B, set func(c *Config)) *Mover {
	c := &Config{Name: "bench", Destination: output.Discard, Overflow: Block, MaxWait: time.Minute}
	if set != nil {
		set(c)
	}
	m, err := Open(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return m
}

// What an event costs from Append to a destination that forgets it: with one appender the mover has
// a core of its own.
func BenchmarkThrough(b *testing.B) {
	for _, size := range []int{200, 1000} {
		for _, n := range []int{1, 20} {
			b.Run(name(size, n), func(b *testing.B) {
				m := benchMover(b, nil)
				p := event{"app", 1, 1}.payload(nil, size)
				b.SetBytes(int64(len(p)))
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for g := range n {
					wg.Go(func() {
						var h ring.Hint
						for i := g; i < b.N; i += n {
							if err := m.Append(context.Background(), &h, ring.Now, false, p); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

func name(size, n int) string { return strconv.Itoa(size) + "B/" + strconv.Itoa(n) }

// What an event costs from Append to a file: goroutines with a tag each, and one whose events
// change their tag by turns.
func BenchmarkFile(b *testing.B) {
	for _, bb := range []struct{ goroutines, tags int }{{1, 1}, {20, 1}, {1, 2}, {1, 16}, {1, 20}} {
		b.Run(strconv.Itoa(bb.goroutines)+"x"+strconv.Itoa(bb.tags), func(b *testing.B) {
			d, err := output.NewFile(&output.FileConfig{Path: filepath.Join(b.TempDir(), "out.jsonl")})
			if err != nil {
				b.Fatal(err)
			}
			m := benchMover(b, func(c *Config) { c.Destination, c.Ordered = d, true })
			var payloads [][]byte
			for i := range max(bb.goroutines, bb.tags) {
				p := append(window.AppendPayload(nil, "app"+strconv.Itoa(i)), 0x81, 0xa3, 'm', 's', 'g', 0xd9, 150)
				payloads = append(payloads, append(p, strings.Repeat("x", 150)...))
			}
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for g := range bb.goroutines {
				wg.Go(func() {
					var h ring.Hint
					for i := g; i < b.N; i += bb.goroutines {
						if err := m.Append(context.Background(), &h, ring.Now, false,
							payloads[(g+i/bb.goroutines%bb.tags)%len(payloads)]); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			if err := m.Flush(context.Background()); err != nil {
				b.Error(err)
			}
		})
	}
}

func BenchmarkWaitDelivered(b *testing.B) {
	benchWait(b, func(c *Config) { c.WaitDelivered, c.MaxWait = true, time.Hour })
}

// BenchmarkPrompt is a call to a stream.
func BenchmarkPrompt(b *testing.B) {
	benchWait(b, func(c *Config) { c.Prompt = true })
}

func benchWait(b *testing.B, set func(c *Config)) {
	m := benchMover(b, set)
	p := event{"app", 1, 1}.payload(nil, 200)
	var h ring.Hint
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Append(context.Background(), &h, ring.Now, false, p); err != nil {
			b.Fatal(err)
		}
	}
}
