// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spillwaylog/spillway/collector"
)

// How this file is organised. What is a list or a map in a file is a Go type, with a key for each
// exported field (keyOf). One walk stores a node in a value of such a type (into), another one
// makes its part of the schema (shape), a third prints it (print.go). The tag help says what a
// field is, enum which texts it takes, secret that it is not shown, path that it is one of a file,
// from the folder of the file that says it.

var (
	namesType  = reflect.TypeFor[collector.Names]()
	valuesType = reflect.TypeFor[collector.Values]()
	anyType    = reflect.TypeFor[any]()
	eventsType = reflect.TypeFor[[]TestEvent]()
)

// into stores a node in what v is.
func (r *reader) into(n *node, key string, v reflect.Value, choices []string) bool {
	switch t := v.Type(); {
	case t == namesType:
		return r.names(n, key, v.Addr().Interface().(*collector.Names))
	case t == valuesType:
		return r.values(n, key, v.Addr().Interface().(*collector.Values))
	case t == anyType:
		value, ok := r.any(n, key)
		if ok && value != nil {
			v.Set(reflect.ValueOf(value))
		}
		return ok
	case t.Kind() == reflect.Slice:
		return r.list(n, key, v)
	case t.Kind() == reflect.Struct:
		return r.structure(n, key, v)
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		return r.into(n, key, v.Elem(), choices)
	}
	return r.leaf(n, key, v, choices)
}

// leaf stores a scalar.
func (r *reader) leaf(n *node, key string, v reflect.Value, choices []string) bool {
	f := &field{key: key, value: v, choices: choices}
	wants := f.wants()
	switch v.Kind() {
	case reflect.Float64:
		wants = "a number"
	case reflect.Int64:
		if v.Type() != duration {
			wants = "a whole number"
		}
	}
	text, ok := r.scalar(n, key, wants, v.Kind() == reflect.Bool)
	if !ok {
		return false
	}
	switch {
	case v.Kind() == reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		v.SetFloat(x)
		ok = err == nil
	case v.Kind() == reflect.Int64 && v.Type() != duration:
		x, err := strconv.ParseInt(text, 10, 64)
		v.SetInt(x)
		ok = err == nil
	default:
		ok = f.set(text)
	}
	if !ok {
		r.refuse(n, key, wants, choices)
	}
	return ok
}

// list stores a list; one text is a list of it, and so is one event of a test.
func (r *reader) list(n *node, key string, v reflect.Value) bool {
	texts := v.Type().Elem().Kind() == reflect.String
	items := n.items
	switch {
	case n.kind == list:
	case v.Type() == eventsType:
		items = []*node{n}
	case texts && n.kind != null && n.kind <= boolean:
		items = []*node{n}
	case texts:
		r.wrong(n, "%s is a list, or one text, not %v", key, n.kind)
		return false
	default:
		r.wrong(n, "%s is a list, not %v", key, n.kind)
		return false
	}
	ok := true
	all := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		ok = r.into(item, key, all.Index(i), nil) && ok
	}
	v.Set(all)
	return ok
}

// partOf is the field of a structure for a key; the names are those of all.
func partOf(t reflect.Type, key string) (part *reflect.StructField, names []string) {
	for _, f := range reflect.VisibleFields(t) {
		name := keyOf(f.Name)
		if names = append(names, name); name == key {
			part = &f
		}
	}
	return part, names
}

// structure stores a map whose keys are known.
func (r *reader) structure(n *node, key string, v reflect.Value) bool {
	_, names := partOf(v.Type(), "")
	if n.kind != mapping {
		r.wrong(n, "%s: this is %v, and not a map with %s", key, n.kind, strings.Join(names, ", "))
		return false
	}
	ok := true
	for _, p := range n.pairs {
		part, _ := partOf(v.Type(), p.key.value)
		if part == nil {
			r.wrong(p.key, "unknown key %s of %s%s", quote(p.key.value), key, meant(p.key.value, names))
			ok = false
			continue
		}
		to := v.FieldByIndex(part.Index)
		ok = r.into(p.value, p.key.value, to, choicesOf(part.Tag)) && ok
		if part.Tag.Get("path") != "" && to.String() != "" {
			to.SetString(p.value.file.path(to.String()))
		}
	}
	return ok
}

func choicesOf(tag reflect.StructTag) []string {
	if enum := tag.Get("enum"); enum != "" {
		return strings.Split(enum, ",")
	}
	return nil
}

// maskParts keeps values of keys that are not known, and of secrets, from being shown.
func maskParts(n *node, t reflect.Type) {
	switch {
	case t == namesType || t == valuesType || t == anyType:
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
		if n.kind == list {
			for _, item := range n.items {
				maskParts(item, t.Elem())
			}
		} else {
			maskParts(n, t.Elem())
		}
	case t.Kind() == reflect.Struct:
		for _, p := range n.pairs {
			if part, _ := partOf(t, p.key.value); part == nil || part.Tag.Get("secret") != "" {
				maskAll(p.value)
			} else {
				maskParts(p.value, part.Type)
			}
		}
	}
}

