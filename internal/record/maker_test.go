// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"
)

// A maker makes up types, and values of them, whose JSON is well defined.
type maker struct {
	*rand.Rand
	structs []reflect.Type // seen before: to embed a type more than once
}

func newMaker(seed uint64) *maker { return &maker{Rand: rand.New(rand.NewPCG(seed, 1))} }

var plainTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](),
	reflect.TypeFor[int32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](),
	reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[string](),
	reflect.TypeFor[string](),
	reflect.TypeFor[anInt](), reflect.TypeFor[aString](), reflect.TypeFor[celsius](), reflect.TypeFor[point](),
	reflect.TypeFor[lazyPoint](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[json.Number](),
	reflect.TypeFor[any](), reflect.TypeFor[lazyText](),
}

var keyTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[aKey](), reflect.TypeFor[int](),
	reflect.TypeFor[uint16](), reflect.TypeFor[celsius](),
}

func (m *maker) typ(depth int) reflect.Type {
	if depth <= 0 {
		return plainTypes[m.IntN(len(plainTypes))]
	}
	switch m.IntN(8) {
	case 0:
		return reflect.PointerTo(m.typ(depth - 1))
	case 1:
		e := m.typ(depth - 1)
		if e.Kind() == reflect.Uint8 {
			e = reflect.TypeFor[int]()
		}
		return reflect.SliceOf(e)
	case 2:
		return reflect.ArrayOf(m.IntN(3), m.typ(depth-1))
	case 3:
		return reflect.MapOf(keyTypes[m.IntN(len(keyTypes))], m.typ(depth-1))
	case 4:
		return plainTypes[m.IntN(len(plainTypes))]
	default:
		return m.structType(depth)
	}
}

var names = []string{"A", "B", "C", "D", "E"}

// structType embeds, repeats names and tags more than anybody would.
func (m *maker) structType(depth int) reflect.Type {
	var fields []reflect.StructField
	used := map[string]bool{}
	for i := range m.IntN(6) {
		f := reflect.StructField{Name: names[m.IntN(len(names))]}
		if m.IntN(2) == 0 && depth > 1 {
			f.Anonymous = true
			f.Name = fmt.Sprintf("Embedded%d", i)
			f.Type = m.structType(depth - 1)
			if len(m.structs) > 0 && m.IntN(3) == 0 {
				f.Type = m.structs[m.IntN(len(m.structs))]
			}
			if m.IntN(3) == 0 {
				f.Type = reflect.PointerTo(f.Type)
			}
		} else {
			f.Type = m.typ(depth - 1)
		}
		if used[f.Name] {
			continue
		}
		used[f.Name] = true
		var tag []string
		switch m.IntN(8) {
		case 0, 1:
			tag = append(tag, names[m.IntN(len(names))])
		case 2:
			tag = append(tag, []string{"-", "a b", "a\\\"b", "é", "very_long_name_of_a_field", "x/y"}[m.IntN(6)])
		default:
			tag = append(tag, "")
		}
		for _, o := range []string{"omitempty", "omitzero", "string", "other"} {
			if m.IntN(6) == 0 {
				tag = append(tag, o)
			}
		}
		if text := strings.Join(tag, ","); text != "" {
			f.Tag = reflect.StructTag(`json:"` + text + `"`)
		}
		fields = append(fields, f)
	}
	t := reflect.StructOf(fields)
	m.structs = append(m.structs, t)
	return t
}

func (m *maker) value(depth int) reflect.Value {
	v := reflect.New(m.typ(depth)).Elem()
	m.fill(v, 4)
	return v
}

func (m *maker) fill(v reflect.Value, depth int) {
	if m.IntN(5) == 0 && v.Type() != reflect.TypeFor[json.Number]() {
		return
	}
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(m.Int64N(1<<34), m.Int64N(2)*m.Int64N(1e9)).UTC()))
		return
	case reflect.TypeFor[json.Number]():
		v.SetString([]string{"0", "-1", "1.25", "12345678901234567890", "1e3"}[m.IntN(5)])
		return
	case reflect.TypeFor[lazyText]():
		v.Set(reflect.ValueOf(lazyText{"t"}))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(strings.Repeat("aé\n\"z", m.IntN(1<<m.IntN(6))))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(m.IntN(1000)) / 8)
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			m.fill(v.Elem(), depth-1)
		}
	case reflect.Interface:
		if depth > 0 {
			v.Set(m.value(depth - 2))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), m.IntN(3), 3))
		for i := range v.Len() {
			m.fill(v.Index(i), depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			m.fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range m.IntN(3) {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			m.fill(k, 0)
			m.fill(e, depth-1)
			v.SetMapIndex(k, e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			m.fill(v.Field(i), depth-1)
		}
	default:
		if v.CanInt() {
			v.SetInt(int64(m.Uint64()) >> m.IntN(64))
		} else if v.CanUint() {
			v.SetUint(m.Uint64() >> m.IntN(64))
		}
	}
}
