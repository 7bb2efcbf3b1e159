// SPDX-License-Identifier: Apache-2.0

package window

import (
	"strconv"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/ring"
)

// Cutting windows of what lies in a ring.
func BenchmarkCut(b *testing.B) {
	payloads := map[string][]byte{"fields": tenFields()}
	for _, size := range []int{50, 200, 1000} {
		p := append(AppendPayload(nil, "app"), 0x81, 0xa1, 'p', 0xda, byte(size>>8), byte(size))
		payloads[strconv.Itoa(size)] = append(p, strings.Repeat("x", size)...)
	}
	for name, p := range payloads {
		b.Run(name, func(b *testing.B) {
			w := NewCutter(false, &Buffers{})
			r, err := ring.Open(nil)
			if err != nil {
				b.Fatal(err)
			}
			s := &Feed{Ring: r, Own: true}
			var h ring.Hint
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for done := 0; done < b.N; {
				b.StopTimer()
				for range 10000 {
					if _, err := r.Append(&h, ring.Now, p); err != nil {
						break
					}
				}
				b.StartTimer()
				for w.Cut(s, 1<<20) {
					done += int(w.Taken)
					for i := range w.Chunks() {
						var k Marked
						w.Take(i, &k)
						k.Release(w.mem)
					}
					w.Done()
				}
			}
		})
	}
}

// tenFields is an event as a log call makes it, of 450 bytes.
func tenFields() []byte {
	p := append(AppendPayload(nil, "app"), 0x8a)
	for i := range 10 {
		p = append(append(p, 0xa8), "field"+strconv.Itoa(100+i)...)
		if i%3 == 0 {
			p = append(p, 0xce, 1, 2, 3, 4)
			continue
		}
		p = append(append(p, 0xd9, 50), strings.Repeat("x", 50)...)
	}
	return p
}
