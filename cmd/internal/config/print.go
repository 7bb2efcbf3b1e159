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

// safe is a value fit to be shown, as a scalar of YAML.
func (f *File) safe(text string) string {
	text = f.Hide(urls.Show(text))
	switch text {
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
