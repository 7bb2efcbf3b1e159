// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"math"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// An Expression is a part of a condition that this package does not understand itself, compiled.
type Expression struct {
	Fields [][]string // the names that lead to each field that it looks at; none: to the tag

	// Holds says whether it holds for the values of these fields, in their order: nil, which a
	// field that is missing is as well, bool, int, uint64 for a larger number, float64, string,
	// []any, map[string]any or Opaque. It keeps none of them: texts lie in the entry. An error
	// makes the step fail. One goroutine calls it at a time.
	Holds func(values []any) (bool, error)
}

// Opaque stands for a value that is nothing else.
type Opaque struct{}

// A Compiler compiles expressions. A mistake in one is a *Fault.
type Compiler func(text string) (*Expression, error)

// A Fault is a mistake at a byte of a text.
type Fault struct {
	At     int
	Text   string
	Syntax bool // of a Compiler: no more is known than that it is no expression
	final  bool // of the parser: it is no expression either
}

// Error returns Text.
func (f *Fault) Error() string { return f.Text }

// A compiled is an expression of a condition.
type compiled struct {
	*Expression
	paths  []path
	values []any
}

// holds says what the expression says. Where that fails, the step does.
func (x *compiled) holds(e *event) bool {
	for i, p := range x.paths {
		if p == nil {
			x.values[i] = e.tag
			continue
		}
		var err error
		left := maxValues
		if x.values[i], err = valueOf(e.get(p), &left); err != nil {
			return e.fail(err)
		}
	}
	holds, err := x.Holds(x.values)
	clear(x.values)
	if err != nil {
		return e.fail(err)
	}
	return holds
}

// fail notes why the step that runs fails.
func (e *event) fail(err error) bool {
	e.failed = err
	return false
}

// maxValues is how many values an expression gets of one field: each is several times what it is
// in the record.
const maxValues = 10_000

// errValues says that there are more.
var errValues = errors.New("a field of an expression has more than 10,000 values")

// valueOf decodes a value, of at most left values.
func valueOf(b []byte, left *int) (any, error) {
	if b == nil {
		return nil, nil
	}
	if text, ok := textOf(b); ok {
		return unsafe.String(unsafe.SliceData(text), len(text)), nil // the entry stays as it is meanwhile
	}
	t, n, err := msgpack.ReadToken(b)
	if err != nil {
		return nil, err
	}
	if t.Kind == msgpack.KindArray || t.Kind == msgpack.KindMap {
		if *left -= t.Len; *left < 0 {
			return nil, errValues
		}
	}
	switch t.Kind {
	case msgpack.KindNil:
		return nil, nil
	case msgpack.KindBool:
		return t.Bool(), nil
	case msgpack.KindInt, msgpack.KindUint:
		if i, ok := t.Int(); ok && i >= math.MinInt && i <= math.MaxInt {
			return int(i), nil
		} else if ok { // of 64 bits where int has 32: exact up to 53
			return float64(i), nil
		}
		u, _ := t.Uint()
		return u, nil
	case msgpack.KindFloat32, msgpack.KindFloat64:
		return t.Float(), nil
	case msgpack.KindArray:
		list := make([]any, t.Len)
		for i := range list {
			k := size(b[n:])
			if list[i], err = valueOf(b[n:n+k], left); err != nil {
				return nil, err
			}
			n += k
		}
		return list, nil
	case msgpack.KindMap:
		m := make(map[string]any, t.Len)
		for range t.Len {
			key, value := pair(b[n:])
			n += len(key) + len(value)
			if name, ok := nameOf(key); ok {
				if m[string(name)], err = valueOf(value, left); err != nil {
					return nil, err
				}
			}
		}
		return m, nil
	}
	return Opaque{}, nil
}
