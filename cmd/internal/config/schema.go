// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/urls"
)

// object is one of JSON, whose keys come out in the order of the alphabet.
type object map[string]any

// Patterns of what the schema can see of a text.
const (
	dynamicText  = `\$\{` // what ${…} gives is not known
	sizeText     = `^([0-9]+([KMGT]iB|[kKMGT]?B)?$|.*\$\{)`
	durationText = `^(0$|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|.*\$\{)`
	nameText     = `^[A-Za-z0-9._-]{1,64}$`
)

// Schema returns a JSON Schema of what a file may say, made from the fields of the settings and
// from the parameters of ends.
func Schema(o *Options) ([]byte, error) {
	properties := object{
		includeKey: object{
			"description": "Files to read as well: a pattern such as conf.d/*.yaml, or a list of them.",
			"anyOf":       []any{object{"type": "string"}, object{"type": "array", "items": object{"type": "string"}}},
		},
		inputsKey:  endsSchema("Where events come in, by name.", o.Ends[inputsKey]),
		outputsKey: endsSchema("Where events go, by name.", o.Ends[outputsKey]),
		routesKey: shape(reflect.TypeFor[[]collector.Route](),
			`help:"Which events go to which outputs, and what becomes of them on the way; the first that matches, unless it says continue."`),
		testsKey: shape(reflect.TypeFor[[]Test](),
			`help:"Events, and what outputs get of them: run by spillway check."`),
	}
	fields := fieldsOf(o.Settings)
	for i := range fields {
		properties[fields[i].key] = fields[i].schema(o.Ends[fields[i].key])
	}
	return json.MarshalIndent(object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Configuration of spillway serve",
		"type":                 "object",
		"additionalProperties": false,
		"properties":           properties,
	}, "", "  ")
}

func (f *field) schema(ends Ends) object {
	var s object
	switch {
	case f.end:
		s = endSchema(ends)
	case f.choices != nil:
		s = choices(f.choices)
	case f.value.Type() == duration:
		s = span()
	case f.value.Kind() == reflect.Bool:
		s = truth()
	case f.value.Kind() == reflect.String:
		s = word()
	default:
		s = size()
	}
	s["description"] = f.about
	return s
}

func size() object {
	return object{"anyOf": []any{
		object{"type": "string", "pattern": sizeText},
		object{"type": "integer", "minimum": 0},
	}}
}

func span() object {
	return object{"anyOf": []any{object{"type": "string", "pattern": durationText}, object{"const": 0}}}
}

func word() object { return object{"type": []string{"string", "number"}, "minLength": 1} }

func truth() object {
	return object{"anyOf": []any{object{"type": "boolean"}, object{"type": "string", "pattern": dynamicText}}}
}

func choices(list []string) object {
	return object{"anyOf": []any{object{"enum": list}, object{"type": "string", "pattern": dynamicText}}}
}

func endsSchema(about string, ends Ends) object {
	return object{
		"description":          about,
		"type":                 "object",
		"propertyNames":        object{"pattern": nameText},
		"additionalProperties": endSchema(ends),
	}
}

// endSchema is a URL, or a map of a URL and the parameters of its scheme.
func endSchema(ends Ends) object {
	schemes := slices.Sorted(maps.Keys(ends))
	var quoted []string
	for _, scheme := range schemes {
		quoted = append(quoted, regexp.QuoteMeta(scheme))
	}
	forms := []any{object{"type": "string", "pattern": `^((` + strings.Join(quoted, "|") + `):|.*\$\{)`}}
	if ends[""] != nil { // an address without a scheme
		forms[0] = object{"type": "string"}
	}
	for _, scheme := range schemes {
		if scheme == "" {
			continue
		}
		properties := object{urlKey: object{"type": "string", "pattern": `^` + regexp.QuoteMeta(scheme) + `:`}}
		for i := range ends[scheme] {
			properties[ends[scheme][i].Name] = parameterSchema(&ends[scheme][i])
		}
		forms = append(forms, object{
			"type": "object", "title": scheme, "required": []string{urlKey},
			"additionalProperties": false, "properties": properties,
		})
	}
	forms = append(forms, object{
		"type": "object", "title": "a URL from a variable", "required": []string{urlKey},
		"properties": object{urlKey: object{"type": "string", "pattern": `^\$\{`}},
	})
	return object{"anyOf": forms}
}

func parameterSchema(p *collector.Parameter) object {
	var s object
	switch p.Takes {
	case urls.TakesChoice:
		s = choices(p.Choices)
	case urls.TakesBool:
		s = truth()
	case urls.TakesInt:
		s = object{"anyOf": []any{
			object{"type": "integer", "minimum": p.Low, "maximum": p.High},
			object{"type": "string", "pattern": `^[0-9]+$|\$\{`},
		}}
	case urls.TakesSize:
		s = size()
	case urls.TakesDuration:
		s = span()
	default:
		s = word()
	}
	if p.Repeated {
		s = object{"anyOf": []any{s, object{"type": "array", "items": s}}}
	}
	return s
}
