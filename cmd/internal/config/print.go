// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/urls"
)

// Print returns settings and ends as a file of YAML, with *** for what is secret and for what
// variables and files gave. What no file says, and has no default, is left out.
func (f *File) Print(settings any, inputs, outputs []collector.End) string {
	var b strings.Builder
	for _, one := range fieldsOf(settings) {
		if text := one.text(); text != "" {
			if one.value.Kind() == reflect.String {
				text = f.safe(text)
			}
			fmt.Fprintf(&b, "%s: %s\n", one.key, text)
		}
	}
	f.printEnds(&b, inputsKey, inputs)
	f.printEnds(&b, outputsKey, outputs)
	if f != nil && len(f.Routes) > 0 {
		f.printPart(&b, routesKey+":", reflect.ValueOf(f.Routes), "", "")
	}
	return b.String()
}

func (f *File) printEnds(b *strings.Builder, key string, ends []collector.End) {
	named := slices.ContainsFunc(ends, func(e collector.End) bool { return e.Name != "" })
	if named {
		fmt.Fprintf(b, "%s:\n", key)
	}
	for i := range ends {
		switch e := &ends[i]; {
		case e.Name != "":
			fmt.Fprintf(b, "  %s: %s\n", e.Name, f.safe(e.URL))
		case named:
			fmt.Fprintf(b, "  # without a name: %s\n", f.safe(e.URL))
		default:
			fmt.Fprintf(b, "# %s, without a name: %s\n", key, f.safe(e.URL))
		}
	}
}

// unexpanded is the text whose expansion is this one. What is not shown is taken out before.
func unexpanded(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// safe is a value fit to be shown, as a scalar of YAML.
func (f *File) safe(text string) string { return scalar(unexpanded(f.Hide(urls.Show(text)))) }

// scalar is a text as one of YAML.
func scalar(text string) string {
	switch strings.ToLower(text) { // True and NULL are no text either
	case "true", "false", "null", "~", "-":
		return strconv.Quote(text)
	}
	for i := range len(text) {
		if !letter(text[i]) && !strings.Contains("/._+-", text[i:i+1]) {
			return strconv.Quote(text)
		}
	}
	return text
}

// text is the value as a file would have it; empty where it has none.
func (f *field) text() string {
	switch v := f.value.Interface().(type) {
	case time.Duration:
		return v.String()
	case fmt.Stringer:
		return v.String()
	}
	switch f.value.Kind() {
	case reflect.Int64:
		return sizeOf(f.value.Int())
	case reflect.Bool:
		return strconv.FormatBool(f.value.Bool())
	}
	return f.value.String()
}

// sizeOf writes a size in the largest unit that has no fractions.
func sizeOf(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// longHidden stands for a secret, and is as long as one has to be: what is in force can be read
// again.
const longHidden = hidden + " not shown " + hidden

// printPart prints a value behind its key, or behind the dash of an item.
func (f *File) printPart(b *strings.Builder, head string, v reflect.Value, indent string, tag reflect.StructTag) {
	if tag.Get("secret") != "" {
		fmt.Fprintf(b, "%s %q\n", head, longHidden)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		f.printPart(b, head, v.Elem(), indent, tag)
	case reflect.Struct:
		f.printFields(b, head, v, indent)
	case reflect.Slice:
		if names, ok := v.Interface().(collector.Names); ok {
			b.WriteString(head + "\n")
			for _, n := range names {
				fmt.Fprintf(b, "%s  %s: %s\n", indent, scalar(f.Hide(urls.Show(n.From))), f.safe(n.To))
			}
			return
		}
		if values, ok := v.Interface().(collector.Values); ok {
			fmt.Fprintf(b, "%s %s\n", head, f.flow(values))
			return
		}
		b.WriteString(head + "\n")
		for i := range v.Len() {
			f.printPart(b, indent+"  -", v.Index(i), indent+"    ", "")
		}
	default:
		fmt.Fprintf(b, "%s %s\n", head, f.flow(v.Interface()))
	}
}

// printFields prints what a structure says, the first of it behind a dash.
func (f *File) printFields(b *strings.Builder, head string, v reflect.Value, indent string) {
	dash := strings.HasSuffix(head, "-")
	if v.IsZero() {
		b.WriteString(head + " {}\n")
		return
	}
	if !dash {
		b.WriteString(head + "\n")
		indent += "  "
	}
	for _, part := range reflect.VisibleFields(v.Type()) {
		value := v.FieldByIndex(part.Index)
		if value.IsZero() {
			continue
		}
		before := indent
		if dash {
			before = head + " "
			dash = false
		}
		f.printPart(b, before+keyOf(part.Name)+":", value, indent, part.Tag)
	}
}

// flow is a value in one line.
func (f *File) flow(v any) string {
	var items []string
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(unexpanded(f.Hide(v)))
	case []any:
		for _, one := range v {
			items = append(items, f.flow(one))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case collector.Values:
		for i := range v {
			items = append(items, strconv.Quote(f.Hide(v[i].Field))+": "+f.flow(v[i].Value))
		}
		return "{" + strings.Join(items, ", ") + "}"
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	}
	return fmt.Sprint(v)
}
