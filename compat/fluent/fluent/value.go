// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

var (
	errKeys  = errors.New("msgp: map keys must be strings")
	errDepth = fmt.Errorf("fluent: %w, or it contains itself", msgpack.ErrDepth)
)

// maxDepth leaves room for what stands around a record.
const maxDepth = msgpack.DefaultDepth - 8

// appendAny appends any value. The commonest types go first, without reflection.
func appendAny(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return msgpack.AppendNil(b), nil
	case string:
		return msgpack.AppendString(b, v), nil
	case int:
		return msgpack.AppendInt(b, int64(v)), nil
	case int64:
		return msgpack.AppendInt(b, v), nil
	case uint64:
		return msgpack.AppendUint(b, v), nil
	case float64:
		return msgpack.AppendFloat64(b, v), nil
	case bool:
		return msgpack.AppendBool(b, v), nil
	case []byte:
		return msgpack.AppendBin(b, v), nil
	case time.Time:
		return appendTime(b, v), nil
	case map[string]string:
		b = msgpack.AppendMapHeader(b, len(v))
		for k, s := range v {
			b = msgpack.AppendString(b, k)
			b = msgpack.AppendString(b, s)
		}
		return b, nil
	case map[string]any:
		if depth >= maxDepth {
			return b, errDepth
		}
		b = msgpack.AppendMapHeader(b, len(v))
		for k, e := range v {
			b = msgpack.AppendString(b, k)
			var err error
			if b, err = appendAny(b, e, depth+1); err != nil {
				return b, err
			}
		}
		return b, nil
	case []any:
		if depth >= maxDepth {
			return b, errDepth
		}
		b = msgpack.AppendArrayHeader(b, len(v))
		for _, e := range v {
			var err error
			if b, err = appendAny(b, e, depth+1); err != nil {
				return b, err
			}
		}
		return b, nil
	}
	rv := reflect.ValueOf(v)
	return planOf(rv.Type()).append(b, rv, depth)
}

// append appends a value of the plan's type.
func (p *typePlan) append(b []byte, v reflect.Value, depth int) ([]byte, error) {
	// Before any of its methods is called.
	if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
		return msgpack.AppendNil(b), nil
	}
	if depth > maxDepth {
		return b, errDepth
	}
	switch p.how {
	case asMarshaler:
		return appendMarshaler(b, v.Interface().(msgp.Marshaler))
	case asExtension:
		return appendExtension(b, v.Interface().(msgp.Extension))
	case asTime:
		return appendTime(b, v.Interface().(time.Time)), nil
	case asNumber:
		return appendNumber(b, json.Number(v.String()))
	case asRawJSON:
		return appendRawJSON(b, v.Bytes()), nil
	case asError:
		text, err := textOf(func() ([]byte, error) { return []byte(v.Interface().(error).Error()), nil })
		return msgpack.AppendString(b, text), err
	case asText:
		text, err := textOf(v.Interface().(encoding.TextMarshaler).MarshalText)
		return msgpack.AppendString(b, text), err
	case asStruct:
		return p.appendStruct(b, v, depth)
	}
	switch v.Kind() {
	case reflect.Bool:
		return msgpack.AppendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return msgpack.AppendInt(b, v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return msgpack.AppendUint(b, v.Uint()), nil
	case reflect.Float32:
		return msgpack.AppendFloat32(b, float32(v.Float())), nil
	case reflect.Float64:
		return msgpack.AppendFloat64(b, v.Float()), nil
	case reflect.Complex64, reflect.Complex128:
		return fmt.Appendf(msgpack.AppendStringHeader(b, len(fmt.Sprint(v.Complex()))), "%v", v.Complex()), nil
	case reflect.String:
		return msgpack.AppendString(b, v.String()), nil
	case reflect.Interface:
		v = v.Elem()
		return planOf(v.Type()).append(b, v, depth)
	case reflect.Pointer:
		return p.elem.append(b, v.Elem(), depth+1) // a pointer can point to itself
	case reflect.Map:
		return p.appendMap(b, v, depth)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 && p.elem.how == byKind {
			return msgpack.AppendBin(b, v.Bytes()), nil
		}
		return p.appendArray(b, v, depth)
	case reflect.Array:
		return p.appendArray(b, v, depth)
	}
	return b, &msgp.ErrUnsupportedType{T: v.Type()}
}