// names stores a map of texts to texts.
func (r *reader) names(n *node, key string, to *collector.Names) bool {
	if n.kind != mapping {
		r.wrong(n, "%s is a map of fields to fields, not %v", key, n.kind)
		return false
	}
	ok := true
	for _, p := range n.pairs {
		text, good := r.scalar(p.value, p.key.value, "the name of a field", false)
		ok = ok && good
		*to = append(*to, struct{ From, To string }{p.key.value, text})
	}
	return ok
}

// values stores a map of texts to whatever a record may hold.
func (r *reader) values(n *node, key string, to *collector.Values) bool {
	if n.kind != mapping {
		r.wrong(n, "%s is a map of fields to values, not %v", key, n.kind)
		return false
	}
	ok := true
	*to = collector.Values{} // a map without fields is not one that is missing
	for _, p := range n.pairs {
		value, good := r.any(p.value, p.key.value)
		ok = ok && good
		*to = append(*to, collector.Values{{Field: p.key.value, Value: value}}...)
	}
	return ok
}

// any returns what a node is as a value of a record.
func (r *reader) any(n *node, key string) (any, bool) {
	switch n.kind {
	case null:
		return nil, true
	case boolean:
		return n.value == "true", true
	case number:
		return r.number(n, key)
	case list:
		items, ok := make([]any, 0, len(n.items)), true
		for _, item := range n.items {
			v, good := r.any(item, key)
			items, ok = append(items, v), ok && good
		}
		return items, ok
	case mapping:
		values := collector.Values{}
		ok := r.values(n, key, &values)
		return values, ok
	}
	return r.expand(n)
}

func (r *reader) number(n *node, key string) (any, bool) {
	if x, err := strconv.ParseInt(n.value, 0, 64); err == nil {
		return x, true
	}
	if x, err := strconv.ParseUint(n.value, 0, 64); err == nil {
		return x, true
	}
	x, err := strconv.ParseFloat(n.value, 64)
	if err != nil || x != x || x-x != 0 {
		r.wrong(n, "%s: %s is too large for a number, or none; in quotes it is text", key, quote(n.value))
		return nil, false
	}
	return x, true
}

// shape is the schema of a type.
func shape(t reflect.Type, tag reflect.StructTag) object {
	var s object
	switch {
	case t == namesType:
		s = object{"type": "object", "minProperties": 1, "additionalProperties": word()}
	case t == valuesType:
		s = object{"type": "object", "minProperties": 1}
	case t == anyType:
		s = object{}
	case t.Kind() == reflect.Pointer:
		return shape(t.Elem(), tag)
	case t.Kind() == reflect.Slice:
		item := shape(t.Elem(), "")
		s = object{"type": "array", "items": item}
		if t.Elem().Kind() == reflect.String || t == eventsType {
			s = object{"anyOf": []any{s, item}}
		}
	case t.Kind() == reflect.Struct:
		s = structureShape(t)
	default:
		s = leafShape(t, choicesOf(tag))
	}
	if about := tag.Get("help"); about != "" {
		s["description"] = about
	}
	return s
}

func structureShape(t reflect.Type) object {
	properties := object{}
	var required []string
	for _, f := range reflect.VisibleFields(t) {
		properties[keyOf(f.Name)] = shape(f.Type, f.Tag)
		if f.Tag.Get("required") != "" {
			required = append(required, keyOf(f.Name))
		}
	}
	s := object{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		s["required"] = required
	}
	if t == reflect.TypeFor[collector.Step]() {
		s["minProperties"], s["maxProperties"] = 1, 1
	}
	return s
}

func leafShape(t reflect.Type, enum []string) object {
	switch {
	case enum != nil:
		return choices(enum)
	case t == duration:
		return span()
	case t.Kind() == reflect.Bool:
		return truth()
	case t.Kind() == reflect.Float64 || t.Kind() == reflect.Int64:
		return object{"anyOf": []any{object{"type": "number"}, object{"type": "string", "pattern": dynamicText}}}
	}
	return word()
}

// at follows keys and indices down from a node, as far as they are there.
func (n *node) at(path []any) *node {
	for _, key := range path {
		next := n
		switch key := key.(type) {
		case int:
			if key < len(n.items) {
				next = n.items[key]
			}
		case string:
			if v := n.get(key); v != nil {
				next = v
			}
		}
		n = next
	}
	return n
}

// last is the last line of a node.
func (n *node) last() int {
	line := n.line
	for _, item := range n.items {
		line = max(line, item.last())
	}
	for _, p := range n.pairs {
		line = max(line, p.value.last())
	}
	return line
}

// told says whether there is a mistake within a node: what is not understood there is not missing.
func (r *reader) told(n *node) bool {
	last := n.last()
	return slices.ContainsFunc(r.mistakes[:r.misread],
		func(m Mistake) bool { return m.File == n.file.name && n.line <= m.Line && m.Line <= last })
}
