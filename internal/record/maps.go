// SPDX-License-Identifier: Apache-2.0

package record

import (
	"reflect"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// How maps are written. Those with plain strings as keys and a common type of values are ranged
// over as what they are, whatever the name of the map's type; all others by reflection, with a key
// and a value that are pooled. The order is the one in which Go ranges over maps. The header has
// the number of pairs that were written, for a method called on the way may change the map.

// mapPlan chooses the encoder of a map type.
func (b *builder) mapPlan(pl *typePlan, t reflect.Type) {
	pl.bare = encodeMap
	pl.elem = b.plan(t.Elem())
	pl.key = keyEncoderOf(t.Key())
	pl.scratch.New = func() any { return newScratch(t) }
	if t.Key() != reflect.TypeFor[string]() {
		return
	}
	switch t.Elem() {
	case reflect.TypeFor[any]():
		pl.bare = encodeAnyMap
	case reflect.TypeFor[string]():
		pl.bare = encodeStringMap
	case reflect.TypeFor[bool]():
		pl.bare = encodeMapOf[bool]
	case reflect.TypeFor[int]():
		pl.bare = encodeMapOf[int]
	case reflect.TypeFor[int64]():
		pl.bare = encodeMapOf[int64]
	case reflect.TypeFor[float64]():
		pl.bare = encodeMapOf[float64]
	}
}

// anyMapType and anysType stand for types that are met without a plan.
var (
	anyMapType = unsafe.Pointer(new(int))
	anysType   = unsafe.Pointer(new(int))
)

func encodeAnyMap(b []byte, p unsafe.Pointer, _ *typePlan, w where) []byte {
	return appendAnyMap(b, *(*map[string]any)(p), w)
}

func encodeStringMap(b []byte, p unsafe.Pointer, _ *typePlan, w where) []byte {
	return appendStringMap(b, *(*map[string]string)(p), w)
}

// appendAnyMap enters the map only when there is something in it that could lead back.
func appendAnyMap(b []byte, m map[string]any, w where) []byte {
	if m == nil {
		return msgpack.AppendNil(b)
	}
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	w.depth++
	w.addr = false
	start, size := len(b), len(m)
	b = msgpack.AppendMapHeader(b, size)
	entered, n := false, 0
	buf, j := b[:cap(b)], len(b)
	for k, v := range m {
		n++
		if len(buf)-j < header+len(k)+header+scalar {
			if len(k) > maxSize {
				k = large
			}
			buf = grow(buf, j, header+len(k)+header+scalar)
		}
		j = putString(buf, j, k)
		switch x := v.(type) {
		case string:
			if len(buf)-j < header+len(x) {
				buf, j = full(appendString(buf[:j], x), 0)
			} else {
				j = putString(buf, j, x)
			}
			continue
		case int:
			j = putInt(buf, j, int64(x))
			continue
		case bool:
			j = putBool(buf, j, x)
			continue
		case float64:
			j = putFloat(buf, j, x)
			continue
		}
		out, ok := appendScalar(buf[:j], v)
		if ok {
			buf, j = out[:cap(out)], len(out)
			continue
		}
		b = buf[:j]
		if !entered {
			var wrong string
			w, wrong = w.enter(b, visit{p: *(*unsafe.Pointer)(unsafe.Pointer(&m)), typ: anyMapType})
			if wrong != "" {
				return appendString(b[:start], wrong)
			}
			entered = true
		}
		b = appendAny(b, v, w)
		buf, j = b[:cap(b)], len(b)
	}
	b = buf[:j]
	if entered {
		w.leave()
	}
	if n != size {
		return EndMap(b, start, n)
	}
	return b
}

func appendStringMap(b []byte, m map[string]string, w where) []byte {
	if m == nil {
		return msgpack.AppendNil(b)
	}
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	b = msgpack.AppendMapHeader(b, len(m))
	for k, v := range m {
		b = appendString(b, k)
		b = appendString(b, v)
	}
	return b
}

func encodeMapOf[V any](b []byte, p unsafe.Pointer, pl *typePlan, w where) []byte {
	m := *(*map[string]V)(p)
	if m == nil {
		return msgpack.AppendNil(b)
	}
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	b = msgpack.AppendMapHeader(b, len(m))
	for k, v := range m {
		b = appendString(b, k)
		b = pl.elem.bare(b, hidden(unsafe.Pointer(&v)), pl.elem, where{})
	}
	return b
}

// A scratch holds what ranging over a map by reflection needs.
type scratch struct {
	m          unsafe.Pointer // the map, in memory of the heap: reflect keeps its address
	iter       reflect.MapIter
	key, value reflect.Value
}

func newScratch(t reflect.Type) *scratch {
	return &scratch{key: reflect.New(t.Key()).Elem(), value: reflect.New(t.Elem()).Elem()}
}

func encodeMap(b []byte, p unsafe.Pointer, pl *typePlan, w where) []byte {
	m := *(*unsafe.Pointer)(p)
	if m == nil {
		return msgpack.AppendNil(b)
	}
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	if pl.again {
		var wrong string
		if w, wrong = w.enter(b, visit{p: m, typ: unsafe.Pointer(pl)}); wrong != "" {
			return appendString(b, wrong)
		}
		defer w.leave()
	}
	w.depth++
	w.addr = false
	s := pl.scratch.Get().(*scratch)
	s.m = m
	v := reflect.NewAt(pl.rtype, unsafe.Pointer(&s.m)).Elem()
	b, at := BeginMap(b, v.Len())
	s.iter.Reset(v)
	n := 0
	key, value := s.key.Addr().UnsafePointer(), s.value.Addr().UnsafePointer()
	for s.iter.Next() {
		n++
		s.key.SetIterKey(&s.iter)
		s.value.SetIterValue(&s.iter)
		b = pl.key(b, key, s.key)
		b = pl.elem.enc(b, value, pl.elem, w)
	}
	s.iter.Reset(reflect.Value{})
	s.key.SetZero()
	s.value.SetZero()
	s.m = nil
	pl.scratch.Put(s)
	return EndMap(b, at, n)
}
