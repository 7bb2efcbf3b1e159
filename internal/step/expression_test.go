// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/msgpack"
)

// TestOperands: which parts of a condition are expressions. All else is not compiled.
func TestOperands(t *testing.T) {
	for text, want := range map[string][]string{
		`level == "DEBUG"`: nil,
		`len(msg) > 5`:     {`len(msg) > 5`},
		`level == "x" and (len(msg) > 5 or not (a + b) * 2 > c)`: {`len(msg) > 5`, `(a + b) * 2 > c`},
		`(a == 1 or b) and ((c + 1) > 2 && !(d == e))`:           {`(c + 1) > 2`, `d == e`},
		`a == 1 and b ? c : d or e`:                              {`a == 1 and b ? c : d or e`},
		`x == 1 or (a ? b : c)`:                                  {`a ? b : c`},
		`(a ? b and c : d) or e == 1`:                            {`a ? b and c : d`},
		`let x = a and b; x or c`:                                {`let x = a and b; x or c`},
		`a ?? b > 1 and c?.d == 1 and e == 1`:                    {`a ?? b > 1`, `c?.d == 1`},
		`any(l, # > 1 and # < 3) or b == 1`:                      {`any(l, # > 1 and # < 3)`},
		`f("and )", '\'or') == x or b`:                           {`f("and )", '\'or') == x`},
		"f(`a or b`) == x or `a or b` == 1":                      {"f(`a or b`) == x"},
		`a | f() > 1 and b == 1`:                                 {`a | f() > 1 and b == 1`},
		`a == b`:                                                 {`a == b`},
		`not a == b and c not in d`:                              {`a == b`, `c not in d`},
		`"x" == a`:                                               {`"x" == a`},
		`a == 5 * b`:                                             {`a == 5 * b`},
		`a in [1, b]`:                                            {`a in [1, b]`},
		`-a > 3`:                                                 {`-a > 3`},
		`[1, 2][0] == a`:                                         {`[1, 2][0] == a`},
		`tag + "x" == a or tag == "y"`:                           {`tag + "x" == a`},
	} {
		var got []string
		compile := func(text string) (*Expression, error) {
			got = append(got, text)
			return &Expression{Holds: func([]any) (bool, error) { return true, nil }}, nil
		}
		if _, err := parseCondition(text, compile); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestOperandMistakes: a mistake is the compiler's, at its place, or the parser's where no
// expression could be meant, or the compiler knows no more than that it is none.
func TestOperandMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`a == 1 and len(b) > 2`: "14 found", `a = 5`: "2 = is no comparison; == is",
		`a == "x`: "5 the text has no end: a \" is missing",
		`(a == 2`: "7 a ) is missing at the end", `a == 1)`: "6 ) is not understood here",
		`level == INFO`: `9 INFO is a field; a constant stands in quotes, "INFO", and such a field in backquotes`,
		`a ?`:           "2 found", `syntax`: "", `a == 1 or syntax x`: "17 x is not understood here",
		`n < true`:                "8 only texts and numbers have an order",
		`a == 1 and syntax(b, c)`: "17 found",
	} {
		_, err := parseCondition(text, func(text string) (*Expression, error) {
			if i := strings.Index(text, "b"); i >= 0 {
				return nil, &Fault{At: i - 1, Text: "found"}
			}
			return nil, &Fault{At: min(2, len(text)), Text: "found", Syntax: strings.Contains(text, "syntax")}
		})
		got := ""
		if f := (*Fault)(nil); errors.As(err, &f) {
			got = fmt.Sprint(f.At, " ", f.Text)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestExpressionValues: what an expression gets of a record, and what becomes of one that fails.
func TestExpressionValues(t *testing.T) {
	b := msgpack.AppendMapHeader(slices.Clone(plainHead), 9)
	for name, value := range map[string][]byte{
		"text": msgpack.AppendString(nil, "x"), "bin": {0xc4, 1, 'y'}, "int": msgpack.AppendInt(nil, -5),
		"huge":  msgpack.AppendUint(nil, math.MaxUint64),
		"float": msgpack.AppendFloat32(nil, 2.5), "true": msgpack.AppendBool(nil, true), "nil": msgpack.AppendNil(nil),
		"ext": msgpack.AppendExt(nil, 5, []byte("z")),
		"map": {0x83, 0xa1, 'a', 0x92, 1, 0xc0, 5, 5, 0xa1, 'a', 0x91, 0x90},
	} {
		b = append(msgpack.AppendString(b, name), value...)
	}
	var got []any
	var fails error
	compile := func(string) (*Expression, error) {
		e := &Expression{Holds: func(values []any) (bool, error) {
			got = slices.Clone(values)
			return true, fails
		}}
		for _, name := range []string{
			"text", "bin", "int", "huge", "float", "true", "nil", "ext", "map", "missing",
			"map.a", "text.a",
		} {
			e.Fields = append(e.Fields, strings.Split(name, "."))
		}
		e.Fields = append(e.Fields, nil)
		return e, nil
	}
	r, err := Read([]Route{{Match: "**", Do: []Step{{Keep: "f(x)"}}, To: []string{"x"}}}, []string{"x"}, 1<<20, compile)
	if err != nil {
		t.Fatal(err)
	}
	var out Sifted
	if err := r.For("x").Sift(&out, "app", b, 1, 0); err != nil || len(out.Runs) != 1 {
		t.Fatal(err, out)
	}
	list := []any{[]any{}}
	want := []any{
		"x", "y", -5, uint64(math.MaxUint64), 2.5, true, nil,
		Opaque{},
		map[string]any{"a": list},
		nil, list,
		nil, "app",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%#v\nwant\n%#v", got, want)
	}
	fails = errors.New("no")
	if err := r.For("x").Sift(&out, "app", b, 1, 0); err != nil || len(out.Failed) != 1 ||
		out.Failed[0].Reason != "keep: no" {
		t.Errorf("%v %+v", err, out)
	}
}
