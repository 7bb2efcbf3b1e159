// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// An op is a type that the steps of a struct write without a call.
type op uint8

const (
	opOther op = iota // by its plan
	opBool
	opInt
	opInt8
	opInt16
	opInt32
	opInt64
	opUint
	opUint8
	opUint16
	opUint32
	opUint64
	opFloat32
	opFloat64
	opString
	opTime
)

// scalars are the kinds without parts. Those that are not in it have encoders of their own.
var scalars = map[reflect.Kind]struct {
	op  op
	enc encoder
}{
	reflect.Bool:          {opBool, encodeBool},
	reflect.Int:           {opInt, encodeInt[int]},
	reflect.Int8:          {opInt8, encodeInt[int8]},
	reflect.Int16:         {opInt16, encodeInt[int16]},
	reflect.Int32:         {opInt32, encodeInt[int32]},
	reflect.Int64:         {opInt64, encodeInt[int64]},
	reflect.Uint:          {opUint, encodeUint[uint]},
	reflect.Uint8:         {opUint8, encodeUint[uint8]},
	reflect.Uint16:        {opUint16, encodeUint[uint16]},
	reflect.Uint32:        {opUint32, encodeUint[uint32]},
	reflect.Uint64:        {opUint64, encodeUint[uint64]},
	reflect.Uintptr:       {opUint, encodeUint[uintptr]},
	reflect.Float32:       {opFloat32, encodeFloat32},
	reflect.Float64:       {opFloat64, encodeFloat64},
	reflect.String:        {opString, encodeString},
	reflect.Complex64:     {opOther, encodeForeign},
	reflect.Complex128:    {opOther, encodeForeign},
	reflect.Chan:          {opOther, encodeForeign},
	reflect.Func:          {opOther, encodeForeign},
	reflect.UnsafePointer: {opOther, encodeForeign},
}

func encodeBool(b []byte, p unsafe.Pointer, _ *typePlan, _ where) []byte {
	return msgpack.AppendBool(b, *(*bool)(p))
}

func encodeInt[T int | int8 | int16 | int32 | int64](b []byte, p unsafe.Pointer, _ *typePlan, _ where) []byte {
	return msgpack.AppendInt(b, int64(*(*T)(p)))
}

func encodeUint[T uint | uint8 | uint16 | uint32 | uint64 | uintptr](b []byte, p unsafe.Pointer, _ *typePlan,
	_ where,
) []byte {
	return msgpack.AppendUint(b, uint64(*(*T)(p)))
}

func encodeFloat32(b []byte, p unsafe.Pointer, _ *typePlan, _ where) []byte {
	return msgpack.AppendFloat32(b, *(*float32)(p))
}

func encodeFloat64(b []byte, p unsafe.Pointer, _ *typePlan, _ where) []byte {
	return msgpack.AppendFloat64(b, *(*float64)(p))
}

func encodeString(b []byte, p unsafe.Pointer, _ *typePlan, _ where) []byte {
	return appendString(b, *(*string)(p))
}

func encodeBytes(b []byte, p unsafe.Pointer, _ *typePlan, _ where) []byte {
	return appendBytes(b, *(*[]byte)(p))
}

func encodeTime(b []byte, p unsafe.Pointer, _ *typePlan, _ where) []byte {
	return appendTime(b, *(*time.Time)(p))
}

func encodeNumber(b []byte, p unsafe.Pointer, _ *typePlan, _ where) []byte {
	return appendNumber(b, *(*json.Number)(p))
}

// appendNumber writes a number as what it is, and any other text as text. No text at all is 0, as
// for encoding/json.
func appendNumber(b []byte, n json.Number) []byte {
	if n == "" {
		return msgpack.AppendInt(b, 0)
	}
	if last := n[len(n)-1]; (n[0] != '-' && !isDigit(n[0])) || !isDigit(last) || !json.Valid([]byte(n)) {
		return appendString(b, string(n))
	}
	if v, err := strconv.ParseInt(string(n), 10, 64); err == nil && n != "-0" {
		return msgpack.AppendInt(b, v)
	}
	if v, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return msgpack.AppendUint(b, v)
	}
	v, err := strconv.ParseFloat(string(n), 64)
	if err != nil { // beyond a float64
		return appendString(b, string(n))
	}
	return msgpack.AppendFloat64(b, v)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// encodeForeign stands for what has no form outside the process.
func encodeForeign(b []byte, p unsafe.Pointer, pl *typePlan, _ where) []byte {
	switch pl.kind {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		if *(*unsafe.Pointer)(p) == nil {
			return msgpack.AppendNil(b)
		}
	}
	return appendString(b, "!TYPE: "+pl.rtype.String())
}

// encodeQuoted is option "string" of a field, a scalar or a pointer to one: its JSON text as a
// string.
func encodeQuoted(b []byte, p unsafe.Pointer, pl *typePlan, w where) []byte {
	pl = pl.elem
	if pl.kind == reflect.Pointer {
		if p = *(*unsafe.Pointer)(p); p == nil {
			return msgpack.AppendNil(b)
		}
		pl = pl.elem
	}
	if pl.rtype == reflect.TypeFor[json.Number]() {
		return appendString(b, cmp.Or(*(*string)(p), "0"))
	}
	start := len(b)
	b = pl.bare(b, p, pl, w)
	out, _, err := msgpack.AppendJSON(b, b[start:], nil)
	if err != nil {
		return b
	}
	// The text moves to where the value was. Its header fits: it is never longer than the value
	// that has such a text.
	text := out[len(b):]
	b = msgpack.AppendStringHeader(out[:start], len(text))
	n := copy(out[len(b):cap(out)], text)
	return out[:len(b)+n]
}
