// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
)

// extForTest is what stands for an extension value in JSON.
func extForTest(dst []byte, typ int8, data []byte) []byte {
	return fmt.Appendf(dst, `"ext:%d:%x"`, typ, data)
}

type customer struct {
	Name string `json:"name"`
	City *string
}

type order struct {
	ID      int `log:"id" json:"ID"`
	Note    string
	Price   float64
	Quoted  int64  `json:",string"`
	Hidden  string `json:"-"`
	When    time.Time
	Took    time.Duration
	From    netip.Addr
	Tags    []string
	Blob    []byte
	Pair    [2]int
	Extra   map[string]any
	Counts  map[int]uint8
	Number  json.Number
	Any     any
	Pointer **int
	*customer
	Customer *customer
}

func TestDecodeRoundTrip(t *testing.T) {
	seven := 7
	p := &seven
	city := "Kraków"
	want := order{
		ID: 1, Note: "n", Price: 1.5, Quoted: math.MinInt64, When: time.Unix(1441588984, 123456789).UTC(),
		Took: time.Second, From: netip.MustParseAddr("::1"),
		Tags: []string{"a", ""}, Blob: []byte{0, 255}, Pair: [2]int{1, 2},
		Extra:  map[string]any{"x": int64(1), "y": []any{"z", nil, true, 2.5}},
		Counts: map[int]uint8{-5: 6}, Number: "12345678901234567890", Any: map[string]any{"u": uint64(math.MaxUint64)},
		Pointer:  &p,
		Customer: &customer{Name: "Ada", City: &city},
	}
	var got order
	if err := Decode(AppendValue(nil, want), &got, nil); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestDecodeEmbedded(t *testing.T) {
	type Base struct{ A, B int }
	type Deep struct{ *Base }
	type all struct {
		Deep
		B int
	}
	var got all
	if err := Decode(AppendValue(nil, map[string]any{"A": 1, "B": 2}), &got, nil); err != nil {
		t.Fatal(err)
	}
	if got.Base == nil || got.A != 1 || got.B != 2 || got.Base.B != 0 {
		t.Errorf("%+v", got)
	}
	var hidden struct{ *customer }
	if err := Decode(AppendValue(nil, map[string]any{"name": "x"}), &hidden, nil); !errors.Is(err, ErrKind) {
		t.Errorf("an embedded pointer that is not exported: %v", err)
	}
}

func TestDecodeAny(t *testing.T) {
	b := msgpack.AppendMapHeader(nil, 8)
	pair := func(key string, value []byte) { b = append(msgpack.AppendString(b, key), value...) }
	pair("nil", []byte{0xc0})
	pair("big", msgpack.AppendUint(nil, math.MaxUint64))
	pair("f32", msgpack.AppendFloat32(nil, 0.5))
	pair("bin", msgpack.AppendBin(nil, []byte{1}))
	pair("time", []byte{0xd7, 0, 0x55, 0xec, 0xe6, 0xf8, 0x07, 0x5b, 0xcd, 0x15})
	pair("ext", []byte{0xd4, 5, 9})
	b = append(msgpack.AppendInt(b, 5), 0xc3)        // a key that is no string
	pair("ext", []byte{0x92, 0xa1, 'x', 0x81, 1, 2}) // repeated: the last counts
	want := map[string]any{
		"nil": nil, "big": uint64(math.MaxUint64), "f32": 0.5, "bin": []byte{1},
		"time": time.Unix(1441588984, 123456789).UTC(),
		"5":    true, "ext": []any{"x", map[string]any{"1": int64(2)}},
	}
	var v any
	m := map[string]any{"there": 1}
	if err := Decode(b, &v, extForTest); err != nil || !reflect.DeepEqual(v, any(want)) {
		t.Errorf("%v: %#v", err, v)
	}
	want["there"] = 1
	if err := Decode(b, &m, extForTest); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%v: %#v", err, m)
	}
	if err := Decode([]byte{0xd4, 5, 9}, &v, extForTest); err != nil || v != "ext:5:09" {
		t.Errorf("%v: %#v", err, v)
	}
}

