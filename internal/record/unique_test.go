// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/msgpack"
)

// pairsOf encodes the pairs of JSON objects, one behind the other, and counts them.
func pairsOf(t *testing.T, objects ...string) (b []byte, n int) {
	t.Helper()
	for _, text := range objects {
		m, err := msgpack.AppendFromJSON(nil, json.NewDecoder(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		k, at, err := msgpack.ReadToken(m)
		if err != nil {
			t.Fatal(err)
		}
		b, n = append(b, m[at:]...), n+k.Len
	}
	return b, n
}

func toJSON(t *testing.T, pairs []byte, n int) string {
	t.Helper()
	text, _, err := msgpack.AppendJSON(nil, append(msgpack.AppendMapHeader(nil, n), pairs...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDropShadowed(t *testing.T) {
	for _, tt := range []struct{ before, inside, after, want string }{
		{`{"a":1}`, `{"b":2}`, `{"c":3}`, `{"a":1,"b":2,"c":3}`},
		{`{"a":1}`, `{"a":2}`, `{"c":3}`, `{"a":1,"c":3}`},
		{`{"a":1}`, `{"b":2,"c":{"d":4}}`, `{"c":3,"b":{"c":1}}`, `{"a":1,"c":3,"b":{"c":1}}`},
		{`{}`, `{"b":2,"b":3}`, `{}`, `{"b":2,"b":3}`},
		{`{}`, `{"":2}`, `{"":3,"":4}`, `{"":3,"":4}`},
		{`{"c":1,"c":2}`, `{"d":1}`, `{"d":[1,{"d":2}]}`, `{"c":1,"c":2,"d":[1,{"d":2}]}`},
	} {
		b, n1 := pairsOf(t, tt.before)
		in, n2 := pairsOf(t, tt.inside)
		after, n3 := pairsOf(t, tt.after)
		from, to := len(b), len(b)+len(in)
		b = append(append(b, in...), after...)
		out, dropped := DropShadowed(b, from, to)
		if got := toJSON(t, out, n1+n2+n3-dropped); got != tt.want {
			t.Errorf("%s %s %s: %s, want %s", tt.before, tt.inside, tt.after, got, tt.want)
		}
	}
}

func TestLastWins(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                    `{}`,
		`{"a":1,"b":2}`:                         `{"a":1,"b":2}`,
		`{"a":1,"b":2,"a":3}`:                   `{"b":2,"a":3}`,
		`{"a":{"x":1,"x":2},"a":{"y":1,"y":2}}`: `{"a":{"y":2}}`,
		`{"a":[{"x":1,"x":2},[{"y":1,"y":[]}]],"b":0,"b":1}`:                                                                  `{"a":[{"x":2},[{"y":[]}]],"b":1}`,
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1,"a":2,"b":2}`: `{"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1,"a":2,"b":2}`,
	} {
		b, n := pairsOf(t, text)
		out, dropped := LastWins(b)
		if got := toJSON(t, out, n-dropped); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// FuzzUnique: pairs that are sound stay sound, what is no pairs stays as it is, and once is enough.
func FuzzUnique(f *testing.F) {
	f.Add([]byte("\xa1a\x01\xa1b\x02\xa1a\x03"), 0, 3)
	f.Add([]byte("\xa1a\x81\xa1x\x01\x01\x02\xc0\xc0"), 3, 7)
	f.Add([]byte("\xa1a\xdf\xff\xff\xff\xff"), 0, 1)
	f.Fuzz(func(t *testing.T, b []byte, from, to int) {
		for _, drop := range []func([]byte) ([]byte, int){
			LastWins, func(b []byte) ([]byte, int) { return DropShadowed(b, from, to) },
		} {
			all, ok := appendPairs(nil, b)
			out, dropped := drop(bytes.Clone(b))
			if !ok {
				if dropped != 0 || !bytes.Equal(out, b) {
					t.Fatalf("%x, which is no pairs, became %x", b, out)
				}
				continue
			}
			left, ok := appendPairs(nil, out)
			if !ok || len(left) != len(all)-dropped || len(out) > len(b) {
				t.Fatalf("%x: %d pairs became %d in %x, %d dropped", b, len(all), len(left), out, dropped)
			}
		}
		once, _ := LastWins(bytes.Clone(b))
		twice, dropped := LastWins(bytes.Clone(once))
		if dropped != 0 || !bytes.Equal(once, twice) {
			t.Fatalf("%x: %x and then %x", b, once, twice)
		}
	})
}
