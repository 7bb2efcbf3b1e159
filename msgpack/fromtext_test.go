// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// viaDecoder is what AppendFromJSON makes of a text.
func viaDecoder(src []byte) ([]byte, int64, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	out, err := AppendFromJSON(nil, dec)
	return out, dec.InputOffset(), err
}

// sameAsDecoder compares both readers on one text.
func sameAsDecoder(t *testing.T, src []byte) {
	t.Helper()
	want, at, wantErr := viaDecoder(src)
	dst := []byte("kept")
	got, n, err := AppendFromJSONText(dst, src)
	if err != nil {
		if wantErr == nil {
			t.Fatalf("%q: %v, want %x", src, err, want)
		}
		if string(got) != "kept" || n < 0 || n > len(src) {
			t.Fatalf("%q: %q and %d with an error", src, got, n)
		}
		if !errors.Is(err, ErrShort) && !errors.Is(err, ErrJSON) && !errors.Is(err, ErrDepth) {
			t.Fatalf("%q: %v", src, err)
		}
		return
	}
	if wantErr != nil {
		// The decoder reads a literal to the end of its token, and looks at the byte behind it.
		if _, _, err := viaDecoder(src[:n]); err == nil {
			return
		}
		t.Fatalf("%q: %x, want %v", src, got[4:], wantErr)
	}
	if !bytes.Equal(got[4:], want) || int64(n) != at {
		t.Fatalf("%q: %x, %d bytes, want %x, %d", src, got[4:], n, want, at)
	}
}

var jsonTexts = []string{
	``, ` `, `null`, `true`, `false`, `nul`, `nulL`, `tru`, `0`, `-0`, `-1`, `01`, `-`, `1.`, `1.5`, `1e`, `1e5`,
	`1E-5`, `1e+`, `-0.0`, `.5`, `+1`,
	`123456789012345678`, `1234567890123456789`, `-1234567890123456789`, `-9223372036854775808`, `-9223372036854775809`,
	`18446744073709551615`, `18446744073709551616`, `1e999`, `0.1`, `5e-324`,
	`""`, `"a"`, `"ü日本"`, `"\u00fc"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ude00\ud83d"`,
	`"\u12"`, `"\u12g4"`, `"\x"`, `"\`, `"`, `"a`,
	"\"\xff\"", "\"a\xffb\xe2\x82\"", "\"a\nb\"", "\"\x7f\"", "\"\xc0\xa2\"", "\"1234567\xa2\xdc90\"",
	`"\b\f\n\r\t\/\\\""`, `"0123456\"89012345\"7890"`,
	`{}`, `[]`, `[1,2]`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1}`, `{"a":1,"a":2}`, `{"a" : [ 1 , {"b":null} ] }`, `{"a"}`,
	`{a:1}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, `[}`, `{]`, `[1}`,
	` {"a":1} trailing`, `[1]]`, `12 13`,
	`[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]`,
	`{"level":"info","time":"2026-01-02T03:04:05Z","n":-5,"f":1.25,"message":"order placed"}`,
}

func TestAppendFromJSONText(t *testing.T) {
	for _, text := range jsonTexts {
		sameAsDecoder(t, []byte(text))
	}
	for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 256, 65535, 65536} {
		sameAsDecoder(t, []byte(`"`+strings.Repeat("x", n)+`"`))
		sameAsDecoder(t, []byte(`"`+strings.Repeat("x", n)+`\n"`))
		sameAsDecoder(t, []byte(`"`+strings.Repeat("ü", n)+"\xff\""))
		sameAsDecoder(t, []byte(`[`+strings.Repeat("1,", n)+`2]`))
	}
	for _, n := range []int{DefaultDepth, DefaultDepth + 1, 100_000} {
		text := []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
		if _, _, err := AppendFromJSONText(nil, text); n > DefaultDepth != errors.Is(err, ErrDepth) {
			t.Errorf("depth %d: %v", n, err)
		}
	}
	for text, want := range map[string]error{
		``: ErrShort, `{"a":`: ErrShort, `"a`: ErrShort, `"\u12`: ErrShort,
		`-`: ErrShort, `tr`: ErrShort, `x`: ErrJSON, `[1 2]`: ErrJSON, "\"\n\"": ErrJSON,
	} {
		if _, _, err := AppendFromJSONText(nil, []byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func TestAppendFromJSONTextAllocates(t *testing.T) {
	src := []byte(jsonTexts[len(jsonTexts)-1])
	dst := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = AppendFromJSONText(dst, src) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzAppendFromJSONText(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) { sameAsDecoder(t, src) })
}

func BenchmarkFromJSON(b *testing.B) {
	src := []byte(`{"level":"info","method":"GET","path":"/api/v1/orders/12345/items","status":200,"bytes":51234,"took":12.5,"remote":"192.168.12.17:51234",` +
		`"agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0)","id":"3f2b1c9e-7a64-4e0b-9d5a-1c2d3e4f5a6b","user":9876543210,"cached":true,"message":"request served"}`)
	dst := make([]byte, 0, 1024)
	b.Run("text", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = AppendFromJSONText(dst, src)
		}
	})
	b.Run("decoder", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		for b.Loop() {
			dec := json.NewDecoder(bytes.NewReader(src))
			dec.UseNumber()
			_, _ = AppendFromJSON(dst, dec)
		}
	})
}

func TestAppendFromJSONMember(t *testing.T) {
	src := []byte(` "a\n" : -12.50 , "b"`)
	out, value, from, n, err := AppendFromJSONMember(nil, src)
	want := AppendFloat64(AppendString(nil, "a\n"), -12.5)
	if err != nil || !bytes.Equal(out, want) || value != 3 || string(src[from:n]) != "-12.50" {
		t.Errorf("%x, %d, %q, %v", out, value, src[from:n], err)
	}
	for _, bad := range []string{``, `1:2`, `"a"`, `"a":`, `"a" 1`, `"a":]`} {
		if out, _, _, _, err := AppendFromJSONMember([]byte("before"), []byte(bad)); err == nil ||
			string(out) != "before" {
			t.Errorf("%q: %q, %v", bad, out, err)
		}
	}
}
