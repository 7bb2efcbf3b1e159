// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

var numberType = reflect.TypeFor[json.Number]()

// scalar stores a bool or a number.
func (d *decoder) scalar(t msgpack.Token, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if t.Kind == msgpack.KindBool {
			v.SetBool(t.Bool())
			return
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if t.Kind == msgpack.KindBool {
			break
		}
		i, ok := t.Int()
		if !ok && (t.Kind == msgpack.KindFloat32 || t.Kind == msgpack.KindFloat64) {
			i, ok = whole(t.Float())
		}
		if !ok || v.OverflowInt(i) {
			d.outOfRange(t, v.Type())
			return
		}
		v.SetInt(i)
		return
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if t.Kind == msgpack.KindBool {
			break
		}
		u, ok := t.Uint()
		if !ok && (t.Kind == msgpack.KindFloat32 || t.Kind == msgpack.KindFloat64) {
			var i int64
			i, ok = whole(t.Float())
			u, ok = uint64(i), ok && i >= 0
			if f := t.Float(); f >= 1<<63 && f < 1<<64 {
				u, ok = uint64(f), true
			}
		}
		if !ok || v.OverflowUint(u) {
			d.outOfRange(t, v.Type())
			return
		}
		v.SetUint(u)
		return
	case reflect.Float32, reflect.Float64:
		if t.Kind == msgpack.KindBool {
			break
		}
		f := t.Float()
		if !math.IsInf(f, 0) && v.OverflowFloat(f) {
			d.outOfRange(t, v.Type())
			return
		}
		v.SetFloat(f)
		return
	case reflect.String:
		if v.Type() == numberType && t.Kind != msgpack.KindBool {
			if f := t.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
				d.outOfRange(t, v.Type())
				return
			}
			v.SetString(digitsOf(t))
			return
		}
	}
	d.mismatch(t.Kind, v.Type())
}

// digitsOf is the text of a number.
func digitsOf(t msgpack.Token) string {
	if i, ok := t.Int(); ok {
		return strconv.FormatInt(i, 10)
	}
	if u, ok := t.Uint(); ok {
		return strconv.FormatUint(u, 10)
	}
	return strconv.FormatFloat(t.Float(), 'g', -1, 64)
}

func (d *decoder) outOfRange(t msgpack.Token, typ reflect.Type) {
	d.fail(fmt.Errorf("%w: %s into %v", ErrRange, digitsOf(t), typ))
}

// bytes stores a str, bin or ext with its payload.
func (d *decoder) bytes(t msgpack.Token, p []byte, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		switch {
		case t.Kind == msgpack.KindExt:
			v.SetString(d.extText(t, p))
		case v.Type() == numberType && !isNumber(p):
			d.mismatch(t.Kind, v.Type())
		default:
			v.SetString(string(p))
		}
		return
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(append(make([]byte, 0, len(p)), p...))
			return
		}
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Len() == len(p) {
			copy(v.Bytes(), p)
			return
		}
	}
	d.mismatch(t.Kind, v.Type())
}

func isNumber(p []byte) bool {
	return len(p) > 0 && (p[0] == '-' || p[0] >= '0' && p[0] <= '9') && json.Valid(p)
}

// time stores a time: an EventTime, or text of RFC 3339.
func (d *decoder) time(t msgpack.Token, p []byte, v *time.Time) {
	if t.Kind == msgpack.KindExt {
		when, ok := eventTime(t, p)
		if !ok {
			d.fail(fmt.Errorf("%w: ext of type %d into time.Time", ErrKind, t.Ext))
			return
		}
		*v = when
		return
	}
	when, err := time.Parse(time.RFC3339Nano, string(p))
	if err != nil {
		d.fail(fmt.Errorf("%w: %w", ErrKind, err))
		return
	}
	*v = when
}

// quoted stores a scalar that the option "string" has put into a str.
func (d *decoder) quoted(b []byte, v reflect.Value) int {
	p, _, n, err := msgpack.ReadBytes(b)
	if err != nil {
		return d.value(b, v) // a peer that does not quote is understood too
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	text := string(p)
	switch {
	case v.Kind() == reflect.String:
		if json.Unmarshal(p, &text) != nil {
			text = string(p) // not quoted
		}
		v.SetString(text)
		return n
	case v.Kind() == reflect.Bool:
		if x, err := strconv.ParseBool(text); err == nil {
			v.SetBool(x)
			return n
		}
	case v.CanInt():
		if x, err := strconv.ParseInt(text, 10, v.Type().Bits()); err == nil {
			v.SetInt(x)
			return n
		}
	case v.CanUint():
		if x, err := strconv.ParseUint(text, 10, v.Type().Bits()); err == nil {
			v.SetUint(x)
			return n
		}
	case v.CanFloat():
		if x, err := strconv.ParseFloat(text, v.Type().Bits()); err == nil {
			v.SetFloat(x)
			return n
		}
	}
	d.fail(fmt.Errorf("%w: %q into %v", ErrKind, cut(text), v.Type()))
	return n
}
