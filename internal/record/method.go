// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// A method is what a type offers to be written by: the first of these that it has.
type method uint8

const (
	none method = iota
	logValuer
	errorText
	jsonMarshaler
	textMarshaler
	stringer
)

var offers = []struct {
	method method
	typ    reflect.Type
}{
	{logValuer, reflect.TypeFor[slog.LogValuer]()},
	{errorText, reflect.TypeFor[error]()},
	{jsonMarshaler, reflect.TypeFor[json.Marshaler]()},
	{textMarshaler, reflect.TypeFor[encoding.TextMarshaler]()},
	{stringer, reflect.TypeFor[fmt.Stringer]()},
}

// methodOf says by what a type is written. The String of a struct that embeds something with that
// method does not count: it speaks for a part of the value. (encoding/json, which knows no
// Stringers, writes all fields then.)
func methodOf(t reflect.Type) method {
	for _, o := range offers {
		if !t.Implements(o.typ) {
			continue
		}
		if o.method == stringer && embedsStringer(t) {
			continue
		}
		return o.method
	}
	return none
}

func embedsStringer(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	is := reflect.TypeFor[fmt.Stringer]()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && (f.Type.Implements(is) || reflect.PointerTo(f.Type).Implements(is)) {
			return true
		}
	}
	return false
}

// encodeByMethod calls methods through the address of the value, for that has those of the value
// too and needs no copy of it; those that only the address has are called only where the value is a
// variable.
func encodeByMethod(b []byte, p unsafe.Pointer, pl *typePlan, w where) []byte {
	m := pl.method
	if w.addr {
		m = pl.addrMethod
	}
	if m == none {
		return pl.bare(b, p, pl, w)
	}
	v := *(*any)(unsafe.Pointer(&word{pl.pointer, p}))
	switch m {
	case logValuer:
		if !w.addr {
			p = nil // no identity, and perhaps hidden
		}
		return appendLogValuer(b, v.(slog.LogValuer), p, pl, w)
	case errorText:
		return appendError(b, v.(error))
	case jsonMarshaler:
		return appendMarshaler(b, v.(json.Marshaler), w)
	case textMarshaler:
		return appendText(b, v.(encoding.TextMarshaler))
	default:
		return appendStringer(b, v.(fmt.Stringer))
	}
}

// recovered is deferred around every method of others: b is what was there before the call.
func recovered(b []byte, out *[]byte) {
	if r := recover(); r != nil {
		*out = appendPanic(b, r)
	}
}

func appendPanic(b []byte, r any) []byte {
	return appendString(b, PanicText(r))
}

// PanicText is what stands for a value whose method panicked with r. To look at r may panic as
// well: package fmt survives that once.
func PanicText(r any) (text string) {
	defer func() {
		if recover() != nil {
			text = "!PANIC"
		}
	}()
	return "!PANIC: " + fmt.Sprint(r)
}

func appendFault(b []byte, err error) []byte {
	return appendString(b, "!ERROR: "+err.Error())
}

func appendError(b []byte, err error) (out []byte) {
	defer recovered(b, &out)
	return appendString(b, err.Error())
}

func appendStringer(b []byte, s fmt.Stringer) (out []byte) {
	defer recovered(b, &out)
	return appendString(b, s.String())
}

func appendText(b []byte, m encoding.TextMarshaler) (out []byte) {
	defer recovered(b, &out)
	text, err := m.MarshalText()
	if err != nil {
		return appendFault(b, err)
	}
	return appendString(b, unsafe.String(unsafe.SliceData(text), len(text)))
}

func appendMarshaler(b []byte, m json.Marshaler, w where) (out []byte) {
	defer recovered(b, &out)
	text, err := m.MarshalJSON()
	if err != nil {
		return appendFault(b, err)
	}
	return appendJSON(b, text, w)
}

// appendJSON appends what a JSON text says.
func appendJSON(b, text []byte, w where) []byte {
	out, n, err := msgpack.AppendFromJSONText(b, text)
	switch {
	case errors.Is(err, msgpack.ErrDepth):
		return appendString(b, deep)
	case err != nil:
		return appendFault(b, err)
	case len(bytes.TrimLeft(text[n:], " \t\r\n")) > 0:
		return appendString(b, "!ERROR: more than one JSON value")
	}
	if first := out[len(b)]; first >= fixMap && first < 0xa0 || first >= 0xdc && first <= map32 {
		if w.depth >= Depth {
			return appendString(b, deep)
		}
		if _, err := (msgpack.Limits{Depth: Depth - w.depth}).Skip(out[len(b):]); err != nil {
			return appendString(b, deep)
		}
	}
	return out
}

// resolutions is how many LogValuers in a row are asked, as slog does.
const resolutions = 100

// logValue asks a LogValuer once. One that is a nil pointer is nil.
func logValue(l slog.LogValuer) (v slog.Value) {
	defer func() {
		if r := recover(); r != nil {
			v = slog.StringValue(PanicText(r))
		}
	}()
	if isNil(l) {
		return slog.Value{}
	}
	return l.LogValue()
}

// isNil reports whether an interface holds a nil pointer.
func isNil(v any) bool {
	return (*word)(unsafe.Pointer(&v)).data == nil && reflect.TypeOf(v).Kind() == reflect.Pointer
}

// resolve asks until the value is no LogValuer.
func resolve(v slog.Value) slog.Value {
	for range resolutions {
		if v.Kind() != slog.KindLogValuer {
			return v
		}
		v = logValue(v.LogValuer())
	}
	return slog.StringValue(deep)
}

// appendLogValuer writes what l stands for. p is its identity, or nil.
func appendLogValuer(b []byte, l slog.LogValuer, p unsafe.Pointer, pl *typePlan, w where) []byte {
	v, wrong := w.enter(b, visit{p: p, typ: unsafe.Pointer(pl), n: -1 - w.unique(p)})
	if wrong != "" {
		return appendString(b, wrong)
	}
	b = appendSlogValue(b, resolve(slog.AnyValue(l)), v)
	v.leave()
	return b
}

// unique makes different visits of those that have no identity. They count all the same.
func (w where) unique(p unsafe.Pointer) int {
	if p != nil || w.path == nil {
		return 0
	}
	return len(w.path.visits)
}
