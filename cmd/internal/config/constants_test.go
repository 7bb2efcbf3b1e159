// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"reflect"
	"testing"

	"github.com/spillwaylog/spillway/collector"
)

// TestConstants: what a scalar of YAML is as a value of a record, and that what is printed of it
// reads as the same again.
func TestConstants(t *testing.T) {
	for _, tt := range []struct {
		text string
		want any
	}{
		{"true", true},
		{"True", true},
		{"TRUE", true},
		{"false", false},
		{"False", false},
		{"FALSE", false},
		{"tRUE", "tRUE"},
		{`"True"`, "True"},
		{"'TRUE'", "TRUE"},
		{"yes", "yes"},
		{"1e3", 1000.0},
		{"1E3", 1000.0},
		{"1e+3", 1000.0},
		{"+1e3", 1000.0},
		{"-1e-3", -0.001},
		{"1.e3", 1000.0},
		{".5e1", 5.0},
		{"1.5e3", 1500.0},
		{"0e0", 0.0},
		{"09e1", 90.0},
		{"1.0e300", 1e300},
		{"1e21", 1e21},
		{"123456789012345678", int64(123456789012345678)},
		{"18446744073709551615", uint64(18446744073709551615)},
		{"18446744073709551616", "18446744073709551616"},
		{`"1e3"`, "1e3"},
		{"'1e3'", "1e3"},
		{"1e", "1e"},
		{"e3", "e3"},
		{".e3", ".e3"},
		{"1e3.5", "1e3.5"},
		{"1e3 m", "1e3 m"},
		{"[1e3, {b: -1e300}]", []any{1000.0, constants("b", -1e300)}},
		{"'$${HOME}'", "${HOME}"},
		{"'$$${a} $${ $x {} $'", "$${a} ${ $x {} $"},
		{"{'${b}': ['$${c}']}", constants("${b}", []any{"${c}"})},
		{"[True, {b: FALSE}]", []any{true, constants("b", false)}},
	} {
		path := write(t, "a.yaml", "sure: True\ndata: $${x}/$$${y\noutputs: {o: 'discard:'}\n"+
			"routes: [{match: '**', to: o, do: [{set: {a: "+tt.text+"}}, {rename: {x: 'True', y: 'NULL', '${x}': '$${y}'}}]}]\n")
		var settings flags
		file, err := Load(path, options(&settings))
		if err != nil || !settings.Sure {
			t.Errorf("%s: %v, %+v", tt.text, err, settings)
			continue
		}
		if got := file.Routes[0].Do[0].Set; !reflect.DeepEqual(got, constants("a", tt.want)) {
			t.Errorf("%s is %#v, want %#v", tt.text, got, tt.want)
		}
		printed := file.Print(&settings, file.Inputs, file.Outputs)
		if err := os.WriteFile(path, []byte(printed), 0o600); err != nil {
			t.Fatal(err)
		}
		var second flags
		again, err := Load(path, options(&second))
		if err != nil || !reflect.DeepEqual(again.Routes, file.Routes) || !reflect.DeepEqual(second, settings) {
			t.Errorf("%s: %v, it was printed as\n%s", tt.text, err, printed)
		}
	}
}

func constants(field string, value any) collector.Values {
	return collector.Values{{Field: field, Value: value}}
}
