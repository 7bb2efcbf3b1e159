// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// A value is one of MessagePack, read by hand.
type value struct {
	kind string // nil, bool, int, float, str, bin, array, map, ext
	code byte
	n    int64 // of int and bool
	f    float64
	text string  // of str, bin and ext
	typ  int8    // of ext
	list []value // of array; of map: keys and values in turn
	raw  []byte
}

// A valueReader reads values one after another.
type valueReader struct {
	r   *bufio.Reader
	raw []byte
}

func newValueReader(r io.Reader) *valueReader { return &valueReader{r: bufio.NewReader(r)} }

// next reads a value with all that is in it.
func (v *valueReader) next() (value, error) {
	v.raw = nil
	return v.value(0)
}

func (v *valueReader) take(n int) ([]byte, error) {
	if n > 1<<28 {
		return nil, fmt.Errorf("a length of %d", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(v.r, b); err != nil {
		return nil, err
	}
	v.raw = append(v.raw, b...)
	return b, nil
}

// size reads a length of n bytes.
func (v *valueReader) size(n int) (int, error) {
	b, err := v.take(n)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-n:], b)
	u := binary.BigEndian.Uint64(wide[:])
	if u > math.MaxInt32 {
		return 0, fmt.Errorf("a length of %d", u)
	}
	return int(u), nil
}

func (v *valueReader) value(depth int) (value, error) {
	if depth > 100 {
		return value{}, fmt.Errorf("nested more than %d deep", depth)
	}
	start := len(v.raw)
	head, err := v.take(1)
	if err != nil {
		return value{}, err
	}
	x := value{code: head[0]}
	switch c := head[0]; {
	case c < 0x80 || c >= 0xe0:
		x.kind, x.n = "int", int64(int8(c))
	case c < 0x90:
		err = v.children(&x, "map", 2*int(c&15), depth)
	case c < 0xa0:
		err = v.children(&x, "array", int(c&15), depth)
	case c < 0xc0:
		err = v.bytes(&x, "str", int(c&31))
	case c == 0xc0:
		x.kind = "nil"
	case c == 0xc2, c == 0xc3:
		x.kind, x.n = "bool", int64(c&1)
	case c >= 0xc4 && c <= 0xc6:
		err = v.sized(&x, "bin", 1<<(c-0xc4), depth)
	case c >= 0xc7 && c <= 0xc9:
		err = v.sized(&x, "ext", 1<<(c-0xc7), depth)
	case c == 0xca, c == 0xcb:
		var b []byte
		if b, err = v.take(4 << (c - 0xca)); err == nil {
			x.kind = "float"
			if x.f = 0; c == 0xca {
				x.f = float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
			} else {
				x.f = math.Float64frombits(binary.BigEndian.Uint64(b))
			}
		}
	case c >= 0xcc && c <= 0xd3:
		err = v.integer(&x)
	case c >= 0xd4 && c <= 0xd8:
		err = v.ext(&x, 1<<(c-0xd4))
	case c >= 0xd9 && c <= 0xdb:
		err = v.sized(&x, "str", 1<<(c-0xd9), depth)
	case c == 0xdc, c == 0xdd:
		err = v.sized(&x, "array", 2<<(c-0xdc), depth)
	case c == 0xde, c == 0xdf:
		err = v.sized(&x, "map", 2<<(c-0xde), depth)
	default:
		err = fmt.Errorf("byte %#x is no MessagePack", c)
	}
	x.raw = v.raw[start:len(v.raw):len(v.raw)]
	return x, err
}

func (v *valueReader) integer(x *value) error {
	x.kind = "int"
	n := 1 << ((x.code - 0xcc) & 3)
	b, err := v.take(n)
	if err != nil {
		return err
	}
	var wide [8]byte
	copy(wide[8-n:], b)
	x.n = int64(binary.BigEndian.Uint64(wide[:]))
	if x.code >= 0xd0 { // signed
		shift := 64 - 8*n
		x.n = x.n << shift >> shift
	}
	return nil
}

func (v *valueReader) sized(x *value, kind string, width, depth int) error {
	n, err := v.size(width)
	if err != nil {
		return err
	}
	switch kind {
	case "array":
		return v.children(x, kind, n, depth)
	case "map":
		return v.children(x, kind, 2*n, depth)
	case "ext":
		return v.ext(x, n)
	}
	return v.bytes(x, kind, n)
}

func (v *valueReader) bytes(x *value, kind string, n int) error {
	b, err := v.take(n)
	x.kind, x.text = kind, string(b)
	return err
}

func (v *valueReader) ext(x *value, n int) error {
	typ, err := v.take(1)
	if err != nil {
		return err
	}
	x.typ = int8(typ[0])
	return v.bytes(x, "ext", n)
}

func (v *valueReader) children(x *value, kind string, n, depth int) error {
	x.kind = kind
	for range n {
		child, err := v.value(depth + 1)
		if err != nil {
			return err
		}
		x.list = append(x.list, child)
	}
	return nil
}

// get looks a key of a map up; of several that are alike the last counts.
func (x *value) get(key string) (value, bool) {
	for i := len(x.list) - 2; i >= 0 && x.kind == "map"; i -= 2 {
		if k := x.list[i]; (k.kind == "str" || k.kind == "bin") && k.text == key {
			return x.list[i+1], true
		}
	}
	return value{}, false
}

// texts appends all strs and bins in a value.
func (x *value) texts(to []string) []string {
	if x.kind == "str" || x.kind == "bin" {
		to = append(to, x.text)
	}
	for i := range x.list {
		to = x.list[i].texts(to)
	}
	return to
}
