// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"testing"

	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/msgpack"
)

// FuzzSame: what a condition says by itself means the same where it is an expression, for any
// record, unless that refuses it or fails.
func FuzzSame(f *testing.F) {
	for _, s := range []string{
		`level == "DEBUG"`, `a.b in [1, 'x', nil] and not (c contains "d" or tag matches "^x")`,
		`m > 1e-3 and n < 1E-3`, `n != -1.5e3 || !d && e <= 18446744073709551615`,
		`raw == "\xff" or raw == "\303\277"`, `raw in ['\"', '\xff', "ÿ"]`, `raw == "\u00ff"`, `raw == "\'"`,
		`a not in ["\x00", "\u00e9", "\101", '\"', "\a"]`, "`a b` == 1 and `a` == nil", `a-b == 1`, `a/b == 1`,
		`not a == nil`, `len == 5 or max == 2`, `tag.x == 1`,
		`null == nil`, `a == null`, `big == 18446744073709551615`, `big > 9223372036854775807.5`, `n == 5.0`,
		`n in [5.0, true]`, `debug`, `let == 1`, `$env == nil`, `a.0 == 1`,
		`n >= 010`, `n == +5`, `n == 1_000`, `n == 0x10`, `"x" == a`, `user == nil or user.id not in [7]`,
		`not (n > 4) and not ok == true`, `tags == nil`, `é == "é"`, `_ == .5`,
	} {
		f.Add(s, []byte(entry(f, record)[len(head):]))
	}
	f.Add(`big < 18446744073709551616.0`, []byte("\x83\xa3big\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xa1a\xca\x7f\xc0\x00\x00\xa1n\xd3\x80\x00\x00\x00\x00\x00\x00\x00"))
	f.Add(`raw == "\xff"`, []byte("\x81\xa3raw\xa1\xff"))
	f.Fuzz(func(t *testing.T, text string, record []byte) {
		own, err := step.Read([]step.Route{{Match: "**", Do: []step.Step{{Keep: text}}, To: []string{"x"}}},
			[]string{"x"}, 1<<20, nil)
		if err != nil {
			return
		}
		other, err := sifter("(" + text + ") ? true : false")
		if err != nil {
			return
		}
		b := append([]byte(head), record...)
		if n, err := msgpack.Skip(b); err != nil || n != len(b) || len(b) > 1<<16 {
			return
		}
		if tok, _, _ := msgpack.ReadToken(record); tok.Kind != msgpack.KindMap {
			return
		}
		want, why := holds(t, own.For("x"), b)
		if why != "" {
			t.Fatal(why)
		}
		if got, why := holds(t, other, b); got != want && why == "" {
			t.Errorf("%q: %v as a condition, %v as an expression, of % x", text, want, got, record)
		}
	})
}

// FuzzCompile: no text makes the compiler do more than say what is wrong, at a place in the text;
// what it takes can be evaluated.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`len(msg) > 100`, `any(items, {#.price > 3})`, `let x = a + 1; x ?? b > 3`, `a ? b : c`,
		`split(a, ",")[-1] in 1..5`, "`a b`?.c[0:1] == 'x'", `not x == y`, `a matches "("`,
		`(((`, `#`, `"`, `a | len() > 1`, `1e999 == a`, `9223372036854775808 > a`, `-(-9223372036854775807 - 1) > a`,
		`a[0:1][-1]?.b % 2.5 > c`, `-a..b * 2 == c[d:]`, `"\xff" + '\"' > a["\x61"]`,
		`map(1..9, # ** 9)[0] % 0 == a`,
	} {
		f.Add(s)
	}
	e := entry(f, record)
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Compile(text)
		if err != nil {
			f := (*step.Fault)(nil)
			if !errors.As(err, &f) || f.At < 0 || f.At > len(text) || f.Text == "" {
				t.Errorf("%q: %#v", text, err)
			}
			return
		}
		if s, err := sifter(text); err == nil {
			holds(t, s, e)
		}
	})
}
