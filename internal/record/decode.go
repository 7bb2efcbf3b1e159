// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// How the decode files are organised. Decode looks at the bytes once to see that they are one whole
// value that nests no deeper than msgpack.DefaultDepth; what comes after need not ask again.
// decoder.value goes down the value and the Go type together: decode_struct.go has the fields of a
// struct, decode_scalar.go what has no parts, decode_any.go what is decoded without a type to go
// by. What does not fit is noted and left out, the first with its path, and the rest goes on.

// What Decode's errors wrap.
var (
	// ErrTarget says that there is nothing to decode into: no pointer, or a nil one.
	ErrTarget = errors.New("record: decode into something that is no pointer, or nil")
	// ErrKind says that a value does not fit into the type it is to go to.
	ErrKind = errors.New("record: value does not fit")
	// ErrRange says that a number is too large for the type it is to go to, or has a fraction.
	ErrRange = errors.New("record: number out of range")
)

// Decode stores the value that b holds, the whole of it, in what v points to. It is the way back of
// AppendMap and AppendValue: fields are found by the same names, and doc.go has a table of what
// goes where. ext turns extension values other than times into text.
//
// What does not fit is left as it is, all else is stored, and the error is that of the first that
// did not fit. Only if b is no value, nests too deep or has bytes behind it, nothing is stored.
// Nothing that is stored aliases b. No panic leaves Decode, whatever the methods of v do.
func Decode(b []byte, v any, ext msgpack.ExtJSON) error {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return ErrTarget
	}
	n, err := msgpack.Limits{Length: int64(len(b)) + 1, Count: int64(len(b)) + 1}.Skip(b)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if n != len(b) {
		return fmt.Errorf("record: %d bytes behind the value", len(b)-n)
	}
	d := decoder{ext: ext}
	switch v := v.(type) {
	case *any:
		if *v == nil || reflect.TypeOf(*v).Kind() != reflect.Pointer {
			*v, _ = d.any(b)
			return d.err
		}
	case *map[string]any:
		d.anyMapInto(b, v)
		return d.err
	}
	d.value(b, p.Elem())
	return d.err
}

type decoder struct {
	ext  msgpack.ExtJSON
	path []element
	err  error // of the first that did not fit
	bad  int   // how many did not
}

// element is one step of the way to a value.
type element struct {
	key   string
	index int // if key is ""
}

// fail notes what did not fit.
func (d *decoder) fail(err error) {
	d.bad++
	if d.err != nil {
		return
	}
	path := ""
	for _, e := range d.path {
		switch {
		case e.key == "":
			path += "[" + strconv.Itoa(e.index) + "]"
		case path == "":
			path = e.key
		default:
			path += "." + e.key
		}
	}
	if len(path) > longPath {
		path = path[:longPath] + "…"
	}
	if path == "" {
		d.err = err
		return
	}
	d.err = fmt.Errorf("at %q: %w", path, err)
}

const longPath = 256

func (d *decoder) mismatch(k msgpack.Kind, t reflect.Type) {
	d.fail(fmt.Errorf("%w: %v into %v", ErrKind, k, t))
}

// maxPointers bounds the pointers to pointers that lead to one value: a type may be a pointer to
// itself.
const maxPointers = 16

