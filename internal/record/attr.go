// SPDX-License-Identifier: Apache-2.0

package record

import (
	"log/slog"
	"math"
	"reflect"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// How attributes are written: as slog's own handlers do. LogValuers are resolved; an attribute that
// is zero is left out, and so is a group in which nothing is left; the attributes of a group
// without a key stand for themselves. slog.Handler asks for these rules, and testing/slogtest
// checks them. The one about groups is applied in three places: in appendGroupAttr here, in
// appendReplacedGroup (replace.go) where a function replaces attributes, and in scope.finish
// (package spillway) for groups that WithGroup opened.

// AppendAttr appends the pairs of an attribute and tells how many they are.
func AppendAttr(dst []byte, a slog.Attr) (out []byte, n int) {
	return appendAttr(dst, &a, where{depth: 1})
}

// AppendAttrs appends the pairs of attributes and tells how many they are.
func AppendAttrs(dst []byte, attrs []slog.Attr) (out []byte, n int) {
	return appendAttrs(dst, attrs, where{depth: 1})
}

func appendAttrs(b []byte, attrs []slog.Attr, w where) (out []byte, n int) {
	buf, j := b[:cap(b)], len(b)
	for i := range attrs {
		a := &attrs[i]
		v := (*valueWord)(unsafe.Pointer(&a.Value))
		if len(buf)-j < header+len(a.Key)+header+scalar {
			if len(a.Key) > maxSize {
				a = &slog.Attr{Key: large, Value: a.Value}
			}
			buf = grow(buf, j, header+len(a.Key)+header+scalar)
		}
		switch v.any.typ {
		case stringWord:
			j = putString(buf, j, a.Key)
			s := unsafe.String((*byte)(v.any.data), int(v.num))
			if len(buf)-j < header+len(s) {
				buf, j = full(appendString(buf[:j], s), 0)
				break
			}
			j = putString(buf, j, s)
		case kindWord:
			j = putString(buf, j, a.Key)
			switch *(*slog.Kind)(v.any.data) {
			case slog.KindInt64, slog.KindDuration:
				j = putInt(buf, j, int64(v.num))
			case slog.KindUint64:
				j = putUint(buf, j, v.num)
			case slog.KindBool:
				j = putBool(buf, j, v.num == 1)
			case slog.KindFloat64:
				j = putFloat(buf, j, math.Float64frombits(v.num))
			default:
				buf, j = full(appendSlogValue(buf[:j], a.Value, w), 0)
			}
		default:
			b, k := appendRareAttr(buf[:j], a, w)
			buf, j = b[:cap(b)], len(b)
			n += k - 1
		}
	}
	return buf[:j], n + len(attrs)
}

func appendAttr(b []byte, a *slog.Attr, w where) (out []byte, n int) {
	return appendAttrs(b, unsafe.Slice(a, 1), w)
}

// appendRareAttr writes what may be more than a scalar. Here a bug would be rescued.
func appendRareAttr(b []byte, a *slog.Attr, w where) (out []byte, n int) {
	key, v := a.Key, a.Value
	switch v.Kind() {
	case slog.KindTime:
		return appendTime(appendString(b, key), v.Time()), 1
	case slog.KindAny:
		x := v.Any()
		if key == "" && x == nil {
			return b, 0
		}
		b, n = appendString(b, key), 1
		defer rescue(b, &out)
		return appendAny(b, x, w), n
	case slog.KindGroup, slog.KindLogValuer:
		return appendUnresolved(b, key, v, w)
	}
	return appendSlogValue(appendString(b, key), v, w), 1
}

// appendUnresolved writes a group, or what a LogValuer stands for.
func appendUnresolved(b []byte, key string, v slog.Value, w where) (out []byte, n int) {
	if v.Kind() == slog.KindGroup {
		return appendGroupAttr(b, key, v.Group(), w)
	}
	w, wrong := w.enter(b, visitOf(v.LogValuer(), w))
	if wrong != "" {
		return appendString(appendString(b, key), wrong), 1
	}
	b, n = appendAttr(b, &slog.Attr{Key: key, Value: resolve(v)}, w)
	w.leave()
	return b, n
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

// groupsDeep is how many groups stand inside each other before they are watched: a group can hold
// itself only by writing to the slice that it was made of.
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
