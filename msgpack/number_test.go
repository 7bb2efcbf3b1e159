// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestPutInt(t *testing.T) {
	values := []uint64{0, math.MaxInt64, 1 << 63, math.MaxUint64}
	for _, p := range powers {
		values = append(values, p-1, p, p+1, p*5)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		values = append(values, r.Uint64()>>r.IntN(64))
	}
	var buf [24]byte
	for _, v := range values {
		if got, want := string(buf[:putUint(buf[:], 0, v)]), strconv.FormatUint(v, 10); got != want {
			t.Errorf("putUint(%s) wrote %s", want, got)
		}
		if got, want := string(buf[:putInt(buf[:], 0, int64(v))]), strconv.FormatInt(int64(v), 10); got != want {
			t.Errorf("putInt(%s) wrote %s", want, got)
		}
	}
}

func TestPutFloat(t *testing.T) {
	values := []float64{
		0, 1, 0.1, 0.2, 0.3, 0.1 + 0.2, 1.0 / 3, 100, 1e15, 1e15 - 1, 1e15 - 0.5, 1e16, 1e20, 1e21, 1e22,
		123456789012345678,
		1e-5, 1e-6, 9.999e-7, 1e-7, 1e-9, 1e-10, 1e-100, 5e-324, math.MaxFloat64, math.SmallestNonzeroFloat64, 4.35,
		0.0427, 2.675,
		999999.9999, 0.999999999, 0.9999999999, 9007199254740993, 1e14 + 0.1, 99999999999999.9,
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 200_000 {
		switch r.IntN(4) {
		case 0: // any bits
			values = append(values, math.Float64frombits(r.Uint64()))
		case 1: // short decimals, and what stands beside them
			f := float64(r.Uint64()>>(11+r.IntN(50))) / math.Pow10(r.IntN(12))
			values = append(values, f, math.Nextafter(f, 0), math.Nextafter(f, math.Inf(1)))
		case 2:
			values = append(values, r.Float64())
		case 3:
			values = append(values, r.NormFloat64()*1e6)
		}
	}
	var buf [32]byte
	for _, f := range values {
		for _, f := range []float64{f, -f} {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				continue
			}
			want, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(buf[:putFloat(buf[:24], 0, f)]); got != string(want) {
				t.Fatalf("putFloat(%s) wrote %s", want, got)
			}
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := string(buf[:putFloat(buf[:], 0, f)]); got != "null" {
			t.Errorf("putFloat(%v) wrote %s", f, got)
		}
	}
}

func BenchmarkPutFloat(b *testing.B) {
	for _, f := range []float64{200, 12.5, 0.0427, 1234.567891, 1.0 / 3} {
		b.Run(strconv.FormatFloat(f, 'g', -1, 64), func(b *testing.B) {
			var buf [32]byte
			for b.Loop() {
				putFloat(buf[:], 0, f)
			}
		})
	}
}
