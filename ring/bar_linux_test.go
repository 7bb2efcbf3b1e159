// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"hash/crc32"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkBar pairs the append of 200 bytes with what it cannot do without, in turns of a
// thousand, by the processor time of one thread: what others do on the machine meanwhile touches
// all three alike.
func BenchmarkBar(b *testing.B) {
	for _, where := range []string{"heap", "shared"} {
		b.Run(where, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			r := benchRing(b, where == "shared")
			p := make([]byte, 200)
			var h Hint
			var crc, clock, add time.Duration
			turns := 0
			b.ReportAllocs()
			for b.Loop() {
				t0 := threadTime()
				for range 1000 {
					sink += uint64(crc32.Update(0, castagnoli, p))
				}
				t1 := threadTime()
				for range 1000 {
					sink += uint64(time.Since(r.clock.base))
				}
				t2 := threadTime()
				for range 1000 {
					if _, err := r.Append(&h, Now, p); err != nil {
						b.Fatal(err)
					}
				}
				t3 := threadTime()
				r.forget()
				crc, clock, add = crc+t1-t0, clock+t2-t1, add+t3-t2
				turns++
			}
			n := float64(turns * 1000)
			b.ReportMetric(float64(crc)/n, "crc-ns")
			b.ReportMetric(float64(clock)/n, "clock-ns")
			b.ReportMetric(float64(add)/n, "append-ns")
			b.ReportMetric(float64(add-crc-clock)/n, "beyond-ns")
		})
	}
}

// BenchmarkScale has one goroutine append, then four, by turns. The ratio of throughputs is what
// was seen; that by processor time is what it would be if nobody else used the machine: an append
// that costs as much as alone, on each of the cores.
func BenchmarkScale(b *testing.B) {
	r := benchRing(b, true)
	cores := float64(min(4, runtime.GOMAXPROCS(0)))
	some := func(n int) {
		p := make([]byte, 200)
		var h Hint
		for range n {
			if _, err := r.Append(&h, Now, p); err != nil {
				b.Error(err)
				return
			}
		}
	}
	const n = 40_000
	var alone, four, aloneCPU, fourCPU time.Duration
	for b.Loop() {
		t0, c0 := time.Now(), cpuTime()
		some(n)
		t1, c1 := time.Now(), cpuTime()
		r.forget()
		t2, c2 := time.Now(), cpuTime()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { some(n / 4) })
		}
		all.Wait()
		four += time.Since(t2)
		fourCPU += cpuTime() - c2
		alone += t1.Sub(t0)
		aloneCPU += c1 - c0
		r.forget()
	}
	b.ReportMetric(float64(alone)/float64(four), "ratio")
	b.ReportMetric(float64(aloneCPU)/float64(fourCPU)*cores, "ratio-by-cpu")
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
