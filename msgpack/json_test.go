// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendJSON(t *testing.T) {
	for _, v := range vectors {
		b := v.bytes(t)
		out, n, err := AppendJSON(nil, append(bytes.Clone(b), 0xc1, 0xff), nil)
		if err != nil || n != len(b) || string(out) != v.json {
			t.Errorf("%s: %.200s, %d, %v, want %.200s, %d", v.name, out, n, err, v.json, len(b))
			continue
		}
		if !json.Valid(out) {
			t.Errorf("%s: not valid: %.200s", v.name, out)
		}
		// Nothing may hang on what lies around the value, before the destination, or in its
		// capacity.
		for spare := range 70 {
			if len(b) > 1000 && spare%23 != 0 {
				continue
			}
			dst := append(make([]byte, 0, 6+spare), "before"...)
			out, n, err := AppendJSON(dst, b[:len(b):len(b)], nil)
			if err != nil || n != len(b) || string(out) != "before"+v.json {
				t.Fatalf("%s: with %d spare: %.200s, %d, %v", v.name, spare, out, n, err)
			}
		}
		for short := range min(len(b), 600) {
			out, n, err := AppendJSON([]byte("before"), b[:short:short], nil)
			if !errors.Is(err, ErrShort) || n != 0 || string(out) != "before" {
				t.Fatalf("%s: %d bytes of %d: %q, %d, %v", v.name, short, len(b), out, n, err)
			}
		}
	}
	for _, v := range badVectors {
		out, n, err := AppendJSON([]byte("before"), v.bytes(t), nil)
		if !errors.Is(err, v.err) || n != 0 || string(out) != "before" {
			t.Errorf("%s: %q, %d, %v, want %v", v.name, out, n, err, v.err)
		}
	}
}

func TestAppendJSONExt(t *testing.T) {
	hook := func(dst []byte, typ int8, data []byte) []byte {
		switch typ {
		case 1:
			return fmt.Appendf(dst, "%q", data)
		case 2:
			return append(dst, " [ 1,\n\"x\" ] "...)
		case 3:
			return append(append(append(dst, '"'), strings.Repeat("long", 1000)...), '"')
		}
		return append(dst, "7"...)
	}
	long := `"` + strings.Repeat("long", 1000) + `"`
	b := AppendArrayHeader(nil, 5)
	for typ := range int8(4) {
		b = AppendExt(b, typ, []byte("data"))
	}
	b = AppendMapHeader(b, 4)
	for typ := range int8(4) {
		b = AppendInt(AppendExt(b, typ, []byte("data")), int64(typ))
	}
	want := `[7,"data", [ 1,` + "\n" + `"x" ] ,` + long + `,{"7":0,"data":1," [ 1,\n\"x\" ] ":2,` + long + `:3}]`
	out, n, err := AppendJSON(nil, b, hook)
	if err != nil || n != len(b) || string(out) != want {
		t.Errorf("%s, %d, %v, want %s", out, n, err, want)
	}
}

// Escaping keys within keys must not be a way to make a small value large.
func TestAppendJSONKeysInKeys(t *testing.T) {
	b := bytes.Repeat([]byte{0x81}, DefaultDepth-1)
	b = append(b, 0x91)
	b = AppendString(b, `"\"`)
	for range DefaultDepth - 1 {
		b = append(b, 0xc0)
	}
	if n, err := Skip(b); n != len(b) || err != nil {
		t.Fatal(n, err)
	}
	out, n, err := AppendJSON(nil, b, nil)
	if n != len(b) || err != nil || !json.Valid(out) || len(out) > 20*len(b) {
		t.Errorf("%d bytes: %.2000s, %d, %v", len(out), out, n, err)
	}
	deeper := append(append([]byte{0x81}, b...), 0xc0)
	if out, _, err := AppendJSON(nil, deeper, nil); !errors.Is(err, ErrDepth) {
		t.Errorf("one deeper: %.200s, %v", out, err)
	}
	// Keys that begin where nothing more may begin.
	deepest := append(bytes.Repeat([]byte{0x91}, DefaultDepth-4), 0x81, 0x81, 0x81, 0x81, 0x80)
	if out, _, err := AppendJSON(nil, deepest, nil); !errors.Is(err, ErrDepth) {
		t.Errorf("a key too deep: %.200s, %v", out, err)
	}
}

