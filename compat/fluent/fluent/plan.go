// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/msgpack"
)

// how is the way values of a type are encoded.
type how uint8

const (
	byKind      how = iota // as its kind says
	asMarshaler            // has MarshalMsg
	asExtension            // a msgp.Extension
	asTime                 // time.Time
	asNumber               // json.Number
	asRawJSON              // json.RawMessage
	asError                // an error: its text
	asText                 // has MarshalText
	asStruct
)

// typePlan is how values of one type are encoded: what can be known of a type is found out once.
type typePlan struct {
	how    how
	elem   *typePlan // of a pointer, slice, array or map
	fields []field   // of a struct, in the order of their declaration
	fixed  bool      // no field can be left out
}

// field is one key of a struct's record.
type field struct {
	name      string
	key       []byte // the name as MessagePack
	index     []int
	plan      *typePlan
	omitEmpty bool
	tagged    bool
}

var plans struct {
	mu    sync.Mutex // one builds
	cache sync.Map   // reflect.Type → *plan, whole
}

var (
	typeMarshaler = reflect.TypeFor[msgp.Marshaler]()
	typeExtension = reflect.TypeFor[msgp.Extension]()
	typeError     = reflect.TypeFor[error]()
	typeText      = reflect.TypeFor[encoding.TextMarshaler]()
	typeTime      = reflect.TypeFor[time.Time]()
	typeNumber    = reflect.TypeFor[json.Number]()
	typeRawJSON   = reflect.TypeFor[json.RawMessage]()
)

// planOf returns a type's plan.
func planOf(t reflect.Type) *typePlan {
	if p, ok := plans.cache.Load(t); ok {
		return p.(*typePlan)
	}
	plans.mu.Lock()
	defer plans.mu.Unlock()
	b := builder{}
	p := b.build(t)
	for t, p := range b {
		plans.cache.LoadOrStore(t, p)
	}
	return p
}

// builder holds the plans that are being built, so that a type which contains itself finds its own.
type builder map[reflect.Type]*typePlan

func (b builder) build(t reflect.Type) *typePlan {
	if p, ok := plans.cache.Load(t); ok {
		return p.(*typePlan)
	}
	if p, ok := b[t]; ok {
		return p
	}
	p := new(typePlan)
	b[t] = p
	switch {
	case t.Kind() == reflect.Interface: // what is in it decides
	case t.Implements(typeMarshaler):
		p.how = asMarshaler
	case t.Implements(typeExtension):
		p.how = asExtension
	case t == typeTime:
		p.how = asTime
	case t == typeNumber:
		p.how = asNumber
	case t == typeRawJSON:
		p.how = asRawJSON
	case t.Implements(typeError):
		p.how = asError
	case t.Implements(typeText):
		p.how = asText
	case t.Kind() == reflect.Struct:
		p.how = asStruct
	}
	switch t.Kind() { // of the others too: what is posted itself is a record, whatever its methods
	case reflect.Struct:
		p.fields = b.fields(t)
		p.fixed = !slices.ContainsFunc(p.fields, func(f field) bool { return f.omitEmpty || len(f.index) > 1 })
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		p.elem = b.build(t.Elem())
	}
	return p
}

// fields lists a struct's keys. Embedded structs without a name of their own are flattened as
// encoding/json does it: of equal names the one that is embedded least deeply counts, then the one
// that a tag names; if that leaves several, none.
func (b builder) fields(t reflect.Type) []field {
	var all []field
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type, index []int)
	walk = func(t reflect.Type, index []int) {
		if seen[t] {
			return
		}
		seen[t] = true
		defer delete(seen, t)
		for i := range t.NumField() {
			sf := t.Field(i)
			inner := sf.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			embedded := sf.Anonymous && inner.Kind() == reflect.Struct
			if !sf.IsExported() && (!embedded || sf.Type.Kind() == reflect.Pointer) {
				continue
			}
			name, omitEmpty := nameOf(sf)
			if name == "-" {
				continue
			}
			at := append(slices.Clip(index), i)
			if embedded && name == "" && b.build(sf.Type).flattens() {
				walk(inner, at)
				continue
			}
			if !sf.IsExported() {
				continue
			}
			f := field{name: name, index: at, plan: b.build(sf.Type), omitEmpty: omitEmpty, tagged: name != ""}
			if name == "" {
				f.name = sf.Name
			}
			f.key = msgpack.AppendString(nil, f.name)
			all = append(all, f)
		}
	}
	walk(t, nil)
	return dominant(all)
}

// flattens reports whether an embedded value of this plan is a plain struct, or a pointer to one.
func (p *typePlan) flattens() bool {
	return p.how == asStruct || p.how == byKind && p.elem != nil && p.elem.how == asStruct
}

// dominant leaves one field of each name, or none.
func dominant(all []field) []field {
	var out []field
	for i, f := range all {
		wins := true
		for j, g := range all {
			if i == j || f.name != g.name {
				continue
			}
			if deeper := len(f.index) - len(g.index); deeper > 0 || deeper == 0 && (g.tagged || !f.tagged) {
				wins = false
			}
		}
		if wins {
			out = append(out, f)
		}
	}
	return out
}

// nameOf reads the tags msg, then codec: a name, "-" for a field that is left out, and omitempty.
// An empty name means none is given.
func nameOf(sf reflect.StructField) (name string, omitEmpty bool) {
	tag := sf.Tag.Get("msg")
	if tag == "" {
		tag = sf.Tag.Get("codec")
	}
	name, rest, _ := strings.Cut(tag, ",")
	for word := range strings.SplitSeq(rest, ",") {
		omitEmpty = omitEmpty || word == "omitempty"
	}
	return name, omitEmpty
}