// value decodes the value at the start of b, which is whole, and returns its length.
func (d *decoder) value(b []byte, v reflect.Value) int {
	for hops := 0; ; hops++ {
		if b[0] == 0xc0 {
			d.null(v)
			return 1
		}
		if v.Kind() == reflect.Interface { // what it points to is filled in, as by encoding/json
			if e := v.Elem(); e.Kind() == reflect.Pointer && !e.IsNil() {
				v = e
			}
		}
		if v.CanAddr() && mayHaveMethods(v) {
			if n, ok := d.byMethod(b, v); ok {
				return n
			}
		}
		if v.Kind() != reflect.Pointer {
			break
		}
		if hops == maxPointers {
			d.fail(fmt.Errorf("%w: too many pointers: %v", ErrKind, v.Type()))
			return length(b)
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Interface {
		return d.intoInterface(b, v)
	}
	t, n, _ := msgpack.ReadToken(b)
	switch t.Kind {
	case msgpack.KindArray:
		return d.array(b, t.Len, n, v)
	case msgpack.KindMap:
		return d.mapping(b, t.Len, n, v)
	case msgpack.KindStr, msgpack.KindBin, msgpack.KindExt:
		d.bytes(t, b[n:n+t.Len], v)
		return n + t.Len
	}
	d.scalar(t, v)
	return n
}

// mayHaveMethods is false for nearly all types: predeclared and unnamed ones have no methods, but
// for structs that embed something.
func mayHaveMethods(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return false
	case reflect.Struct:
		return true
	}
	return v.Type().PkgPath() != ""
}

// length is how long the value at the start of b is, which is whole.
func length(b []byte) int {
	n, _ := msgpack.Skip(b)
	return n
}

// null stores a nil: the zero of whatever can be nil; all else stays as it is.
func (d *decoder) null(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		v.SetZero()
	}
}

// byMethod decodes what has a method for that.
func (d *decoder) byMethod(b []byte, v reflect.Value) (n int, ok bool) {
	p := v.Addr()
	if !p.CanInterface() {
		return 0, false
	}
	switch u := p.Interface().(type) {
	case *time.Time:
		t, n, _ := msgpack.ReadToken(b)
		switch t.Kind {
		case msgpack.KindStr, msgpack.KindBin, msgpack.KindExt:
			d.time(t, b[n:n+t.Len], u)
			return n + t.Len, true
		}
		d.mismatch(t.Kind, v.Type())
		return length(b), true
	case json.Unmarshaler:
		text, n, err := msgpack.AppendJSON(nil, b, d.ext)
		if err != nil {
			d.fail(err)
			return length(b), true
		}
		d.call(func() error { return u.UnmarshalJSON(text) })
		return n, true
	case encoding.TextUnmarshaler:
		text, _, n, err := msgpack.ReadBytes(b)
		if err != nil {
			return 0, false // no text: what its kind says
		}
		d.call(func() error { return u.UnmarshalText(append([]byte(nil), text...)) })
		return n, true
	}
	return 0, false
}

// call calls a method of the caller's.
func (d *decoder) call(f func() error) {
	defer func() {
		if r := recover(); r != nil {
			d.fail(fmt.Errorf("%w: panic: %v", ErrKind, r))
		}
	}()
	if err := f(); err != nil {
		d.fail(err)
	}
}

// array decodes an array of n, whose elements begin at b[at].
func (d *decoder) array(b []byte, n, at int, v reflect.Value) int {
	switch v.Kind() {
	case reflect.Slice:
		// n elements stand in b, so they are not more than its bytes; what an element takes is the
		// type's.
		if v.Cap() < n {
			v.Set(reflect.MakeSlice(v.Type(), 0, min(n, max(firstRoom/max(int(v.Type().Elem().Size()), 1), 4))))
		}
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		v.SetLen(0)
		zero := reflect.Zero(v.Type().Elem())
		for i := range n {
			if i == v.Cap() {
				v.Grow(1)
			}
			v.SetLen(i + 1)
			e := v.Index(i)
			e.Set(zero)
			d.path = append(d.path, element{index: i})
			at += d.value(b[at:], e)
			d.path = d.path[:len(d.path)-1]
		}
		return at
	case reflect.Array:
		for i := range n {
			if i == v.Len() {
				d.fail(fmt.Errorf("%w: array of %d into %v", ErrKind, n, v.Type()))
				return at + lengths(b[at:], n-i)
			}
			d.path = append(d.path, element{index: i})
			at += d.value(b[at:], v.Index(i))
			d.path = d.path[:len(d.path)-1]
		}
		for i := n; i < v.Len(); i++ {
			v.Index(i).SetZero()
		}
		return at
	}
	d.mismatch(msgpack.KindArray, v.Type())
	return at + lengths(b[at:], n)
}

// firstRoom is how many bytes of elements a slice has room for at first: it grows with what is
// really there.
const firstRoom = 64 << 10

