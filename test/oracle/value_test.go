// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"flag"
	"math"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/spillwaylog/spillway/msgpack"
)

// TestMain keeps rapid from writing files beside the tests; it prints the seed of what fails.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A value is nil, bool, int64, uint64, float32, float64, string, []byte, []any or map[string]any of
// values.

// scalars are values without parts; strings of several sizes, so that each header comes up.
func scalars() *rapid.Generator[any] {
	str := rapid.OneOf(rapid.String(), rapid.StringN(30, 300, -1), rapid.Just(string(make([]byte, 1<<16))))
	return rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Int64().AsAny(),
		rapid.Uint64().AsAny(),
		rapid.Int64Range(-40, 300).AsAny(),
		rapid.Float32().AsAny(),
		rapid.Float64().AsAny(),
		rapid.SampledFrom([]any{
			math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), int64(math.MinInt64),
			uint64(math.MaxUint64),
		}),
		str.AsAny(),
		rapid.SliceOfN(rapid.Byte(), 0, 300).AsAny(),
	)
}

// values nest at most depth deep.
func values(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return scalars()
	}
	part := rapid.Deferred(func() *rapid.Generator[any] { return values(depth - 1) })
	return rapid.OneOf(
		scalars(),
		rapid.SliceOfN(part, 0, 20).AsAny(),
		rapid.MapOfN(rapid.String(), part, 0, 20).AsAny(),
	)
}

// appendValue appends a value with package msgpack.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return msgpack.AppendNil(b)
	case bool:
		return msgpack.AppendBool(b, v)
	case int64:
		return msgpack.AppendInt(b, v)
	case uint64:
		return msgpack.AppendUint(b, v)
	case float32:
		return msgpack.AppendFloat32(b, v)
	case float64:
		return msgpack.AppendFloat64(b, v)
	case string:
		return msgpack.AppendString(b, v)
	case []byte:
		return msgpack.AppendBin(b, v)
	case []any:
		b = msgpack.AppendArrayHeader(b, len(v))
		for _, e := range v {
			b = appendValue(b, e)
		}
		return b
	case map[string]any:
		b = msgpack.AppendMapHeader(b, len(v))
		for k, e := range v {
			b = appendValue(msgpack.AppendString(b, k), e)
		}
		return b
	}
	panic("no value")
}

// same tells whether two values mean the same, whatever Go types a decoder chose for numbers.
func same(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k := range a {
			if e, ok := b[k]; !ok || !same(a[k], e) {
				return false
			}
		}
		return true
	case []byte:
		b, ok := b.([]byte)
		return ok && string(a) == string(b)
	}
	if x, ok := a.(float64); ok && math.IsNaN(x) {
		y, ok := b.(float64)
		return ok && math.IsNaN(y)
	}
	if x, ok := a.(float32); ok && x != x {
		y, ok := b.(float32)
		return ok && y != y
	}
	return plain(a) == plain(b)
}

// plain gives integers one type: int64, or uint64 beyond it.
func plain(v any) any {
	switch v := v.(type) {
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case int:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	}
	return v
}
