// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"hash/crc32"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

var sink uint64

// BenchmarkBare is what an append cannot do without: the check of 200 bytes, and one reading of the
// monotonic clock.
func BenchmarkBare(b *testing.B) {
	p := make([]byte, 200)
	base := time.Now()
	b.Run("crc", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sink += uint64(crc32.Update(0, castagnoli, p))
		}
	})
	b.Run("clock", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sink += uint64(time.Since(base))
		}
	})
}

func benchRing(b *testing.B, shared bool) *Ring {
	keepFor = time.Hour
	o := &Options{Size: 16 << 20}
	if shared {
		o.Dir = sharedDir(b)
	}
	r, err := Open(o)
	needs.Have(b, err == nil, "memory for a ring: %v", err)
	b.Cleanup(func() { r.Close() })
	if r.backing != nil {
		r.warm(b)
	}
	return r
}

// BenchmarkOpen opens a ring of the default size and closes it, alone and beside a thousand others
// of the process.
func BenchmarkOpen(b *testing.B) {
	for _, beside := range []int{0, 1000} {
		b.Run(strconv.Itoa(beside), func(b *testing.B) {
			o := &Options{Dir: sharedDir(b)}
			for range beside {
				r, err := Open(o)
				needs.Have(b, err == nil, "memory for rings: %v", err)
				b.Cleanup(func() { r.Close() })
			}
			b.ReportAllocs()
			for b.Loop() {
				r, err := Open(o)
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// drain reads and cuts in the background until stopped.
func drain(r *Ring) (stop func()) {
	var quit atomic.Bool
	var done sync.WaitGroup
	wake := make(chan struct{}, 1)
	r.SetPressure(r.Size() / 4)
	r.SetWake(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	done.Go(func() {
		for !quit.Load() {
			last := uint64(0)
			for n := 0; n < 4096; n++ {
				rec, ok, _ := r.Next()
				if !ok {
					break
				}
				last = rec.Key
			}
			r.Cut(last)
			if !r.Sleep() {
				<-wake
			}
		}
	})
	return func() {
		quit.Store(true)
		r.callWake()
		done.Wait()
	}
}

// BenchmarkAppend appends 200 bytes from one goroutine and from four. The ring is emptied without
// reading, by a cut of what one goroutine's lane leaves behind, so that what is measured is the
// appenders' work.
func BenchmarkAppend(b *testing.B) {
	for _, where := range []string{"heap", "shared"} {
		for _, n := range []int{1, 4} {
			b.Run(where+"/"+string(rune('0'+n)), func(b *testing.B) {
				r := benchRing(b, where == "shared")
				b.ReportAllocs()
				b.ResetTimer()
				before := cpuTime()
				var left atomic.Int64
				left.Store(int64(b.N))
				var all sync.WaitGroup
				for range n {
					all.Go(func() {
						p := make([]byte, 200)
						var h Hint
						for {
							if left.Add(-1024) < -1024 {
								return
							}
							for range 1024 {
								if _, err := r.Append(&h, Now, p); err != nil {
									b.Error(err)
									return
								}
							}
							r.forget()
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
	runtime.KeepAlive(sink)
}

// forget frees all segments but those to which lanes append now, as though everything in them were
// done.
func (r *Ring) forget() {
	r.retired.mu.Lock()
	defer r.retired.mu.Unlock()
	for i := range r.lanes.all {
		first := &r.lanes.all[i].first
		for s := r.pool.segment(first.Load()); s != nil && s.closed.Load(); s = r.pool.segment(first.Load()) {
			first.Store(int32(r.head.place(s.next.off)) + 1)
			r.giveBack(s)
		}
	}
}

// BenchmarkNext reads what two lanes hold by turns, and cuts.
func BenchmarkNext(b *testing.B) {
	r := benchRing(b, true)
	p := make([]byte, 200)
	var h [2]Hint
	b.ReportAllocs()
	for n := 0; n < b.N; n += 8192 {
		b.StopTimer()
		for i := range 8192 {
			if _, err := r.Append(&h[i/100%2], Now, p); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		for {
			rec, ok, err := r.Next()
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
			sink = rec.Key
		}
		r.Cut(sink)
	}
}

// BenchmarkThrough is the whole way: four goroutines append, the reader reads and cuts.
func BenchmarkThrough(b *testing.B) {
	r := benchRing(b, true)
	stop := drain(r)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		p := make([]byte, 200)
		var h Hint
		for pb.Next() {
			for {
				if _, err := r.Append(&h, Now, p); err == nil {
					break
				}
				<-r.Space()
			}
		}
	})
	b.StopTimer()
	stop()
}

func sharedDir(tb testing.TB) string {
	tb.Helper()
	return tb.TempDir() + "/rings"
}