func TestAppendJSONString(t *testing.T) {
	check := func(s string) {
		t.Helper()
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(string([]rune(s))); err != nil { // each byte that is no UTF-8 is U+FFFD
			t.Fatal(err)
		}
		if got := AppendJSONString(nil, []byte(s)); string(got) != strings.TrimSuffix(want.String(), "\n") {
			t.Fatalf("%q: %s, want %s", s, got, want.String())
		}
	}
	specials := []string{
		"\"", "\\", "\x00", "\x1f", "\n", "\x7f", "\x80", "\xff", "ü", "€", "🙂", "\u2028", "\u2029",
		"\u202a", "\xed\xa0\x80", "\xe2\x80", "\xf0\x9f\x99", "\xc1\xbf", "\xe0\x9f\xbf", "\xf4\x90\x80\x80", "\xc3",
	}
	for at := range 18 {
		for rest := range 10 {
			a, b := strings.Repeat(" !#[]~", 4)[:at], strings.Repeat("azAZ", 5)[:rest]
			for _, x := range specials {
				check(a + x + b)
				check(a + x + x + b)
			}
			check(a + b)
		}
	}
	for c := range 256 {
		for d := c % 7; d < 256; d += 7 {
			check(string([]byte{byte(c), byte(d), 'x', byte(c), 'y', byte(d)}))
		}
	}
	for r := range utf8.MaxRune + 1 {
		if r < 0x900 || r%0x29 == 0 || r&0x7ff < 2 || r&0x7ff == 0x7ff {
			check("abc" + string(r) + "abcdefgh")
		}
	}
	edges := []byte{'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff}
	for lead := 0x80; lead <= 0xff; lead++ {
		for _, b := range edges {
			for _, c := range edges {
				check("a" + string([]byte{byte(lead), b, c, 0x80, byte(lead), b, c}) + "abcd")
			}
		}
	}
	check(strings.Repeat("\x01", 1000))
	check(strings.Repeat("\xff", 1000))
	check(strings.Repeat("ü€🙂\"", 1000))
}

// Every rune there is, one after the other.
func TestAppendJSONStringRunes(t *testing.T) {
	var text []byte
	for r := rune(0x80); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) && r != 0x2028 && r != 0x2029 {
			text = utf8.AppendRune(text, r)
		}
	}
	if got := AppendJSONString(nil, text); string(got[1:len(got)-1]) != string(text) {
		t.Error("not copied as it is")
	}
}

