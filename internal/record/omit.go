// SPDX-License-Identifier: Apache-2.0

package record

import (
	"reflect"
	"unsafe"
)

// skip returns the function that says when a field is left out, or nil if it never is.
func (f field) skip() func(p unsafe.Pointer, w where) bool {
	var empty func(p unsafe.Pointer) bool
	var zero func(p unsafe.Pointer, w where) bool
	if f.omitEmpty {
		empty = emptiness(f.typ)
	}
	if f.omitZero {
		zero = zeroness(f.typ)
	}
	switch {
	case empty != nil && zero != nil:
		return func(p unsafe.Pointer, w where) bool { return empty(p) || zero(p, w) }
	case empty != nil:
		return func(p unsafe.Pointer, _ where) bool { return empty(p) }
	}
	return zero
}

// emptiness is option "omitempty".
func emptiness(t reflect.Type) func(p unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) bool { return *(*string)(p) == "" }
	case reflect.Slice:
		return func(p unsafe.Pointer) bool { return (*sliceWord)(p).len == 0 }
	case reflect.Map:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().Len() == 0 }
	case reflect.Array:
		if t.Len() == 0 {
			return func(unsafe.Pointer) bool { return true }
		}
		return nil
	case reflect.Interface, reflect.Pointer: // an interface holds nothing if its first word is nil
		return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
	case reflect.Struct, reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return nil
	}
	switch t.Size() {
	case 1:
		return func(p unsafe.Pointer) bool { return *(*uint8)(p) == 0 }
	case 2:
		return func(p unsafe.Pointer) bool { return *(*uint16)(p) == 0 }
	case 4:
		return func(p unsafe.Pointer) bool { return *(*uint32)(p) == 0 }
	}
	return func(p unsafe.Pointer) bool { return *(*uint64)(p) == 0 }
}

// zeroness is option "omitzero": what the method IsZero says, or whether all bytes are zero.
func zeroness(t reflect.Type) func(p unsafe.Pointer, w where) bool {
	type zeroer interface{ IsZero() bool }
	is := reflect.TypeFor[zeroer]()
	ask := func(v reflect.Value) (zero bool) {
		defer func() {
			if recover() != nil {
				zero = false
			}
		}()
		return v.Interface().(zeroer).IsZero()
	}
	switch {
	case t.Kind() == reflect.Interface && t.Implements(is):
		return func(p unsafe.Pointer, _ where) bool {
			v := reflect.NewAt(t, p).Elem()
			return v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() || ask(v)
		}
	case t.Kind() == reflect.Pointer && t.Implements(is):
		return func(p unsafe.Pointer, _ where) bool {
			v := reflect.NewAt(t, p).Elem()
			return v.IsNil() || ask(v)
		}
	case t.Implements(is):
		return func(p unsafe.Pointer, _ where) bool { return ask(reflect.NewAt(t, p)) }
	case reflect.PointerTo(t).Implements(is):
		return func(p unsafe.Pointer, w where) bool {
			v := reflect.NewAt(t, p)
			if !w.addr { // not a variable: the method gets one of its own
				v = reflect.New(t)
				v.Elem().Set(reflect.NewAt(t, p).Elem())
			}
			return ask(v)
		}
	}
	return func(p unsafe.Pointer, _ where) bool { return reflect.NewAt(t, p).Elem().IsZero() }
}
