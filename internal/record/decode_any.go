// SPDX-License-Identifier: Apache-2.0

package record

import (
	"math"
	"reflect"

	"github.com/spillwaylog/spillway/msgpack"
)

var mapType = reflect.TypeFor[map[string]any]()

// any decodes without a type to go by: nil, bool, int64, uint64 where an int64 is too small,
// float64, string, []byte, time.Time, []any and map[string]any.
func (d *decoder) any(b []byte) (v any, n int) {
	t, n, _ := msgpack.ReadToken(b)
	switch t.Kind {
	case msgpack.KindBool:
		return t.Bool(), n
	case msgpack.KindInt, msgpack.KindUint:
		if i, ok := t.Int(); ok {
			return i, n
		}
		u, _ := t.Uint()
		return u, n
	case msgpack.KindFloat32, msgpack.KindFloat64:
		return t.Float(), n
	case msgpack.KindStr:
		return string(b[n : n+t.Len]), n + t.Len
	case msgpack.KindBin:
		return append(make([]byte, 0, t.Len), b[n:n+t.Len]...), n + t.Len
	case msgpack.KindExt:
		return d.extension(t, b[n:n+t.Len]), n + t.Len
	case msgpack.KindArray:
		list := make([]any, 0, min(t.Len, firstRoom/16))
		for i := range t.Len {
			d.path = append(d.path, element{index: i})
			e, k := d.any(b[n:])
			d.path = d.path[:len(d.path)-1]
			list = append(list, e)
			n += k
		}
		return list, n
	case msgpack.KindMap:
		m := make(map[string]any, min(t.Len, firstRoom/64))
		return m, d.anyMap(b, t.Len, n, m)
	}
	return nil, n
}

// anyMap decodes n pairs, which begin at b[at], into m. Of a repeated key the last counts.
func (d *decoder) anyMap(b []byte, n, at int, m map[string]any) int {
	for range n {
		var key string
		key, at = d.key(b, at)
		d.path = append(d.path, element{key: key})
		v, k := d.any(b[at:])
		d.path = d.path[:len(d.path)-1]
		m[key] = v
		at += k
	}
	return at
}

// anyMapInto is anyMap for the whole of b, which should be a map.
func (d *decoder) anyMapInto(b []byte, m *map[string]any) {
	t, at, _ := msgpack.ReadToken(b)
	switch t.Kind {
	case msgpack.KindMap:
		if *m == nil {
			*m = make(map[string]any, min(t.Len, firstRoom/64))
		}
		d.anyMap(b, t.Len, at, *m)
	case msgpack.KindNil:
		*m = nil
	default:
		d.mismatch(t.Kind, mapType)
	}
}

// extension is an ext without a type to go by: a time, or the text that it has in JSON.
func (d *decoder) extension(t msgpack.Token, data []byte) any {
	if when, ok := eventTime(t, data); ok {
		return when
	}
	return d.extText(t, data)
}

func (d *decoder) extText(t msgpack.Token, data []byte) string {
	if d.ext == nil {
		return string(data)
	}
	text := d.ext(nil, t.Ext, data)
	if n := len(text); n >= 2 && text[0] == '"' {
		text = text[1 : n-1]
	}
	return string(text)
}

// whole returns a float as an integer, if it is one.
func whole(f float64) (int64, bool) {
	return int64(f), f == math.Trunc(f) && f >= -1<<63 && f < 1<<63
}
