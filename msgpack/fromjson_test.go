// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func decoder(text string) *json.Decoder {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d
}

func TestAppendFromJSON(t *testing.T) {
	elements := func(n int) string { return "[0" + strings.Repeat(",0", n-1) + "]" }
	array := func(n int) []byte { return append(AppendArrayHeader(nil, n), make([]byte, n)...) }
	for _, tt := range []struct {
		json string
		want []byte
	}{
		{`null`, AppendNil(nil)},
		{`true`, AppendBool(nil, true)},
		{`0`, AppendInt(nil, 0)},
		{`-1`, AppendInt(nil, -1)},
		{`9223372036854775807`, AppendUint(nil, 1<<63-1)},
		{`-9223372036854775808`, AppendInt(nil, -1<<63)},
		{`18446744073709551615`, AppendUint(nil, 1<<64-1)},
		{`18446744073709551616`, AppendFloat64(nil, 1<<64)},
		{`-9223372036854775809`, AppendFloat64(nil, -1<<63)},
		{`-0`, []byte{0xcb, 0x80, 0, 0, 0, 0, 0, 0, 0}},
		{`1.0`, AppendFloat64(nil, 1)},
		{`1e3`, AppendFloat64(nil, 1000)},
		{`0.1`, AppendFloat64(nil, 0.1)},
		{`1e-999`, AppendFloat64(nil, 0)},
		{`1e999`, AppendString(nil, "1e999")},
		{`-1e999`, AppendString(nil, "-1e999")},
		{`"ü\n\ud83d\ude42"`, AppendString(nil, "ü\n🙂")},
		{`""`, AppendString(nil, "")},
		{`[]`, AppendArrayHeader(nil, 0)},
		{`{}`, AppendMapHeader(nil, 0)},
		{elements(15), array(15)},
		{elements(16), array(16)},
		{elements(65535), array(65535)},
		{elements(65536), array(65536)},
		{
			`{"b":1,"a":[{"c":null}],"b":2}`,
			AppendInt(AppendString(append(append(AppendString(AppendInt(AppendString(AppendMapHeader(nil, 3), "b"), 1),
				"a"), 0x91, 0x81, 0xa1, 'c'), 0xc0), "b"), 2),
		},
		{
			`[` + elements(20) + `,{"k":` + elements(17) + `}]`,
			append(append(append([]byte{0x92}, array(20)...), 0x81, 0xa1, 'k'), array(17)...),
		},
		{strings.Repeat("[", 128) + strings.Repeat("]", 128), append(bytes.Repeat([]byte{0x91}, 127), 0x90)},
	} {
		d := decoder(tt.json + " 7")
		got, err := AppendFromJSON([]byte("before"), d)
		if err != nil || string(got) != "before"+string(tt.want) {
			t.Errorf("%.100s: %.200x, %v, want %.200x", tt.json, got, err, tt.want)
		}
		if got, err := AppendFromJSON(nil, d); err != nil || string(got) != "\x07" {
			t.Errorf("%.100s: then %x, %v", tt.json, got, err)
		}
		if got, err := AppendFromJSON(nil, d); !errors.Is(err, io.EOF) || got != nil {
			t.Errorf("%.100s: at the end %x, %v", tt.json, got, err)
		}
	}
	if got, err := AppendFromJSON(nil, json.NewDecoder(strings.NewReader("1.5"))); err != nil ||
		!bytes.Equal(got, AppendFloat64(nil, 1.5)) {
		t.Errorf("without UseNumber: %x, %v", got, err)
	}
}

func TestAppendFromJSONBad(t *testing.T) {
	for _, tt := range []struct {
		json string
		err  error
	}{
		{``, io.EOF},
		{` `, io.EOF},
		{`[`, io.ErrUnexpectedEOF},
		{`[1,`, io.ErrUnexpectedEOF},
		{`{"a":`, io.ErrUnexpectedEOF},
		{`"a`, io.ErrUnexpectedEOF},
		{`[1}`, nil},
		{`]`, nil},
		{`{1:2}`, nil},
		{`{"a" 1}`, nil},
		{`[1 2]`, nil},
		{`tru`, nil},
		{strings.Repeat("[", 129), ErrDepth},
		{strings.Repeat("[", 100_000), ErrDepth},
		{strings.Repeat(`{"a":`, 100_000), ErrDepth},
	} {
		got, err := AppendFromJSON([]byte("before"), decoder(tt.json))
		if err == nil || tt.err != nil && !errors.Is(err, tt.err) || string(got) != "before" {
			t.Errorf("%.100s: %q, %v, want %v", tt.json, got, err, tt.err)
		}
	}
}

// sameJSON compares two JSON texts token by token. Numbers are the same if their values are, as far
// as int64, uint64 and float64 reach.
func sameJSON(want, got string) error {
	a, b := decoder(want), decoder(got)
	for {
		x, err := a.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		y, err := b.Token()
		if err != nil {
			return err
		}
		if n, ok := x.(json.Number); ok {
			if m, ok := y.(json.Number); ok && sameNumber(string(n), string(m)) {
				continue
			}
			if _, err := strconv.ParseFloat(string(n), 64); err != nil && y == string(n) {
				continue
			}
			return fmt.Errorf("number %v became %v", x, y)
		}
		if x != y {
			return fmt.Errorf("%v became %v", x, y)
		}
	}
	if y, err := b.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%v at the end: %w", y, err)
	}
	return nil
}

func sameNumber(n, m string) bool {
	if !strings.ContainsAny(n, ".eE") && n != "-0" {
		if i, ok := new(big.Int).SetString(n, 10); ok && (i.IsInt64() || i.IsUint64()) {
			return n == m
		}
	}
	f, err := strconv.ParseFloat(n, 64)
	g, gerr := strconv.ParseFloat(m, 64)
	return err == nil && gerr == nil && f == g && (n[0] == '-') == (m[0] == '-')
}

// FuzzAppendFromJSON: what JSON becomes is one whole value in shortest form, and becomes the same
// JSON again.
func FuzzAppendFromJSON(f *testing.F) {
	for _, v := range vectors {
		if len(v.json) < 1000 {
			f.Add(v.json)
		}
	}
	for _, s := range []string{
		`[1e999,-0,1E2,0.10,123456789012345678901234567890]`, ` { "a" : [ ] , "a" : { } } `,
		`["\ud800\u0000"]`, `[1,2`, "\"\xff\"",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := AppendFromJSON(nil, decoder(text))
		if err != nil {
			if len(b) != 0 || !errors.Is(err, ErrDepth) && json.Valid([]byte(text)) {
				t.Fatalf("%x, %v", b, err)
			}
			return
		}
		if n, err := Skip(b); n != len(b) || err != nil {
			t.Fatalf("%x: %d of %d, %v", b, n, len(b), err)
		}
		out, n, err := AppendJSON(nil, b, nil)
		if n != len(b) || err != nil || !json.Valid(out) {
			t.Fatalf("%x: %s, %d, %v", b, out, n, err)
		}
		if json.Valid([]byte(text)) {
			if err := sameJSON(text, string(out)); err != nil {
				t.Fatalf("%s became %s: %v", text, out, err)
			}
		}
		if again, err := AppendFromJSON(nil, decoder(string(out))); err != nil || len(again) > len(b) {
			t.Fatalf("%x became %x, %v", b, again, err)
		}
	})
}
