// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"log/slog"
	"time"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// AppendValue appends any value.
func AppendValue(dst []byte, v any) (out []byte) {
	if out, ok := appendScalar(dst, v); ok {
		return out
	}
	defer rescue(dst, &out)
	return appendAny(dst, v, where{})
}

// rescue is the last resort: what panicked in the middle of a value is taken back.
func rescue(dst []byte, out *[]byte) {
	if r := recover(); r != nil {
		*out = appendPanic(dst, r)
	}
}

// appendScalar writes the types that are most common, and from which nothing leads on.
func appendScalar(b []byte, v any) (_ []byte, ok bool) {
	if x, ok := v.(string); ok {
		return appendString(b, x), true
	}
	buf, j := full(b, scalar)
	switch x := v.(type) {
	case nil:
		return append(b, 0xc0), true
	case int:
		j = putInt(buf, j, int64(x))
	case bool:
		j = putBool(buf, j, x)
	case float64:
		j = putFloat(buf, j, x)
	case int64:
		j = putInt(buf, j, x)
	case int32:
		j = putInt(buf, j, int64(x))
	case uint64:
		j = putUint(buf, j, x)
	case uint32:
		j = putUint(buf, j, uint64(x))
	case uint16:
		j = putUint(buf, j, uint64(x))
	case uint8:
		j = putUint(buf, j, uint64(x))
	case uint:
		j = putUint(buf, j, uint64(x))
	case int16:
		j = putInt(buf, j, int64(x))
	case int8:
		j = putInt(buf, j, int64(x))
	case float32:
		j = putFloat32(buf, j, x)
	case time.Duration:
		j = putInt(buf, j, int64(x))
	case time.Time:
		return appendTime(b, x), true
	case []byte:
		return appendBytes(b, x), true
	case json.Number:
		return appendNumber(b, x), true
	default:
		return b, false
	}
	return buf[:j], true
}

// appendAny writes what an interface holds.
func appendAny(b []byte, v any, w where) []byte {
	if out, ok := appendScalar(b, v); ok {
		return out
	}
	w.addr = false
	switch x := v.(type) {
	case map[string]any:
		return appendAnyMap(b, x, w)
	case map[string]string:
		return appendStringMap(b, x, w)
	case []any:
		return appendAnys(b, x, w)
	case []string:
		return appendStrings(b, x, w)
	}
	pl := planOf(&v)
	return pl.enc(b, pl.at(&v), pl, w)
}

// at returns where the value is that v holds. It must not be kept: see hidden.
func (pl *typePlan) at(v *any) unsafe.Pointer {
	e := (*word)(unsafe.Pointer(v))
	if pl.inside {
		return hidden(unsafe.Pointer(&e.data))
	}
	return e.data
}

func encodeAny(b []byte, p unsafe.Pointer, _ *typePlan, w where) []byte {
	return appendAny(b, *(*any)(p), w)
}

// encodeMethodInterface is encodeAny for interfaces that have methods: all are kept alike.
func encodeMethodInterface(b []byte, p unsafe.Pointer, _ *typePlan, w where) []byte {
	v := *(*interface{ Method() })(p)
	if v == nil {
		return msgpack.AppendNil(b)
	}
	return appendAny(b, any(v), w)
}

func encodeSlogValue(b []byte, p unsafe.Pointer, _ *typePlan, w where) []byte {
	return appendSlogValue(b, *(*slog.Value)(p), w)
}

func encodeSlogAttr(b []byte, p unsafe.Pointer, _ *typePlan, w where) []byte {
	return appendGroup(b, unsafe.Slice((*slog.Attr)(p), 1), w)
}

func encodeSlogAttrs(b []byte, p unsafe.Pointer, _ *typePlan, w where) []byte {
	return appendGroup(b, *(*[]slog.Attr)(p), w)
}
