// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bytes"
	"math"
	"strconv"
	"testing"
)

func TestAppend(t *testing.T) {
	for _, v := range vectors {
		if v.write == nil {
			continue
		}
		want := v.bytes(t)
		if got := v.write(nil); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", v.name, got, want)
		}
		if got := v.write([]byte("before")); !bytes.Equal(got, append([]byte("before"), want...)) {
			t.Errorf("%s: behind other bytes: %x, want %x", v.name, got, want)
		}
	}
}

// The headers of what is too large to build.
func TestAppendLargeHeader(t *testing.T) {
	const n = math.MaxInt32
	for _, tt := range []struct {
		name string
		got  []byte
		want []byte
	}{
		{"str", AppendStringHeader(nil, n), []byte{0xdb, 0x7f, 0xff, 0xff, 0xff}},
		{"bin", AppendBinHeader(nil, n), []byte{0xc6, 0x7f, 0xff, 0xff, 0xff}},
		{"ext", AppendExtHeader(nil, -2, n), []byte{0xc9, 0x7f, 0xff, 0xff, 0xff, 0xfe}},
		{"array", AppendArrayHeader(nil, n), []byte{0xdd, 0x7f, 0xff, 0xff, 0xff}},
		{"map", AppendMapHeader(nil, n), []byte{0xdf, 0x7f, 0xff, 0xff, 0xff}},
	} {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("%s: %x, want %x", tt.name, tt.got, tt.want)
		}
	}
}

func TestAppendHeaderPanics(t *testing.T) {
	counts := []int{-1, math.MinInt}
	if strconv.IntSize == 64 {
		counts = append(counts, math.MaxInt)
	}
	for _, n := range counts {
		for name, f := range map[string]func(){
			"str":   func() { AppendStringHeader(nil, n) },
			"bin":   func() { AppendBinHeader(nil, n) },
			"ext":   func() { AppendExtHeader(nil, 0, n) },
			"array": func() { AppendArrayHeader(nil, n) },
			"map":   func() { AppendMapHeader(nil, n) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s of %d: no panic", name, n)
					}
				}()
				f()
			}()
		}
	}
}
