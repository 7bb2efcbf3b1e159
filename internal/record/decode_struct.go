// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/spillwaylog/spillway/msgpack"
)

// A target is where the fields of a struct type are found again. It is made at the type's first
// use.
type target struct {
	fields []targetField // in the order in which the encoder writes them
	byName map[string]int
}

type targetField struct {
	name   string
	index  []int
	quoted bool
}

var targets sync.Map // reflect.Type → *target

func targetOf(t reflect.Type) *target {
	if known, ok := targets.Load(t); ok {
		return known.(*target)
	}
	made := &target{byName: map[string]int{}}
	for i, f := range fieldsOf(t) {
		made.byName[f.name] = i
		quoted := f.quoted
		if quoted { // as the encoder: not where a method writes the value
			e := f.typ
			if e.Kind() == reflect.Pointer {
				e = e.Elem()
			}
			quoted = methodOf(reflect.PointerTo(e)) == none
		}
		made.fields = append(made.fields, targetField{f.name, f.index, quoted})
	}
	known, _ := targets.LoadOrStore(t, made)
	return known.(*target)
}

// structure decodes a map of n pairs, which begin at b[at], into the fields of a struct. Names must
// be the same, byte for byte; keys that no field has are passed over.
func (d *decoder) structure(b []byte, n, at int, v reflect.Value) int {
	t := targetOf(v.Type())
	next := 0
	for range n {
		key, _, k, err := msgpack.ReadBytes(b[at:])
		if err != nil { // a key of another kind: no field has it
			at += lengths(b[at:], 2)
			continue
		}
		at += k
		i, ok := next, next < len(t.fields) && t.fields[next].name == string(key)
		if !ok {
			if i, ok = t.byName[string(key)]; !ok {
				at += length(b[at:])
				continue
			}
		}
		next = i + 1
		f := &t.fields[i]
		d.path = append(d.path, element{key: f.name})
		if w, ok := d.field(v, f.index); !ok {
			at += length(b[at:])
		} else if f.quoted && b[at] != 0xc0 {
			at += d.quoted(b[at:], w)
		} else {
			at += d.value(b[at:], w)
		}
		d.path = d.path[:len(d.path)-1]
	}
	return at
}

// field goes the way to a field; embedded pointers on it are set.
func (d *decoder) field(v reflect.Value, index []int) (reflect.Value, bool) {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !v.CanSet() {
					d.fail(fmt.Errorf("%w: the embedded pointer %v is not exported", ErrKind, v.Type()))
					return v, false
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v, true
}
