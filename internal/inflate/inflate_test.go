// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

func compress(t testing.TB, b []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// gunzip is what compress/gzip makes of b, and whether that is one whole member.
func gunzip(b []byte) ([]byte, bool) {
	in := bytes.NewReader(b)
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, false
	}
	z.Multistream(false)
	out, err := io.ReadAll(io.LimitReader(z, 1<<24))
	return out, err == nil && in.Len() == 0 && len(out) < 1<<24
}

func decode(d *Decoder, src []byte) ([]byte, bool) {
	n, ok := Claimed(src)
	if !ok || n > 1<<24 {
		return nil, false
	}
	dst := bytes.Repeat([]byte{0xa5}, n+Slack)
	return dst[:n], d.Gunzip(dst, src)
}

func samples() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	skewed := make([]byte, 100_000) // codes of many lengths
	for i := range skewed {
		skewed[i] = byte(r.ExpFloat64() * 9)
	}
	var lines strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&lines, `{"n":%d,"path":"/api/v1/orders/%d","message":"user %d fetched the items"}`, i, r.IntN(1e6), r.IntN(1e5))
	}
	return map[string][]byte{
		"nothing": {}, "one": {'a'}, "short": []byte("hello, hello, hello"), "zeros": make([]byte, 70_000),
		"pairs": bytes.Repeat([]byte("ab"), 40_000), "noise": noise, "skewed": skewed, "lines": []byte(lines.String()),
		"far": append(append(noise[:30_000:30_000], make([]byte, 2000)...), noise[:30_000]...),
	}
}

func TestGunzip(t *testing.T) {
	var d Decoder
	for name, b := range samples() {
		for _, level := range []int{gzip.NoCompression, gzip.BestSpeed, 4, gzip.DefaultCompression, gzip.BestCompression, gzip.HuffmanOnly} {
			z := compress(t, b, level)
			if got, ok := decode(&d, z); !ok || !bytes.Equal(got, b) {
				t.Errorf("%s, level %d: %v, %d bytes of %d", name, level, ok, len(got), len(b))
			}
			for _, bad := range [][]byte{z[:len(z)-1], append(z[:len(z):len(z)], 0), append(z[:len(z):len(z)], z...)} {
				if _, ok := decode(&d, bad); ok {
					t.Errorf("%s, level %d: takes %d bytes of %d", name, level, len(bad), len(z))
				}
			}
		}
	}
}

// TestBroken changes single bits, of which each must be noticed, or change nothing.
func TestBroken(t *testing.T) {
	var d Decoder
	for name, b := range samples() {
		b = b[:min(len(b), 3000)]
		z := compress(t, b, 6)
		for i := range min(len(z)*8, 4000) {
			bad := bytes.Clone(z)
			bad[i/8] ^= 1 << (i % 8)
			if got, ok := decode(&d, bad); ok && !bytes.Equal(got, b) {
				t.Fatalf("%s: bit %d: other bytes", name, i)
			}
		}
	}
}

func TestAllocs(t *testing.T) {
	var d Decoder
	z := compress(t, samples()["lines"], 6)
	n, _ := Claimed(z)
	dst := make([]byte, n+Slack)
	if n := testing.AllocsPerRun(10, func() { d.Gunzip(dst, z) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzGunzip wants of any bytes what compress/gzip makes of them, or no. With a claim and a
// checksum that are put right more of them get to the end.
func FuzzGunzip(f *testing.F) {
	for _, b := range samples() {
		b = b[:min(len(b), 3000)]
		for _, level := range []int{0, 1, 6, gzip.HuffmanOnly} {
			f.Add(compress(f, b, level))
		}
	}
	var d Decoder
	f.Fuzz(func(t *testing.T, src []byte) {
		got, ok := decode(&d, src)
		if want, whole := gunzip(src); ok && (!whole || !bytes.Equal(got, want)) {
			t.Fatalf("%d bytes, where compress/gzip says %v, %d bytes", len(got), whole, len(want))
		} else if n, usual := Claimed(src); whole && usual && n == len(want) && !ok {
			t.Fatalf("no, where compress/gzip makes %d bytes", len(want))
		}
	})
}

// FuzzBoth wants what was compressed.
func FuzzBoth(f *testing.F) {
	for _, b := range samples() {
		f.Add(b[:min(len(b), 3000)], 6)
	}
	var d Decoder
	f.Fuzz(func(t *testing.T, b []byte, level int) {
		z := compress(t, b, min(max(level, gzip.HuffmanOnly), gzip.BestCompression))
		if got, ok := decode(&d, z); !ok || !bytes.Equal(got, b) {
			t.Fatalf("%v, %d bytes of %d", ok, len(got), len(b))
		}
	})
}

func BenchmarkGunzip(b *testing.B) {
	lines := samples()["lines"]
	z := compress(b, lines, 6)
	b.Run("one-go", func(b *testing.B) {
		var d Decoder
		dst := make([]byte, len(lines)+Slack)
		b.SetBytes(int64(len(lines)))
		b.ReportAllocs()
		for b.Loop() {
			if !d.Gunzip(dst, z) {
				b.Fatal("no")
			}
		}
	})
}
