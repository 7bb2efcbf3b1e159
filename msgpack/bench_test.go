// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bytes"
	"encoding/json"
	"testing"
)

// BenchmarkScan scans small events one by one, out of bytes that arrive in steps of a size.
func BenchmarkScan(b *testing.B) {
	events := smallEvents(10_000)
	for _, bb := range []struct {
		name string
		step int
	}{{"whole", len(events)}, {"64KiB", 64 << 10}, {"1460B", 1460}, {"1B", 1}} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(events)))
			b.ReportAllocs()
			var s Scanner
			for b.Loop() {
				done := 0
				for rest := events; len(rest) > 0; {
					piece := rest[:min(bb.step, len(rest))]
					rest = rest[len(piece):]
					for len(piece) > 0 {
						n, ok, err := s.Scan(piece)
						if err != nil {
							b.Fatal(err)
						}
						if ok {
							done++
						}
						piece = piece[n:]
					}
				}
				if done != 10_000 {
					b.Fatal(done)
				}
			}
		})
	}
}

// BenchmarkSkip skips small events one by one, all bytes at hand.
func BenchmarkSkip(b *testing.B) {
	events := smallEvents(10_000)
	b.SetBytes(int64(len(events)))
	b.ReportAllocs()
	for b.Loop() {
		for rest := events; len(rest) > 0; {
			n, err := Skip(rest)
			if err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
	}
}

// BenchmarkScanBin steps over bins: the time must not follow the size.
func BenchmarkScanBin(b *testing.B) {
	for _, bb := range []struct {
		name string
		size int
	}{{"1KiB", 1 << 10}, {"64KiB", 64 << 10}, {"8MiB", 8 << 20}} {
		bin := AppendBin(nil, make([]byte, bb.size))
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			var s Scanner
			for b.Loop() {
				if n, done, err := s.Scan(bin); n != len(bin) || !done || err != nil {
					b.Fatal(n, done, err)
				}
			}
		})
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	for _, bb := range []struct {
		name string
		src  []byte
	}{{"record", accessRecord()}, {"foreign", foreignRecord()}, {"events", smallEvents(1000)}} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.src)))
			b.ReportAllocs()
			dst := make([]byte, 0, 4*len(bb.src))
			for b.Loop() {
				out := dst
				for rest := bb.src; len(rest) > 0; {
					var n int
					var err error
					if out, n, err = AppendJSON(out, rest, nil); err != nil {
						b.Fatal(err)
					}
					rest = rest[n:]
				}
			}
		})
	}
}

// BenchmarkAppendJSONPairs writes a record as a line has it, with the names of an envelope
// reserved.
func BenchmarkAppendJSONPairs(b *testing.B) {
	src := accessRecord()
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	dst := make([]byte, 0, 4*len(src))
	reserved := []string{"time", "tag"}
	for b.Loop() {
		if _, _, err := AppendJSONPairs(dst, src, reserved, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendFromJSON(b *testing.B) {
	text, _, err := AppendJSON(nil, accessRecord(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var dst []byte
	r := bytes.NewReader(nil)
	d := json.NewDecoder(r)
	d.UseNumber()
	for b.Loop() {
		r.Reset(text)
		if dst, err = AppendFromJSON(dst[:0], d); err != nil {
			b.Fatal(err)
		}
	}
}
