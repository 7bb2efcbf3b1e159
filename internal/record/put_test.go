// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// What is put is what package msgpack appends.
func TestPut(t *testing.T) {
	check := func(name string, v any, got, want []byte) {
		t.Helper()
		if !bytes.Equal(got, want) {
			t.Errorf("%s %v: %x, want %x", name, v, got, want)
		}
	}
	for shift := range 64 {
		for _, d := range []uint64{0, 1, math.MaxUint64} {
			u := uint64(1)<<shift + d
			buf, j := full(nil, scalar)
			check("uint", u, buf[:putUint(buf, j, u)], msgpack.AppendUint(nil, u))
			for _, i := range []int64{int64(u), -int64(u)} {
				check("int", i, buf[:putInt(buf, j, i)], msgpack.AppendInt(nil, i))
			}
		}
	}
	buf := make([]byte, scalar)
	for _, f := range []float64{0, math.Copysign(0, -1), 1.5, math.Inf(1), math.NaN()} {
		check("float", f, buf[:putFloat(buf, 0, f)], msgpack.AppendFloat64(nil, f))
		check("float32", f, buf[:putFloat32(buf, 0, float32(f))], msgpack.AppendFloat32(nil, float32(f)))
	}
	for _, n := range []int{0, 1, 31, 32, 255, 256, 65535, 65536, 1 << 20} {
		s := strings.Repeat("x", n)
		check("string", n, appendString(nil, s), msgpack.AppendString(nil, s))
	}
}

func TestTime(t *testing.T) {
	check := func(at time.Time) {
		t.Helper()
		want := msgpack.AppendString(nil, at.Format(time.RFC3339Nano))
		if got := appendTime(nil, at); !bytes.Equal(got, want) {
			t.Fatalf("%v: %q, want %q", at, got, want)
		}
	}
	for year := -2; year <= 10001; year++ {
		for _, d := range [][2]int{{1, 1}, {2, 28}, {2, 29}, {3, 1}, {12, 31}} {
			check(time.Date(year, time.Month(d[0]), d[1], 23, 59, 59, 999_999_999, time.UTC))
			check(time.Date(year, time.Month(d[0]), d[1], 0, 0, 0, 0, time.FixedZone("", -12*3600)))
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		at := time.Unix(r.Int64N(400_000_000_000)-100_000_000_000, r.Int64N(1e9))
		switch r.IntN(4) {
		case 0:
			at = at.UTC()
		case 1:
			at = at.In(time.FixedZone("", r.IntN(100_000)-50_000)) // seconds are cut off, as package time does
		case 2:
			at = at.Truncate(time.Duration(math.Pow10(r.IntN(10)))).UTC()
		}
		check(at)
	}
	check(time.Time{})
	check(time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 200_000)))
}
