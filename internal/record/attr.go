// SPDX-License-Identifier: Apache-2.0

package record

import (
	"log/slog"
	"reflect"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// How attributes are written: as slog's own handlers do. LogValuers are resolved; an attribute that is zero is left out, and so is a
// group in which nothing is left; the attributes of a group without a key stand for themselves.

// AppendAttr appends the pairs of an attribute and tells how many they are.
func AppendAttr(dst []byte, a slog.Attr) (out []byte, n int) {
	return appendAttr(dst, &a, where{depth: 1})
}

// AppendAttrs appends the pairs of attributes and tells how many they are.
func AppendAttrs(dst []byte, attrs []slog.Attr) (out []byte, n int) {
	return appendAttrs(dst, attrs, where{depth: 1})
}

func appendAttrs(b []byte, attrs []slog.Attr, w where) (out []byte, n int) {
	for i := range attrs {
		var k int
		b, k = appendAttr(b, &attrs[i], w)
		n += k
	}
	return b, n
}

func appendAttr(b []byte, a *slog.Attr, w where) (out []byte, n int) {
	if uint64(len(a.Key)) > longest {
		b, k := appendAttr(b, &slog.Attr{Key: "!SIZE", Value: a.Value}, w)
		return b, k
	}
	buf, j := full(b, header+len(a.Key)+scalar)
	switch a.Value.Kind() {
	case slog.KindString:
		j = putString(buf, j, a.Key)
		return appendString(buf[:j], a.Value.String()), 1
	case slog.KindInt64:
		j = putInt(buf, putString(buf, j, a.Key), a.Value.Int64())
	case slog.KindUint64:
		j = putUint(buf, putString(buf, j, a.Key), a.Value.Uint64())
	case slog.KindFloat64:
		j = putFloat(buf, putString(buf, j, a.Key), a.Value.Float64())
	case slog.KindBool:
		j = putBool(buf, putString(buf, j, a.Key), a.Value.Bool())
	case slog.KindDuration:
		j = putInt(buf, putString(buf, j, a.Key), int64(a.Value.Duration()))
	case slog.KindTime:
		j = putString(buf, j, a.Key)
		return appendTime(buf[:j], a.Value.Time()), 1
	default:
		return appendRareAttr(b, a, w)
	}
	return buf[:j], 1
}

// appendRareAttr writes what may be more than a scalar. Here a bug would be rescued.
func appendRareAttr(b []byte, a *slog.Attr, w where) (out []byte, n int) {
	key, v := a.Key, a.Value
	if v.Kind() == slog.KindAny {
		x := v.Any()
		if key == "" && x == nil {
			return b, 0
		}
		b = appendString(b, key)
		defer rescue(b, &out)
		return appendAny(b, x, w), 1
	}
	return appendUnresolved(b, key, v, w)
}

func appendUnresolved(b []byte, key string, v slog.Value, w where) (out []byte, n int) {
	if v.Kind() == slog.KindLogValuer {
		l := v.LogValuer()
		inner, wrong := w.enter(b, visitOf(l, w))
		if wrong != "" {
			return appendString(appendString(b, key), wrong), 1
		}
		v = resolve(v)
		if v.Kind() != slog.KindGroup {
			b, n = appendAttr(b, &slog.Attr{Key: key, Value: v}, inner)
		} else {
			b, n = appendGroupAttr(b, key, v.Group(), inner)
		}
		inner.leave()
		return b, n
	}
	return appendGroupAttr(b, key, v.Group(), w)
}

// visitOf identifies a LogValuer, if it is a pointer.
func visitOf(l slog.LogValuer, w where) visit {
	x := any(l)
	pl := planOf(&x)
	if pl.kind == reflect.Pointer {
		return visit{p: (*word)(unsafe.Pointer(&x)).data, typ: unsafe.Pointer(pl.elem), n: -1}
	}
	return visit{typ: unsafe.Pointer(pl), n: -1 - w.unique(nil)}
}

// groupsDeep is how many groups stand inside each other before they are watched: a group can hold itself only by writing to the slice
// that it was made of.
const groupsDeep = 8

func appendGroupAttr(b []byte, key string, attrs []slog.Attr, w where) (out []byte, n int) {
	if len(attrs) == 0 {
		return b, 0
	}
	if w.depth >= Depth {
		return appendString(appendString(b, key), deep), 1
	}
	w.depth++
	if w.depth > groupsDeep {
		v, wrong := w.enter(b, visit{p: unsafe.Pointer(unsafe.SliceData(attrs)), typ: groupType, n: len(attrs)})
		if wrong != "" {
			return appendString(appendString(b, key), wrong), 1
		}
		w = v
		defer w.leave()
	}
	if key == "" {
		return appendAttrs(b, attrs, w)
	}
	start := len(b)
	b, at := BeginMap(appendString(b, key), len(attrs))
	b, n = appendAttrs(b, attrs, w)
	if n == 0 {
		return b[:start], 0
	}
	return EndMap(b, at, n), 1
}

var groupType = unsafe.Pointer(new(int))

// appendGroup writes attributes as a map, empty if nothing is left of them.
func appendGroup(b []byte, attrs []slog.Attr, w where) []byte {
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	w.depth++
	b, at := BeginMap(b, len(attrs))
	b, n := appendAttrs(b, attrs, w)
	return EndMap(b, at, n)
}

// appendSlogValue writes a value without a key.
func appendSlogValue(b []byte, v slog.Value, w where) []byte {
	switch v.Kind() {
	case slog.KindString:
		return appendString(b, v.String())
	case slog.KindInt64:
		return msgpack.AppendInt(b, v.Int64())
	case slog.KindUint64:
		return msgpack.AppendUint(b, v.Uint64())
	case slog.KindFloat64:
		return msgpack.AppendFloat64(b, v.Float64())
	case slog.KindBool:
		return msgpack.AppendBool(b, v.Bool())
	case slog.KindDuration:
		return msgpack.AppendInt(b, int64(v.Duration()))
	case slog.KindTime:
		return appendTime(b, v.Time())
	case slog.KindGroup:
		return appendGroup(b, v.Group(), w)
	default: // a LogValuer too: its plan resolves it
		return appendAny(b, v.Any(), w)
	}
}