func (p *typePlan) appendMap(b []byte, v reflect.Value, depth int) (_ []byte, err error) {
	if v.Type().Key().Kind() != reflect.String {
		return b, errKeys
	}
	b = msgpack.AppendMapHeader(b, v.Len())
	for it := v.MapRange(); it.Next(); {
		b = msgpack.AppendString(b, it.Key().String())
		if b, err = p.elem.append(b, it.Value(), depth+1); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (p *typePlan) appendArray(b []byte, v reflect.Value, depth int) (_ []byte, err error) {
	b = msgpack.AppendArrayHeader(b, v.Len())
	for i := range v.Len() {
		if b, err = p.elem.append(b, v.Index(i), depth+1); err != nil {
			return b, err
		}
	}
	return b, nil
}

// appendStruct appends the exported fields as a map.
func (p *typePlan) appendStruct(b []byte, v reflect.Value, depth int) (_ []byte, err error) {
	n := len(p.fields)
	if !p.fixed {
		n = 0
		for i := range p.fields {
			if _, ok := p.fields[i].of(v); ok {
				n++
			}
		}
	}
	b = msgpack.AppendMapHeader(b, n)
	for i := range p.fields {
		f := &p.fields[i]
		fv, ok := f.of(v)
		if !ok {
			continue
		}
		b = append(b, f.key...)
		if b, err = f.plan.append(b, fv, depth+1); err != nil {
			return b, err
		}
	}
	return b, nil
}

// of returns the field of a struct, or false if it is left out: empty, or in an embedded pointer
// that is nil.
func (f *field) of(v reflect.Value) (reflect.Value, bool) {
	for i, at := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v, !f.omitEmpty || !empty(v)
}

// empty is what omitempty leaves out: false, 0, nil, and what has the length 0.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// appendTime appends a time as text: servers refuse extension types that they do not know, and know
// EventTime only where an event's time stands.
func appendTime(b []byte, t time.Time) []byte {
	var text [len(time.RFC3339Nano)]byte
	s := t.AppendFormat(text[:0], time.RFC3339Nano)
	return append(msgpack.AppendStringHeader(b, len(s)), s...)
}

func appendEventTime(b []byte, t EventTime) []byte {
	sec, nsec := seconds(time.Time(t))
	return forward.AppendEventTime(b, sec, nsec)
}

func appendNumber(b []byte, n json.Number) ([]byte, error) {
	if n == "" {
		return msgpack.AppendInt(b, 0), nil
	}
	if i, err := n.Int64(); err == nil {
		return msgpack.AppendInt(b, i), nil
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return msgpack.AppendUint(b, u), nil
	}
	f, err := n.Float64()
	if err != nil {
		return b, err
	}
	return msgpack.AppendFloat64(b, f), nil
}

// appendRawJSON appends the value that JSON text means, and other text as it is.
func appendRawJSON(b, text []byte) []byte {
	out, n, err := msgpack.AppendFromJSONText(b, text)
	if err == nil && len(bytes.TrimLeft(text[n:], " \t\r\n")) == 0 {
		return out
	}
	return append(msgpack.AppendStringHeader(b, len(text)), text...)
}

// appendMarshaler appends what a value's own method makes of it, if that is one value.
func appendMarshaler(b []byte, m msgp.Marshaler) (out []byte, err error) {
	defer caught(&err, b, &out)
	out, err = m.MarshalMsg(b)
	if err != nil {
		return b, err
	}
	if len(out) < len(b) {
		return b, fmt.Errorf("fluent: MarshalMsg of %T took bytes away", m)
	}
	if n, err := msgpack.Skip(out[len(b):]); err != nil || n != len(out)-len(b) {
		return b, fmt.Errorf("fluent: what MarshalMsg of %T appended is not one value", m)
	}
	return out, nil
}

func appendExtension(b []byte, e msgp.Extension) (out []byte, err error) {
	defer caught(&err, b, &out)
	return msgp.AppendExtension(b, e)
}

func textOf(method func() ([]byte, error)) (s string, err error) {
	defer caught(&err, nil, nil)
	text, err := method()
	return string(text), err
}

// caught, deferred, makes an error of a panic in a method that is not ours.
func caught(err *error, was []byte, out *[]byte) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("fluent: panic while encoding: %v", r)
		if out != nil {
			*out = was
		}
	}
}
