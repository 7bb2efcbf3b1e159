// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// asJSON decodes what this package wrote, which must be exactly one valid value.
func asJSON(tb testing.TB, b []byte) string {
	tb.Helper()
	if n, err := msgpack.Skip(b); err != nil || n != len(b) {
		tb.Fatalf("not one MessagePack value: %d of %d bytes, %v: %x", n, len(b), err, b[:min(len(b), 200)])
	}
	out, _, err := msgpack.AppendJSON(nil, b, nil)
	if err != nil {
		tb.Fatalf("%v: %x", err, b[:min(len(b), 200)])
	}
	return string(out)
}

// valueJSON writes v behind other bytes, into a buffer of the size that is most awkward.
func valueJSON(tb testing.TB, v any) string {
	tb.Helper()
	b := AppendValue(nil, v)
	for _, room := range []int{0, 1, 20} {
		again := AppendValue(append(make([]byte, 0, 6+room), "before"...), v)
		if !bytes.HasPrefix(again, []byte("before")) || len(again)-6 != len(b) {
			tb.Fatalf("into %d bytes of room: %d bytes instead of %d", room, len(again)-6, len(b))
		}
	}
	return asJSON(tb, b)
}

// normal makes JSON texts comparable: keys sorted, numbers in one form.
func normal(tb testing.TB, text string) string {
	tb.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch x := v.(type) {
		case json.Number:
			if _, err := strconv.ParseInt(string(x), 10, 64); err == nil && x != "-0" {
				return x
			}
			f, err := x.Float64()
			if err != nil {
				return x
			}
			return f
		case []any:
			for i := range x {
				x[i] = walk(x[i])
			}
		case map[string]any:
			for k := range x {
				x[k] = walk(x[k])
			}
		}
		return v
	}
	out, err := json.Marshal(walk(v))
	if err != nil {
		tb.Fatal(err)
	}
	return string(out)
}

func sameAsJSON(tb testing.TB, name string, v any) {
	tb.Helper()
	want, err := json.Marshal(v)
	if err != nil {
		tb.Fatalf("%s: encoding/json: %v", name, err)
	}
	if got := valueJSON(tb, v); normal(tb, got) != normal(tb, string(want)) {
		tb.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
}

type (
	anInt     int32
	aString   string
	aBool     bool
	aFloat    float32
	aDuration time.Duration
	aTime     time.Time
	fields    map[string]any // like those of other loggers
	aKey      string
)

type celsius float64

func (c celsius) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(c), 'f', 1, 64), nil
}

type point struct{ X, Y int }

func (p point) MarshalJSON() ([]byte, error) { return json.Marshal([]int{p.X, p.Y}) }

type lazyPoint struct{ X, Y int }

func (p *lazyPoint) MarshalJSON() ([]byte, error) { return json.Marshal([]int{p.X, p.Y}) }

type lazyText struct{ s string }

func (l *lazyText) MarshalText() ([]byte, error) { return []byte(l.s), nil }

type single struct{ P *int }

type singleMap struct{ M map[string]int }

type node struct {
	Name string
	Next *node
	Kids []node
	More map[string]*node
	Any  any
}

type options struct {
	A int               `json:"a,omitempty"`
	B string            `json:"b,omitempty"`
	C []int             `json:"c,omitempty"`
	D map[string]int    `json:"d,omitempty"`
	E *int              `json:"e,omitempty"`
	F any               `json:"f,omitempty"`
	G bool              `json:",omitempty"`
	H float64           `json:"h,omitempty"`
	I [0]int            `json:"i,omitempty"`
	J [2]int            `json:"j,omitempty"`
	K struct{}          `json:"k,omitempty"`
	L time.Time         `json:"l,omitzero"`
	M *time.Time        `json:"m,omitzero"`
	N zeroByPointer     `json:"n,omitzero"`
	O zeroByValue       `json:"o,omitzero"`
	P interface{ M() }  `json:"p,omitempty"`
	Q [2]string         `json:"q,omitzero"`
	R uint8             `json:"r,omitempty"`
	S int16             `json:"s,omitempty,omitzero"`
	T interfaceOfZeroer `json:"t,omitzero"`
	U float32           `json:"-,"` //nolint:staticcheck // what encoding/json makes of it is the question
	V int               `json:"-"`
	W int64             `json:"w,string"`
	X string            `json:"x,string"`
	Y *bool             `json:"y,string"`
	Z float64           `json:"z,string,omitempty"`
	a int
}