func TestDecodeErrors(t *testing.T) {
	type target struct {
		I8    int8
		U     uint
		F     float32
		S     string
		B     bool
		T     time.Time
		Inner struct{ List []struct{ X int8 } }
		E     error
		OK    string
	}
	for _, tc := range []struct {
		key   string
		value any
		is    error
		path  string
	}{
		{"I8", 300, ErrRange, `"I8"`},
		{"I8", 1.5, ErrRange, ""},
		{"I8", "1", ErrKind, ""},
		{"I8", true, ErrKind, ""},
		{"U", -1, ErrRange, ""},
		{"U", math.NaN(), ErrRange, ""},
		{"F", 1e300, ErrRange, ""},
		{"S", 1, ErrKind, ""},
		{"B", 1, ErrKind, ""},
		{"T", "yesterday", ErrKind, ""},
		{"T", 5, ErrKind, ""},
		{"E", "text", ErrKind, ""},
		{"Inner", 1, ErrKind, ""},
		{
			"Inner",
			map[string]any{"List": []any{map[string]any{"X": 1}, map[string]any{"X": 128}}},
			ErrRange,
			`"Inner.List[1].X"`,
		},
	} {
		b := msgpack.AppendMapHeader(nil, 2)
		b = AppendValue(msgpack.AppendString(b, tc.key), tc.value)
		b = msgpack.AppendString(msgpack.AppendString(b, "OK"), "still")
		var v target
		err := Decode(b, &v, nil)
		if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.path) {
			t.Errorf("%s: %v: error %v, want %v at %s", tc.key, tc.value, err, tc.is, tc.path)
		}
		if v.OK != "still" {
			t.Errorf("%s: %v: the rest was not decoded", tc.key, tc.value)
		}
	}
	for _, v := range []any{nil, 5, target{}, (*target)(nil)} {
		if err := Decode([]byte{0x80}, v, nil); !errors.Is(err, ErrTarget) {
			t.Errorf("into %T: %v", v, err)
		}
	}
	deep := append([]byte(strings.Repeat("\x91", msgpack.DefaultDepth+1)), 0xc0)
	for _, b := range [][]byte{nil, {0xc1}, {0x81}, {0x80, 0x80}, {0xdd, 0xff, 0xff, 0xff, 0xff}, deep} {
		var v any
		if err := Decode(b, &v, nil); err == nil || v != nil {
			t.Errorf("%x: %v, %v", b[:min(len(b), 8)], err, v)
		}
	}
}

// What the other end of a connection takes can be decoded, as deep as it is.
func TestDecodeDeep(t *testing.T) {
	var v any
	if err := Decode(append([]byte(strings.Repeat("\x91", msgpack.DefaultDepth)), 0xc0), &v, nil); err != nil {
		t.Error(err)
	}
}

// What fits of an element of a map is stored, and elements of which nothing does are left out.
func TestDecodePartOfElement(t *testing.T) {
	type pair struct {
		A int8
		B string
	}
	var got map[string]pair
	err := Decode(AppendValue(nil, map[string]any{"x": map[string]any{"A": 1000, "B": "s"}, "y": 1}), &got, nil)
	if want := map[string]pair{"x": {B: "s"}}; !errors.Is(err, ErrRange) && !errors.Is(err, ErrKind) ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// An interface that holds a pointer keeps it, and what it leads to is filled in.
func TestDecodeIntoHeldPointer(t *testing.T) {
	c := &customer{City: new(string)}
	var held struct {
		A any
		B fmt.Stringer
	}
	held.A, held.B = c, new(netip.Addr)
	if err := Decode(AppendValue(nil, map[string]any{"A": map[string]any{"name": "x"}, "B": "::1"}), &held,
		nil); err != nil {
		t.Fatal(err)
	}
	if held.A != any(c) || c.Name != "x" || c.City == nil || held.B.String() != "::1" {
		t.Errorf("%+v, %+v", held, c)
	}
	var top any = c
	if err := Decode(AppendValue(nil, map[string]any{"name": "y"}), &top, nil); err != nil || c.Name != "y" {
		t.Errorf("%+v, %v", c, err)
	}
	top = &top
	if err := Decode(AppendValue(nil, 1), top, nil); !errors.Is(err, ErrKind) {
		t.Errorf("a pointer to itself: %v", err)
	}
}

type octet uint8

type sliceKey struct{ x any }

func (k *sliceKey) UnmarshalText(b []byte) error {
	k.x = b
	return nil
}

func TestDecodeOddTypes(t *testing.T) {
	var octets [2]octet
	if err := Decode(msgpack.AppendBin(nil, []byte{1, 2}), &octets, nil); err != nil || octets != [2]octet{1, 2} {
		t.Errorf("%v, %v", octets, err)
	}
	var keys map[sliceKey]int
	if err := Decode(AppendValue(nil, map[string]int{"a": 1}), &keys, nil); !errors.Is(err, ErrKind) || len(keys) != 0 {
		t.Errorf("a key that cannot be one: %v, %v", keys, err)
	}
	for _, f := range []float64{math.NaN(), math.Inf(-1)} {
		var n json.Number
		if err := Decode(AppendValue(nil, f), &n, nil); !errors.Is(err, ErrRange) || n != "" {
			t.Errorf("%v is a json.Number: %q, %v", f, n, err)
		}
	}
	want := struct{ When struct{ time.Time } }{struct{ time.Time }{time.Unix(5, 6).UTC()}}
	got := want
	got.When.Time = time.Time{}
	if err := Decode(AppendValue(nil, want), &got, nil); err != nil || got != want {
		t.Errorf("an unnamed struct that embeds a time: %v, %v", got, err)
	}
}

type panics struct{ N int }

func (p *panics) UnmarshalJSON([]byte) error { panic("no") }

type selfish *selfish

func TestDecodeHostileTypes(t *testing.T) {
	var p struct{ P panics }
	if err := Decode(AppendValue(nil, map[string]any{"P": 1}), &p, nil); err == nil ||
		!strings.Contains(err.Error(), "panic") {
		t.Error(err)
	}
	var s selfish
	if err := Decode([]byte{1}, &s, nil); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	if err := Decode([]byte{0x81, 1, 2}, new(map[[2]int]int), nil); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
}

// A million elements are claimed and not there, or are there and are nil: neither makes room for
// more than there is.
func TestDecodeBounded(t *testing.T) {
	type wide struct{ A [1 << 10]int64 }
	var v []wide
	if err := Decode([]byte{0xdd, 0, 0x0f, 0, 0, 0xc0}, &v, nil); err == nil || v != nil {
		t.Errorf("%v, %d", err, len(v))
	}
}

func TestDecodeAllocations(t *testing.T) {
	if raceEnabled {
		needs.Skip(t, "the race detector allocates")
	}
	type flat struct {
		A int
		B float64
		C bool
		D time.Time
		E uint32
	}
	b := AppendValue(nil, flat{1, 2, true, time.Unix(1, 5).UTC(), 4})
	v := new(flat)
	if err := Decode(b, v, nil); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = Decode(b, v, nil) }); n > 2 { // the path, and the text of the time
		t.Errorf("%v allocations", n)
	}
}

