// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A field is one that a struct writes, its own or one of a struct that is embedded in it.
type field struct {
	name   string
	index  []int // the way to it, as reflect.Value.FieldByIndex takes it
	typ    reflect.Type
	tagged bool // the name is from a tag
	tag
}

// A tag holds the options of a field.
type tag struct {
	omitEmpty, omitZero, quoted bool
}

// parseTag reads the tag "log" of a field, or if there is none "json". The name is empty if the tag
// gives none that can be used.
func parseTag(f reflect.StructField) (name string, opts tag, skip bool) {
	text, ok := f.Tag.Lookup("log")
	if !ok {
		text = f.Tag.Get("json")
	}
	if text == "-" {
		return "", tag{}, true
	}
	name, rest, _ := strings.Cut(text, ",")
	for rest != "" {
		var o string
		o, rest, _ = strings.Cut(rest, ",")
		switch o {
		case "omitempty":
			opts.omitEmpty = true
		case "omitzero":
			opts.omitZero = true
		case "string":
			opts.quoted = true
		}
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) {
			name = "" // as encoding/json: a name with a quote, a comma or a backslash counts as none
			break
		}
	}
	return name, opts, false
}

// fieldsOf lists the fields of a struct type as encoding/json sees them. Embedded structs are
// searched level by level. Of the fields of one name, those of the first level that has any hide
// all deeper ones; on that level one with a tag goes before those without; if then there is not
// exactly one, none is written. A type is searched on the first level where it stands; what stands
// there twice has its fields twice. Not as encoding/json: an embedded time.Time is a field, for it
// has none to be flattened to.
func fieldsOf(t reflect.Type) []field {
	type embedded struct {
		typ   reflect.Type
		index []int
	}
	type contest struct {
		level          int
		tagged, plain  int // how many fields of this level
		winner, second int // the last with and the last without a tag, in found
	}
	var (
		found    []field
		contests = map[string]*contest{}
		visited  = map[reflect.Type]bool{}
		next     = []embedded{{typ: t}}
		times    map[reflect.Type]int // how often a type stands on this level
	)
	for level := 0; len(next) > 0; level++ {
		current, nextTimes := next, map[reflect.Type]int{}
		next = nil
		for _, e := range current {
			if visited[e.typ] {
				continue
			}
			visited[e.typ] = true
			for i := range e.typ.NumField() {
				sf := e.typ.Field(i)
				inner := sf.Type
				if inner.Name() == "" && inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				if !sf.IsExported() && (!sf.Anonymous || inner.Kind() != reflect.Struct) {
					continue
				}
				name, opts, skip := parseTag(sf)
				if skip {
					continue
				}
				index := append(slices.Clone(e.index), i)
				if sf.Anonymous && name == "" && inner.Kind() == reflect.Struct &&
					inner != reflect.TypeFor[time.Time]() {
					if nextTimes[inner]++; nextTimes[inner] == 1 {
						next = append(next, embedded{inner, index})
					}
					continue
				}
				f := field{name: name, index: index, typ: sf.Type, tagged: name != "", tag: opts}
				if !f.tagged {
					f.name = sf.Name
				}
				f.quoted = f.quoted && quotable(inner.Kind())
				c := contests[f.name]
				if c == nil {
					c = &contest{level: level}
					contests[f.name] = c
				}
				if c.level != level {
					continue
				}
				found = append(found, f)
				n := max(1, min(2, times[e.typ]))
				if f.tagged {
					c.tagged, c.winner = c.tagged+n, len(found)-1
				} else {
					c.plain, c.second = c.plain+n, len(found)-1
				}
			}
		}
		times = nextTimes
	}
	var out []field
	for _, c := range contests {
		switch {
		case c.tagged == 1:
			out = append(out, found[c.winner])
		case c.tagged == 0 && c.plain == 1:
			out = append(out, found[c.second])
		}
	}
	slices.SortFunc(out, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return out
}

// quotable reports whether option "string" means anything for a kind.
func quotable(k reflect.Kind) bool {
	return k == reflect.String || k == reflect.Bool || cmp.Compare(k, reflect.Int) >= 0 && k <= reflect.Float64
}
