// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"fmt"

	"github.com/spillwaylog/spillway/msgpack"
)

// decodeMap returns the record b as a Go map; nil if b is none.
func decodeMap(b []byte) map[string]any {
	v, _ := decode(b)
	m, _ := v.(map[string]any)
	return m
}

// decode returns the value at the start of b and what follows it. What cannot be read is nil, with nothing behind it. Only records
// of this process get here, so that nothing but their own depth bounds the depth.
func decode(b []byte) (v any, rest []byte) {
	t, n, err := msgpack.ReadToken(b)
	if err != nil {
		return nil, nil
	}
	b = b[n:]
	switch t.Kind {
	case msgpack.Bool:
		return t.Bool(), b
	case msgpack.Int, msgpack.Uint:
		if i, ok := t.Int(); ok {
			return i, b
		}
		u, _ := t.Uint()
		return u, b
	case msgpack.Float32, msgpack.Float64:
		return t.Float(), b
	case msgpack.Str, msgpack.Bin, msgpack.Ext:
		if len(b) < t.Len {
			return nil, nil
		}
		p, rest := b[:t.Len], b[t.Len:]
		switch t.Kind {
		case msgpack.Str:
			return string(p), rest
		case msgpack.Bin:
			return append([]byte{}, p...), rest
		}
		return fmt.Sprintf("ext:%d:%x", t.Ext, p), rest
	case msgpack.Array:
		list := []any{}
		for range t.Len {
			if len(b) == 0 {
				break
			}
			var e any
			e, b = decode(b)
			list = append(list, e)
		}
		return list, b
	case msgpack.Map:
		m := map[string]any{}
		for range t.Len {
			if len(b) == 0 {
				break
			}
			var k, e any
			k, b = decode(b)
			e, b = decode(b)
			if s, ok := k.(string); ok {
				m[s] = e
			} else {
				m[fmt.Sprint(k)] = e
			}
		}
		return m, b
	}
	return nil, b
}