// something is normal without keys whose value is null or empty: a pointer to nil and a nil pointer
// are the same afterwards, an embedded pointer to nothing leaves no trace, and what is zero
// afterwards may be left out. Without zeros it leaves out keys whose value is zero too: those of a
// struct are only written if omitzero finds one of its fields not to be zero, and that may be one
// that has no key.
func something(tb testing.TB, text string, zeros bool) string {
	var v any
	dec := json.NewDecoder(strings.NewReader(normal(tb, text)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		tb.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch x := v.(type) {
		case []any:
			for i := range x {
				walk(x[i])
			}
		case map[string]any:
			for k, e := range x {
				walk(e)
				if nothing(e, zeros) {
					delete(x, k)
				}
			}
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(out)
}

// nothing tells whether a value that came from JSON is null or empty; or zero, as text too, or a
// list of such, unless zeros count.
func nothing(v any, zeros bool) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return !zeros && !slices.ContainsFunc(v, func(e any) bool { return !nothing(e, false) })
	}
	return !zeros && slices.Contains([]any{json.Number("0"), false, "", "0", "false", `""`, "0001-01-01T00:00:00Z"}, v)
}

// What the encoder writes of any type, the decoder brings back into it: written again it is the
// same.
func FuzzDecodeMadeUp(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, seed uint64, depth uint8) {
		v := newMaker(seed).value(int(depth % 5))
		if strings.Contains(v.Type().String(), "lazyText") {
			return // what is in it only its method writes, and that only of a variable
		}
		b := AppendValue(nil, v.Interface())
		back := reflect.New(v.Type())
		if err := Decode(b, back.Interface(), nil); err != nil {
			if !errors.Is(err, ErrKind) {
				t.Fatalf("%v: %v", v.Type(), err)
			}
			return // some types have a method to be written by and none to be read by
		}
		zeros := !strings.Contains(v.Type().String(), ",omitzero")
		want, got := something(t, asJSON(t, b), zeros), something(t,
			asJSON(t, AppendValue(nil, back.Elem().Interface())), zeros)
		if got != want {
			t.Fatalf("%v:\n got %s\nwant %s", v.Type(), got, want)
		}
	})
}

// Whatever the bytes, into whatever type: no panic, and an error for what is no value.
func FuzzDecode(f *testing.F) {
	f.Add(uint64(1), []byte{0x81, 0xa1, 'A', 1})
	f.Add(uint64(2), AppendValue(nil, map[string]any{"A": []any{1, "x", nil}, "B": map[string]any{"C": 1.5}}))
	f.Add(uint64(3), []byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, seed uint64, b []byte) {
		var v any
		err := Decode(b, &v, extForTest)
		n, skip := msgpack.Skip(b)
		if sound := skip == nil && n == len(b); sound != (err == nil) {
			t.Fatalf("%x: error %v, but sound is %t", b, err, sound)
		}
		if err == nil {
			var m map[string]any
			_ = Decode(b, &m, extForTest)
		}
		_ = Decode(b, new(order), extForTest)
		_ = Decode(b, reflect.New(newMaker(seed).typ(3)).Interface(), extForTest)
	})
}

func BenchmarkDecode(b *testing.B) {
	type access struct {
		Method string `json:"method"`
		Path   string `json:"path"`
		Status int    `json:"status"`
		Bytes  int64  `json:"bytes"`
		Took   float64
	}
	data := AppendValue(nil, access{"GET", "/index.html", 200, 5316, 0.25})
	b.Run("struct", func(b *testing.B) {
		b.ReportAllocs()
		var v access
		for b.Loop() {
			if err := Decode(data, &v, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("map", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v map[string]any
			if err := Decode(data, &v, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
