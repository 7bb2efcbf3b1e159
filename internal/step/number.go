// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"math"

	"github.com/spillwaylog/spillway/msgpack"
)

// A figure is a number as it was written: an integer or a float. Integers and floats are compared
// as the numbers that they are, not as what one of them becomes in the other's form.
type figure struct {
	float    bool
	f        float64
	negative bool
	size     uint64 // of an integer, without its sign
}

func integer(n int64) figure {
	if n < 0 {
		return figure{negative: true, size: -uint64(n)}
	}
	return figure{size: uint64(n)}
}

// figureOf is the number that a token is.
func figureOf(t *msgpack.Token) (figure, bool) {
	switch t.Kind {
	case msgpack.KindInt, msgpack.KindUint:
		if n, ok := t.Int(); ok {
			return integer(n), true
		}
		n, _ := t.Uint()
		return figure{size: n}, true
	case msgpack.KindFloat32, msgpack.KindFloat64:
		return figure{float: true, f: t.Float()}, true
	}
	return figure{}, false
}

// compare returns -1, 0 or 1; ok is false where one of them is none.
func (a figure) compare(b figure) (order int, ok bool) {
	switch {
	case a.float && b.float:
		return cmp.Compare(a.f, b.f), a.f == a.f && b.f == b.f
	case a.float:
		order, ok = b.compareFloat(a.f)
		return -order, ok
	case b.float:
		return a.compareFloat(b.f)
	case a.negative != b.negative:
		if a.negative {
			return -1, true
		}
		return 1, true
	case a.negative:
		return cmp.Compare(b.size, a.size), true
	}
	return cmp.Compare(a.size, b.size), true
}

// compareFloat compares an integer with a float.
func (a figure) compareFloat(f float64) (int, bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case a.negative:
		order, ok := figure{size: a.size}.compareFloat(-f)
		return -order, ok
	case f < 0:
		return 1, true
	case f >= 1<<64:
		return -1, true
	}
	whole := math.Trunc(f)
	if order := cmp.Compare(a.size, uint64(whole)); order != 0 {
		return order, true
	}
	return -cmp.Compare(f, whole), true
}
