// SPDX-License-Identifier: Apache-2.0

// Package alike is for the tests of adapters: what another library writes as JSON is compared with
// the record that came of the same call.
package alike

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/msgpack"
)

// Random returns a source whose seed the test's log has. SPILLWAY_SEED repeats one.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("SPILLWAY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SPILLWAY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Open returns a logger that is closed when the test ends.
func Open(t testing.TB, to string, o *spillway.Options) *spillway.Logger {
	t.Helper()
	log, err := spillway.Open(to, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return log
}

// pieces are what texts are made of.
var pieces = []string{
	"a", "ü", "日本", "\n", "\"", "\\", "<b>", "&", "\u2028", "\x00", "\x7f", "\xff", "\b\f\r\t", " ",
	"fields.", "€\xe2\x82",
}

// Text returns a random text, with all that JSON escapes, and with what is no UTF-8.
func Text(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// Line reads an object of JSON. Of a name that stands twice the last one counts.
func Line(t testing.TB, line []byte) map[string]any {
	t.Helper()
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return normal(m).(map[string]any)
}

// Record reads a MessagePack record in the same way.
func Record(t testing.TB, rec []byte) map[string]any {
	t.Helper()
	line, n, err := msgpack.AppendJSON(nil, rec, nil)
	if err != nil || n != len(rec) {
		t.Fatalf("%x: %v after %d bytes", rec, err, n)
	}
	return Line(t, line)
}

// normal makes numbers equal that read as the same integer or float.
func normal(v any) any {
	switch x := v.(type) {
	case json.Number:
		if _, err := strconv.ParseInt(x.String(), 10, 64); err == nil && x != "-0" {
			return "number " + x.String()
		}
		if _, err := strconv.ParseUint(x.String(), 10, 64); err == nil {
			return "number " + x.String()
		}
		f, _ := x.Float64() // beyond float64 it is infinite
		return "number " + strconv.FormatFloat(f, 'f', -1, 64)
	case map[string]any:
		for k := range x {
			x[k] = normal(x[k])
		}
	case []any:
		for i := range x {
			x[i] = normal(x[i])
		}
	}
	return v
}

// Check ends the test if two objects differ, and tells in what. about is logged then.
func Check(t testing.TB, got, want map[string]any, about ...any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	for k := range want {
		if v, ok := got[k]; !ok || !reflect.DeepEqual(v, want[k]) {
			t.Errorf("%q: got %#v, want %#v", k, v, want[k])
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%q: %#v is too much", k, got[k])
		}
	}
	t.Fatal(about...)
}