// lengths is how long n values are.
func lengths(b []byte, n int) (at int) {
	for range n {
		at += length(b[at:])
	}
	return at
}

// mapping decodes a map of n pairs, which begin at b[at].
func (d *decoder) mapping(b []byte, n, at int, v reflect.Value) int {
	switch v.Kind() {
	case reflect.Struct:
		return d.structure(b, n, at, v)
	case reflect.Map:
		t := v.Type()
		if v.IsNil() {
			v.Set(reflect.MakeMapWithSize(t, min(n, firstRoom/64)))
		}
		key, elem := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for range n {
			var name string
			name, at = d.key(b, at)
			d.path = append(d.path, element{key: name})
			key.SetZero()
			elem.SetZero()
			if d.mapKey(name, key) {
				bad := d.bad
				at += d.value(b[at:], elem)
				if d.bad == bad || !elem.IsZero() { // a part of it may fit
					v.SetMapIndex(key, elem)
				}
			} else {
				at += length(b[at:])
			}
			d.path = d.path[:len(d.path)-1]
		}
		return at
	}
	d.mismatch(msgpack.KindMap, v.Type())
	return at + lengths(b[at:], 2*n)
}

// key reads the key at b[at] as text: of a str or bin its bytes, of anything else its JSON
// (docs/forward.md rule 22).
func (d *decoder) key(b []byte, at int) (name string, end int) {
	if p, _, n, err := msgpack.ReadBytes(b[at:]); err == nil {
		return string(p), at + n
	}
	text, n, err := msgpack.AppendJSON(nil, b[at:], d.ext)
	if err != nil {
		d.fail(err)
		return "", at + length(b[at:])
	}
	return string(text), at + n
}

// mapKey stores a key of a map, as encoding/json does.
func (d *decoder) mapKey(name string, v reflect.Value) (ok bool) {
	bad := d.bad
	if v.Kind() != reflect.String {
		if u, is := v.Addr().Interface().(encoding.TextUnmarshaler); is {
			d.call(func() error { return u.UnmarshalText([]byte(name)) })
			if d.bad == bad && !v.Comparable() {
				d.fail(fmt.Errorf("%w: key %q makes a %v that is no key", ErrKind, cut(name), v.Type()))
			}
			return d.bad == bad
		}
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(name)
	case v.Kind() == reflect.Interface && v.NumMethod() == 0:
		v.Set(reflect.ValueOf(name))
	case v.CanInt():
		i, err := strconv.ParseInt(name, 10, v.Type().Bits())
		if err != nil {
			d.fail(fmt.Errorf("%w: key %q into %v", ErrKind, cut(name), v.Type()))
		}
		v.SetInt(i)
	case v.CanUint():
		u, err := strconv.ParseUint(name, 10, v.Type().Bits())
		if err != nil {
			d.fail(fmt.Errorf("%w: key %q into %v", ErrKind, cut(name), v.Type()))
		}
		v.SetUint(u)
	default:
		d.fail(fmt.Errorf("%w: key into %v", ErrKind, v.Type()))
	}
	return d.bad == bad
}

func cut(s string) string { return s[:min(len(s), longPath)] }

// intoInterface decodes what goes into an interface.
func (d *decoder) intoInterface(b []byte, v reflect.Value) int {
	if v.NumMethod() > 0 {
		t, _, _ := msgpack.ReadToken(b)
		d.mismatch(t.Kind, v.Type())
		return length(b)
	}
	x, n := d.any(b)
	if x == nil {
		v.SetZero()
	} else {
		v.Set(reflect.ValueOf(x))
	}
	return n
}

// eventTime reads the data of an ext as a time (docs/forward.md rule 10).
func eventTime(t msgpack.Token, data []byte) (time.Time, bool) {
	if t.Ext != 0 || len(data) != 8 {
		return time.Time{}, false
	}
	nsec := binary.BigEndian.Uint32(data[4:])
	return time.Unix(int64(binary.BigEndian.Uint32(data)), int64(nsec)).UTC(), nsec < 1e9
}
