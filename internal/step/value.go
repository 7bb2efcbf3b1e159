// SPDX-License-Identifier: Apache-2.0

package step

import (
	"github.com/spillwaylog/spillway/msgpack"
)

// size returns the length of the value at the start of b; 0 where there is none. Most values of
// records are short: for these the first byte says it.
func size(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	n := 0
	switch c := b[0]; {
	case c < 0x80, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		n = 1
	case c&0xe0 == 0xa0:
		n = 1 + int(c&0x1f)
	case c == 0xd9 && len(b) > 1:
		n = 2 + int(b[1])
	case c == 0xca, c == 0xce, c == 0xd2:
		n = 5
	case c == 0xcb, c == 0xcf, c == 0xd3:
		n = 9
	default:
		n, err := msgpack.Skip(b)
		if err != nil {
			return 0
		}
		return n
	}
	if n > len(b) {
		return 0
	}
	return n
}

// nameOf returns the text of a key; ok is false for one that is neither str nor bin, which no path
// names.
func nameOf(key []byte) (text []byte, ok bool) {
	if c := key[0]; c&0xe0 == 0xa0 {
		return key[1:], true
	}
	p, _, n, err := msgpack.ReadBytes(key)
	return p, err == nil && n == len(key)
}

// textOf returns the bytes of a str or bin.
func textOf(value []byte) ([]byte, bool) {
	switch c := value[0]; {
	case c&0xe0 == 0xa0:
		return value[1:], true
	case c != 0xd9 && c != 0xda && c != 0xdb && (c < 0xc4 || c > 0xc6):
		return nil, false
	}
	p, _, _, err := msgpack.ReadBytes(value)
	return p, err == nil
}

// isMap says whether a value is a map, and returns what stands behind its header.
func isMap(value []byte) (pairs int, rest []byte, ok bool) {
	if c := value[0]; c&0xf0 == 0x80 {
		return int(c & 0x0f), value[1:], true
	} else if c != 0xde && c != 0xdf {
		return 0, nil, false
	}
	t, n, err := msgpack.ReadToken(value)
	if err != nil {
		return 0, nil, false
	}
	return t.Len, value[n:], true
}

// pair returns the key and the value at the start of b, which is inside of a map; both are nil
// where b ends before.
func pair(b []byte) (key, value []byte) {
	k := size(b)
	if k == 0 {
		return nil, nil
	}
	v := size(b[k:])
	if v == 0 {
		return nil, nil
	}
	return b[:k:k], b[k : k+v : k+v]
}

// member returns the value of a key of a map; of a key that is there twice the last one.
func member(value []byte, n *name) (found []byte) {
	pairs, rest, ok := isMap(value)
	if !ok {
		return nil
	}
	for range pairs {
		key, v := pair(rest)
		if key == nil {
			return nil
		}
		if text, ok := nameOf(key); ok && string(text) == n.text {
			found = v
		}
		rest = rest[len(key)+len(v):]
	}
	return found
}