type interfaceOfZeroer interface{ IsZero() bool }

type zeroByPointer struct{ V int }

func (z *zeroByPointer) IsZero() bool { return z.V == 7 }

type zeroByValue struct{ V int }

func (z zeroByValue) IsZero() bool { return z.V == 8 }

func ptr[T any](v T) *T { return &v }

// Where encoding/json and this package are to say the same.
func TestSameAsJSON(t *testing.T) {
	at := time.Date(2026, 11, 21, 2, 3, 4, 120_000_000, time.FixedZone("", -(3*3600+1800)))
	var nilMap map[string]any
	var nilSlice []string
	var nilPointer *node
	for name, v := range map[string]any{
		"nil": nil, "true": true, "int": 42, "negative": -42, "int8": int8(-128), "int16": int16(-3000),
		"int32": int32(1 << 30), "int64": int64(-1 << 63),
		"uint": uint(1), "uint8": uint8(255), "uint16": uint16(65535), "uint32": uint32(1 << 31),
		"uint64": uint64(1<<64 - 1), "uintptr": uintptr(5),
		"float32": float32(1.5), "float64": 1e300, "string": "héllo \"x\" \n", "long": strings.Repeat("x", 70000),
		"empty":     "",
		"named int": anInt(-7), "named string": aString("s"), "named bool": aBool(true), "named float": aFloat(0.25),
		"named duration": aDuration(5),
		"duration":       3 * time.Second, "time": at, "time utc": at.UTC(), "pointer to time": &at,
		"named time": aTime(at),
		"number":     json.Number("12"), "number float": json.Number("-1.5e3"), "number empty": json.Number(""),
		"raw": json.RawMessage(`{"a":[1,2,{"b":null}],"c":"d"}`), "raw nil": json.RawMessage(nil),
		"raw pointer": ptr(json.RawMessage(`[1]`)),
		"map": map[string]any{
			"a": 1, "b": "two", "c": nil, "d": []any{1, "x", nil, 2.5},
			"e": map[string]any{"f": map[string]any{}},
		},
		"nil map": nilMap, "nil slice": nilSlice, "nil pointer": nilPointer,
		"nil in any": map[string]any{"x": nilPointer, "y": nilMap, "z": nilSlice},
		"named map":  fields{"a": 1, "b": fields{"c": "d"}}, "strings": map[string]string{"a": "b"},
		"map of ints":  map[string]int{"a": 1, "b": -2},
		"map of bools": map[string]bool{"a": true}, "map of int64": map[string]int64{"a": 1 << 40},
		"map of floats":  map[string]float64{"a": 0.5},
		"map of structs": map[string]struct{ A int }{"a": {1}}, "named keys": map[aKey]int{"k": 1},
		"int keys":  map[int]string{-1: "a", 2: "b"},
		"uint keys": map[uint8]string{200: "x"}, "text keys": map[celsius]int{1.25: 1},
		"addr keys":     map[netip.Addr]bool{netip.MustParseAddr("::1"): true},
		"map of slices": map[string][]int{"a": {1, 2}, "b": nil, "c": {}},
		"map of maps":   map[string]map[int]any{"a": {1: "x"}},
		"large map": func() any {
			m := map[int]int{}
			for i := range 100 {
				m[i] = i
			}
			return m
		}(),
		"slice": []int{1, 2, 3}, "any slice": []any{}, "string slice": []string{"a", ""},
		"pointers": []*int{ptr(1), nil}, "array": [3]uint8{1, 2, 3},
		"long slice": make([]int, 70000), "slices": [][]string{{"a"}, nil}, "array of one pointer": [1]*int{ptr(4)},
		"empty array": [0]int{},
		"pointer":     ptr(ptr(ptr(5))), "pointer to nil": ptr((*int)(nil)),
		"pointer to any": ptr(any(map[string]any{"a": 1})),
		"struct":         struct{ A, B int }{1, 2}, "empty struct": struct{}{}, "struct of one pointer": single{ptr(3)},
		"struct of nil pointer": single{},
		"struct of one map":     singleMap{map[string]int{"a": 1}},
		"node":                  node{Name: "a", Next: &node{Name: "b"}, Kids: []node{{Name: "c"}}, Any: node{}},
		"node pointer":          &node{Name: "a", More: map[string]*node{"x": {Name: "y"}}},
		"unexported": struct {
			A int
			b int
		}{1, 2},
		"options zero": options{}, "options zero pointer": &options{},
		"options": options{
			A: 1, B: "b", C: []int{0}, D: map[string]int{"": 0}, E: ptr(0), F: 0, G: true, H: 0.5, L: at,
			M: ptr(time.Time{}), R: 1, S: 3,
			W: -5, X: "say \"é\"", Y: ptr(true), Z: 1.5, T: ptr(zeroByPointer{1}), Q: [2]string{"", "x"}, U: 2, V: 3,
			a: 4,
		},
		"options with methods": &options{N: zeroByPointer{7}, O: zeroByValue{8}, T: ptr(zeroByPointer{7})},
		"options of a value": options{
			N: zeroByPointer{7}, O: zeroByValue{8}, T: (*zeroByPointer)(nil),
			D: map[string]int{}, C: []int{},
		},
		"marshaler": point{1, 2}, "marshaler pointer": &point{1, 2}, "marshaler nil": (*point)(nil),
		"lazy marshaler": lazyPoint{1, 2}, "lazy marshaler pointer": &lazyPoint{1, 2},
		"lazy inside value":   struct{ P lazyPoint }{lazyPoint{1, 2}},
		"lazy inside pointer": &struct{ P lazyPoint }{lazyPoint{1, 2}},
		"lazy in slice":       []lazyPoint{{1, 2}}, "lazy in array": [1]lazyPoint{{1, 2}},
		"lazy in map": map[string]lazyPoint{"a": {1, 2}},
		"lazy text":   struct{ T lazyText }{lazyText{"x"}}, "lazy text pointer": &struct{ T lazyText }{lazyText{"x"}},
		"text": celsius(36.6),
		"text in struct": struct {
			C celsius
			P *celsius
			N *celsius
		}{1, ptr(celsius(2)), nil},
		"ip": net.IPv4(1, 2, 3, 4), "ip in struct": struct{ IP net.IP }{net.IPv6loopback}, "big": big.NewInt(12345),
		"addr": netip.MustParseAddr("10.0.0.1"),
		"interfaces": struct {
			A any
			B interface{ MarshalJSON() ([]byte, error) }
			C interface{ MarshalJSON() ([]byte, error) }
		}{5, &point{3, 4}, nil},
		"quoted number": struct {
			N json.Number `json:",string"`
			I anInt       `json:",string"`
			U *uint8      `json:",string"`
			P *int        `json:",string"`
			Q **int       `json:",string"` //nolint:staticcheck // as above
			S []int       `json:",string"` //nolint:staticcheck // as above
		}{"12", -3, ptr(uint8(200)), nil, ptr(ptr(3)), []int{1}},
		"quoted long": struct {
			S string `json:",string"`
		}{strings.Repeat("é\n\x00", 30)},
		"quoted longer": struct {
			S string `json:",string"`
		}{strings.Repeat("é\n\x00", 30000)},
	} {
		sameAsJSON(t, name, v)
	}
}

// Structs keep the order of their fields, as with encoding/json.
func TestOrder(t *testing.T) {
	v := &anAccess
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(text.String())
	b, err := AppendMap(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, b); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if hand := v.appendByHand(nil); !bytes.Equal(hand, b) {
		t.Errorf("\n got %x\nwant %x", b, hand)
	}
	m, err := AppendMap(nil, v.asMap())
	if err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, m); normal(t, got) != normal(t, want) {
		t.Errorf("map:\n got %s\nwant %s", got, want)
	}
}

// Values of types that are made up: all that encoding/json does with names and depths, and all
// kinds of values, must agree.
func TestMadeUp(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for seed := range uint64(rounds) {
		v := newMaker(seed).value(3)
		sameAsJSON(t, fmt.Sprintf("seed %d: %v", seed, v.Type()), v.Interface())
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		sameAsJSON(t, fmt.Sprintf("seed %d: pointer to %v", seed, v.Type()), p.Interface())
		if t.Failed() {
			return
		}
	}
}
