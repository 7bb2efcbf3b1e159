// SPDX-License-Identifier: Apache-2.0

package record

import (
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// sliceWord is a slice as the runtime keeps it.
type sliceWord struct {
	data unsafe.Pointer
	len  int
	cap  int
}

func encodeSlice(b []byte, p unsafe.Pointer, pl *typePlan, w where) []byte {
	s := *(*sliceWord)(p)
	if s.data == nil {
		return msgpack.AppendNil(b)
	}
	w.addr = true
	if !pl.again {
		return appendElements(b, s.data, s.len, pl, w)
	}
	w, wrong := w.enter(b, visit{p: s.data, typ: unsafe.Pointer(pl), n: s.len})
	if wrong != "" {
		return appendString(b, wrong)
	}
	b = appendElements(b, s.data, s.len, pl, w)
	w.leave()
	return b
}

func encodeArray(b []byte, p unsafe.Pointer, pl *typePlan, w where) []byte {
	return appendElements(b, p, pl.length, pl, w)
}

func appendElements(b []byte, p unsafe.Pointer, n int, pl *typePlan, w where) []byte {
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	if n > maxSize {
		return appendString(b, large)
	}
	w.depth++
	b = msgpack.AppendArrayHeader(b, n)
	elem := pl.elem
	for i := range n {
		b = elem.enc(b, unsafe.Add(p, uintptr(i)*elem.size), elem, w)
	}
	return b
}

// appendAnys is encodeSlice for the most common type. It enters only when there is something that
// could lead back.
func appendAnys(b []byte, s []any, w where) []byte {
	if s == nil {
		return msgpack.AppendNil(b)
	}
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	if len(s) > maxSize {
		return appendString(b, large)
	}
	w.depth++
	start := len(b)
	b = msgpack.AppendArrayHeader(b, len(s))
	entered := false
	for i := range s {
		out, ok := appendScalar(b, s[i])
		if ok {
			b = out
			continue
		}
		if !entered {
			var wrong string
			w, wrong = w.enter(b, visit{p: unsafe.Pointer(unsafe.SliceData(s)), typ: anysType, n: len(s)})
			if wrong != "" {
				return appendString(b[:start], wrong)
			}
			entered = true
		}
		b = appendAny(b, s[i], w)
	}
	if entered {
		w.leave()
	}
	return b
}

func appendStrings(b []byte, s []string, w where) []byte {
	if s == nil {
		return msgpack.AppendNil(b)
	}
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	if len(s) > maxSize {
		return appendString(b, large)
	}
	b = msgpack.AppendArrayHeader(b, len(s))
	for i := range s {
		b = appendString(b, s[i])
	}
	return b
}

func encodePointer(b []byte, p unsafe.Pointer, pl *typePlan, w where) []byte {
	q := *(*unsafe.Pointer)(p)
	if q == nil {
		return msgpack.AppendNil(b)
	}
	elem := pl.elem
	w.addr = true
	if !pl.again {
		return elem.enc(b, q, elem, w)
	}
	w, wrong := w.enter(b, visit{p: q, typ: unsafe.Pointer(elem)})
	if wrong != "" {
		return appendString(b, wrong)
	}
	b = elem.enc(b, q, elem, w)
	w.leave()
	return b
}
