// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

var duration = reflect.TypeFor[time.Duration]()

// fieldsOf returns the fields of a struct and of those embedded in it.
func fieldsOf(settings any) []field { return fieldsIn(reflect.ValueOf(settings).Elem()) }

func fieldsIn(v reflect.Value) (fields []field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			fields = append(fields, fieldsIn(v.Field(i))...)
			continue
		}
		how := f.Tag.Get("config")
		if how == "-" || !f.IsExported() {
			continue
		}
		about, _, _ := strings.Cut(f.Tag.Get("help"), " Default:")
		one := field{key: keyOf(f.Name), end: how == "end", about: about, value: v.Field(i)}
		if enum := f.Tag.Get("enum"); enum != "" {
			one.choices = strings.Split(enum, ",")
		}
		fields = append(fields, one)
	}
	return fields
}

// Override copies the settings that flags have given, by the names of these, over what a file says.
func Override(to, from any, flags []string) {
	source := fieldsOf(from)
	for i, f := range fieldsOf(to) {
		if slices.Contains(flags, strings.ReplaceAll(f.key, "_", "-")) {
			f.value.Set(source[i].value)
		}
	}
}

// Differences returns the keys of the settings that are not the same in both.
func Differences(a, b any) (keys []string) {
	other := fieldsOf(b)
	for i, f := range fieldsOf(a) {
		if !f.value.Equal(other[i].value) {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// keyOf makes journal_size of JournalSize.
func keyOf(name string) string {
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

func (r *reader) field(key string) *field {
	if i := slices.IndexFunc(r.fields, func(f field) bool { return f.key == key }); i >= 0 {
		return &r.fields[i]
	}
	return nil
}

// keys are those of a file's top.
func (r *reader) keys() []string {
	keys := []string{includeKey, inputsKey, outputsKey, routesKey, testsKey}
	for i := range r.fields {
		keys = append(keys, r.fields[i].key)
	}
	return keys
}

// setting stores the value of a key.
func (r *reader) setting(p pair) {
	f := r.field(p.key.value)
	if f == nil {
		r.wrong(p.key, "unknown key %s%s", quote(p.key.value), meant(p.key.value, r.keys()))
		return
	}
	if !r.say(f.key, p) {
		return
	}
	if f.end {
		if url, ok := r.url(p, f.key); ok {
			f.value.SetString(url)
		}
		return
	}
	value, ok := r.scalar(p.value, f.key, f.wants(), f.value.Kind() == reflect.Bool)
	if !ok {
		return
	}
	if !f.set(value) {
		r.refuse(p.value, f.key, f.wants(), f.choices)
	}
}

// scalar returns what a scalar stands for. A truth is one without quotes, or what ${…} gives.
func (r *reader) scalar(n *node, key, wants string, truth bool) (string, bool) {
	dynamic := strings.Contains(n.value, "${")
	switch {
	case n.kind == null:
		r.wrong(n, "%s has no value; it is %s", key, wants)
		return "", false
	case n.kind > boolean, truth && n.kind != boolean && !dynamic, !truth && n.kind == boolean:
		r.wrong(n, "%s is %s, not %v%s", key, wants, n.kind, quotes(n, truth))
		return "", false
	}
	value, ok := r.expand(n)
	if ok && value == "" {
		r.wrong(n, "%s is empty; it is %s", key, wants)
		return "", false
	}
	return value, ok
}

// quotes is a hint for values that YAML takes for something else than text.
func quotes(n *node, truth bool) string {
	switch {
	case truth && (n.value == "true" || n.value == "false"):
		return "; without quotes it is"
	case n.kind == boolean:
		return "; in quotes it is text"
	}
	return ""
}

// refuse tells of a scalar that is not what it should be. What ${…} gave is not shown.
func (r *reader) refuse(n *node, key, wants string, choices []string) {
	if strings.Contains(n.value, "${") {
		r.wrong(n, "%s is %s, and what ${…} gives is not", key, wants)
		return
	}
	r.wrong(n, "%s is %s, not %s%s", key, wants, quote(n.value), meant(n.value, choices))
}

// wants says what a value of the field is.
func (f *field) wants() string {
	switch {
	case f.choices != nil:
		return oneOf(f.choices)
	case f.value.Type() == duration:
		return aDuration
	case f.value.Kind() == reflect.Bool:
		return aTruth
	case f.value.Kind() == reflect.String:
		return "text"
	}
	return aSize
}

const (
	aDuration = "a duration such as 10s, 500ms or 1m30s"
	aSize     = "a size such as 64MiB"
	aTruth    = "true or false"
)

func oneOf(choices []string) string { return "one of " + strings.Join(choices, ", ") }

// set stores a value, if it is one.
func (f *field) set(value string) bool {
	switch v := f.value.Addr().Interface().(type) {
	case *string:
		if f.choices != nil && !slices.Contains(f.choices, value) {
			return false
		}
		*v = value
	case *bool:
		if value != "true" && value != "false" {
			return false
		}
		*v = value == "true"
	case *time.Duration:
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return false
		}
		*v = d
	case encoding.TextUnmarshaler:
		return v.UnmarshalText([]byte(value)) == nil
	default:
		panic(fmt.Sprintf("a setting of type %v", f.value.Type()))
	}
	return true
}
