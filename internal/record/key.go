// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"unsafe"
)

// A keyEncoder appends a key of a map, at p and as v, as a str: records have names.
type keyEncoder func(b []byte, p unsafe.Pointer, v reflect.Value) []byte

// keyEncoderOf follows encoding/json: strings as they are, then what MarshalText says, then
// integers in decimal. All other keys, which encoding/json refuses, are what fmt makes of them.
func keyEncoderOf(t reflect.Type) keyEncoder {
	switch {
	case t.Kind() == reflect.String:
		return func(b []byte, p unsafe.Pointer, _ reflect.Value) []byte { return appendString(b, *(*string)(p)) }
	case t.Kind() == reflect.Interface:
		return func(b []byte, _ unsafe.Pointer, v reflect.Value) []byte { return appendKey(b, v.Elem()) }
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return func(b []byte, _ unsafe.Pointer, v reflect.Value) []byte { return appendTextKey(b, v) }
	}
	return func(b []byte, _ unsafe.Pointer, v reflect.Value) []byte { return appendKey(b, v) }
}

func appendKey(b []byte, v reflect.Value) []byte {
	var text [24]byte
	switch {
	case !v.IsValid():
		return appendString(b, "null")
	case v.Kind() == reflect.String:
		return appendString(b, v.String())
	case v.Type().Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return appendTextKey(b, v)
	case v.CanInt():
		return appendString(b, string(strconv.AppendInt(text[:0], v.Int(), 10)))
	case v.CanUint():
		return appendString(b, string(strconv.AppendUint(text[:0], v.Uint(), 10)))
	}
	return appendPrinted(b, v)
}

func appendTextKey(b []byte, v reflect.Value) (out []byte) {
	defer recovered(b, &out)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return appendString(b, "")
	}
	return appendText(b, v.Interface().(encoding.TextMarshaler))
}

func appendPrinted(b []byte, v reflect.Value) (out []byte) {
	defer recovered(b, &out)
	return appendString(b, fmt.Sprint(v.Interface()))
}