func TestAppendJSONAllocations(t *testing.T) {
	dst := make([]byte, 0, 4096)
	record, dirty := accessRecord(), AppendMapHeader(nil, 3)
	dirty = AppendString(AppendString(dirty, "message"), "two\nlines \"quoted\" in Köln \xff")
	dirty = AppendFloat64(AppendInt(dirty, 7), 1.0/3)
	dirty = appendTestTime(AppendString(dirty, "time"), 1, 2)
	ext := func(dst []byte, _ int8, data []byte) []byte { return AppendJSONString(dst, data) }
	reserved := []string{"time", "tag"}
	for name, f := range map[string]func(){
		"record":       func() { AppendJSON(dst, record, nil) },
		"dirty":        func() { AppendJSON(dst, dirty, nil) },
		"with ext":     func() { AppendJSON(dst, dirty, ext) },
		"pairs":        func() { AppendJSONPairs(dst, record, reserved, ext) },
		"renamed pair": func() { AppendJSONPairs(dst, dirty, reserved, ext) },
		"string":       func() { AppendJSONString(dst, dirty) },
	} {
		if n := testing.AllocsPerRun(100, f); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// referenceJSON writes what AppendJSON has to write, by way of encoding/json and a tree.
func referenceJSON(b []byte, keys int) (text string, n int) {
	tok, n, err := ReadToken(b)
	if err != nil {
		panic(err)
	}
	marshal := func(v any) string {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			panic(err)
		}
		return strings.TrimSuffix(out.String(), "\n")
	}
	payload := func() string {
		n += tok.Len
		return string(b[n-tok.Len : n])
	}
	switch tok.Kind {
	case KindNil:
		return "null", n
	case KindBool:
		return fmt.Sprint(tok.Bool()), n
	case KindInt:
		return fmt.Sprint(int64(tok.num)), n
	case KindUint:
		return fmt.Sprint(tok.num), n
	case KindFloat32, KindFloat64:
		f := tok.Float()
		switch {
		case math.IsNaN(f) || math.IsInf(f, 0):
			return "null", n
		case tok.Kind == KindFloat32:
			return marshal(float32(f)), n
		}
		return marshal(f), n
	case KindStr, KindBin:
		return marshal(string([]rune(payload()))), n // each byte that is no UTF-8 is U+FFFD
	case KindExt:
		return fmt.Sprintf(`"ext:%d:%s"`, tok.Ext, base64.StdEncoding.EncodeToString([]byte(payload()))), n
	}
	var parts []string
	for range tok.Len {
		var part string
		if tok.Kind == KindMap {
			k, _, _ := ReadToken(b[n:])
			container := k.Kind == KindArray || k.Kind == KindMap
			var key string
			var m int
			if container && keys == 3 {
				if m, err = Skip(b[n:]); err != nil {
					panic(err)
				}
				key = `"msgpack:` + base64.StdEncoding.EncodeToString(b[n:n+m]) + `"`
			} else if container {
				key, m = referenceJSON(b[n:], keys+1)
			} else {
				key, m = referenceJSON(b[n:], keys)
			}
			n += m
			if key[0] != '"' {
				key = marshal(key)
			}
			part = key + ":"
		}
		v, m := referenceJSON(b[n:], keys)
		n += m
		parts = append(parts, part+v)
	}
	text = strings.Join(parts, ",")
	if tok.Kind == KindMap {
		return "{" + text + "}", n
	}
	return "[" + text + "]", n
}

// FuzzAppendJSON: what Skip accepts becomes valid JSON, the same that encoding/json makes of the
// same values; what Skip refuses is refused with the same error.
func FuzzAppendJSON(f *testing.F) {
	for _, v := range vectors {
		if b := v.bytes(f); len(b) < 1000 {
			f.Add(b, uint8(0))
		}
	}
	for _, v := range badVectors {
		if b := v.bytes(f); len(b) < 1000 {
			f.Add(b, uint8(3))
		}
	}
	f.Add(accessRecord(), uint8(77))
	f.Fuzz(func(t *testing.T, b []byte, spare uint8) {
		b = b[:len(b):len(b)]
		size, want := Skip(b)
		out, n, err := AppendJSON(make([]byte, 0, spare), b, nil)
		if want != nil {
			if n != 0 || len(out) != 0 || err == nil || errors.Unwrap(err) != nil &&
				!errors.Is(want, errors.Unwrap(err)) {
				t.Fatalf("%q, %d, %v, want %v", out, n, err, want)
			}
			return
		}
		if err != nil || n != size || !json.Valid(out) {
			t.Fatalf("%q, %d, %v, want %d", out, n, err, size)
		}
		if text, _ := referenceJSON(b, 0); string(out) != text {
			t.Fatalf("%s\nwant %s", out, text)
		}
		if tok, i, _ := ReadToken(b); tok.Kind == KindMap {
			pairs, n, err := AppendJSONPairs(make([]byte, 0, spare), b, nil, nil)
			if err != nil || n != size || "{"+string(pairs)+"}" != string(out) {
				t.Fatalf("pairs %q, %d, %v, want %s", pairs, n, err, out)
			}
			if tok.Len > 0 {
				if key, _, _, err := ReadBytes(b[i:]); err == nil && len(key) < 60 && utf8.Valid(key) &&
					bytes.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '}' || r == '"' || r == '\\' }) < 0 {
					checkRenamed(t, b, string(key))
				}
			}
		}
	})
}

// checkRenamed reserves the name of a key, and expects all other keys and the new name to differ.
func checkRenamed(t *testing.T, b []byte, name string) {
	out, _, err := AppendJSONPairs([]byte(`{"`+name+`":0`), b, []string{name, name + "_"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := len(name) + 5
	out = append(out[:i], append([]byte{','}, out[i:]...)...)
	out = append(out, '}')
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		count[key.(string)]++
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	if count[name] != 1 || count[name+"_"] != 0 {
		t.Fatalf("%s: reserved names %d and %d times", out, count[name], count[name+"_"])
	}
}
