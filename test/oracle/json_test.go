// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spillwaylog/spillway/msgpack"
)

// TestAppendJSON has encoding/json read what AppendJSON wrote of a value, and compares it with the
// value.
func TestAppendJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "value")
		b := encode(t, v)
		out, n, err := msgpack.AppendJSON([]byte("kept"), b, nil)
		if err != nil || n != len(b) {
			t.Fatalf("%d, %v; want %d", n, err, len(b))
		}
		text, ok := bytes.CutPrefix(out, []byte("kept"))
		if !ok {
			t.Fatalf("the bytes before are gone: %q", out)
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		var got any
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := means(got, v); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

// means says in what a JSON value differs from a value.
func means(got, want any) error {
	valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	switch want := want.(type) {
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return fmt.Errorf("%v, want %v", got, want)
		}
		for i := range want {
			if err := means(got[i], want[i]); err != nil {
				return err
			}
		}
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%v, want %v", got, want)
		}
		for k := range want {
			e, ok := got[valid(k)]
			if !ok {
				return fmt.Errorf("no key %q", k)
			}
			if err := means(e, want[k]); err != nil {
				return fmt.Errorf("%q: %w", k, err)
			}
		}
	case string:
		if got != valid(want) {
			return fmt.Errorf("%q, want %q", got, want)
		}
	case []byte: // each invalid byte becomes one U+FFFD, as a range over the string has it
		if s, ok := got.(string); !ok || s != string([]rune(string(want))) {
			return fmt.Errorf("%q, want %q", got, want)
		}
	case float32:
		return number(got, float64(want), 32)
	case float64:
		return number(got, want, 64)
	case int64, uint64:
		if text, ok := got.(json.Number); !ok || string(text) != fmt.Sprint(want) {
			return fmt.Errorf("%v, want %v", got, want)
		}
	default:
		if got != want {
			return fmt.Errorf("%v, want %v", got, want)
		}
	}
	return nil
}

// number wants the shortest text that reads back as the same float, and null for what JSON has no
// number for.
func number(got any, want float64, bits int) error {
	if math.IsNaN(want) || math.IsInf(want, 0) {
		if got != nil {
			return fmt.Errorf("%v, want null", got)
		}
		return nil
	}
	text, _ := got.(json.Number)
	f, err := strconv.ParseFloat(string(text), bits)
	if err != nil || f != want || math.Signbit(f) != math.Signbit(want) {
		return fmt.Errorf("%v, want %v", got, want)
	}
	digits := func(s string) int {
		s, _, _ = strings.Cut(strings.ToLower(s), "e")
		s = strings.Trim(strings.NewReplacer(".", "", "-", "").Replace(s), "0")
		return len(s)
	}
	if short := strconv.FormatFloat(want, 'e', -1, bits); digits(string(text)) > digits(short) {
		return fmt.Errorf("%v has more digits than %v", text, short)
	}
	return nil
}
