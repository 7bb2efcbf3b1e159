// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"unsafe"
)

// ErrNotRecord says that a value is no record: nil, or nothing that has keys and values.
var ErrNotRecord = errors.New("spillway: not a record")

// AppendMap appends v, which must have keys and values, as a map: a struct, a map, attributes
// (slog.Attr, []slog.Attr, slog.Value of a group), a LogValuer or json.Marshaler that makes one, or
// a pointer to such. A map that is nil is empty. Methods that make a text of a struct or a map do
// not count here, so that its fields are written; but a struct that has none, like an error as a
// rule, is no record. Otherwise the error is ErrNotRecord, and out is dst.
func AppendMap(dst []byte, v any) (out []byte, err error) {
	switch m := v.(type) {
	case nil:
		return dst, ErrNotRecord
	case map[string]any:
		if m == nil {
			return append(dst, fixMap), nil
		}
		defer rescueMap(dst, &out)
		return appendAnyMap(dst, m, where{}), nil
	}
	defer rescueMap(dst, &out)
	out, ok := appendRecord(dst, v, where{}, 0)
	if !ok {
		return dst, ErrNotRecord
	}
	return out, nil
}

// rescueMap is rescue where a map is needed.
func rescueMap(dst []byte, out *[]byte) {
	if r := recover(); r != nil {
		b, at := BeginMap(dst, 1)
		*out = EndMap(appendPanic(appendString(b, "error"), r), at, 1)
	}
}

// appendRecord follows v to something that has keys and values. n counts how often it was led on.
func appendRecord(b []byte, v any, w where, n int) (out []byte, ok bool) {
	if v == nil || n > resolutions {
		return b, false
	}
	pl := planOf(&v)
	return appendRecordAt(b, pl.at(&v), pl, w, n)
}

func appendRecordAt(b []byte, p unsafe.Pointer, pl *typePlan, w where, n int) (out []byte, ok bool) {
	m := pl.method
	if w.addr {
		m = pl.addrMethod
	}
	switch m {
	case logValuer:
		v := resolve(slog.AnyValue(*(*any)(unsafe.Pointer(&word{pl.pointer, p}))))
		switch v.Kind() {
		case slog.KindGroup:
			return appendGroup(b, v.Group(), w), true
		case slog.KindAny:
			return appendRecord(b, v.Any(), where{path: w.path}, n+1)
		}
		return b, false
	case jsonMarshaler:
		out := appendMarshaler(b, (*(*any)(unsafe.Pointer(&word{pl.pointer, p}))).(json.Marshaler), w)
		if c := out[len(b)]; c&0xf0 == fixMap || c == map16 || c == map32 {
			return out, true
		}
	}
	switch pl.kind {
	case reflect.Pointer:
		q := *(*unsafe.Pointer)(p)
		if q == nil || n > resolutions {
			return b, false
		}
		w.addr = true
		if !pl.again {
			return appendRecordAt(b, q, pl.elem, w, n+1)
		}
		w, wrong := w.enter(b, visit{p: q, typ: unsafe.Pointer(pl.elem)})
		if wrong != "" {
			return b, false
		}
		out, ok = appendRecordAt(b, q, pl.elem, w, n+1)
		w.leave()
		return out, ok
	case reflect.Interface:
		return appendRecord(b, reflect.NewAt(pl.rtype, p).Elem().Interface(), where{path: w.path}, n+1)
	case reflect.Struct:
		if len(pl.steps) == 0 && (pl.op == opTime || m != none) {
			return b, false
		}
	case reflect.Map:
		if *(*unsafe.Pointer)(p) == nil {
			return append(b, fixMap), true
		}
	}
	out = pl.bare(b, p, pl, w)
	c := out[len(b)]
	return out, c&0xf0 == fixMap || c == map16 || c == map32
}
