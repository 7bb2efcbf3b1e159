// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/spillwaylog/spillway/internal/needs"
)

type panicking struct{ by string }

func (p panicking) Error() string { panic(p.by) }

type panickingText struct{}

func (*panickingText) MarshalText() ([]byte, error) { panic(errors.New("no text")) }

type panickingJSON int

func (panickingJSON) MarshalJSON() ([]byte, error) { return nil, assign(nil) }

func assign(m map[string]int) error {
	m["x"] = 1
	return nil
}

type panickingString struct{ A int }

func (panickingString) String() string { panic(panicking{"error inside error"}) }

type panickingValue struct{}

func (panickingValue) LogValue() slog.Value { panic("no value") }

type panickingZero struct{ A int }

func (panickingZero) IsZero() bool { panic("neither") }

type panickingKey string

type textKey struct{ s string }

func (k textKey) MarshalText() ([]byte, error) {
	if k.s == "" {
		panic("empty key")
	}
	return []byte(k.s), errors.New("bad key")
}

type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return []byte(`{"half":`), errors.New("it failed") }

type jsonText string

func (j jsonText) MarshalJSON() ([]byte, error) { return []byte(j), nil }

type color int

func (c color) String() string { return fmt.Sprintf("color %d", int(c)) }

type stringerPointer struct{ a int }

func (s *stringerPointer) String() string { return fmt.Sprint("at ", s.a) }

type took struct {
	time.Duration
	Name string
}

type wrapped struct {
	error
	Code int
}

type secret string

func (secret) LogValue() slog.Value { return slog.StringValue("***") }

type user struct {
	Name string
	Boss *user
}

func (u *user) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", u.Name), slog.Any("boss", u.Boss))
}

// doubling is never the same, and never ends.
type doubling int

func (d doubling) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("a", d+1), slog.Any("b", d+1), slog.String("c", strings.Repeat("x", 100)))
}

// silent is the same without a byte of its own.
type silent int

func (s silent) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("", s+1), slog.Any("", s+1))
}

type itself struct{}

func (i itself) LogValue() slog.Value { return slog.AnyValue(i) }

type mapValue map[string]int

func (m mapValue) LogValue() slog.Value { return slog.IntValue(len(m)) }

// A changing map loses and gains keys while it is written.
type changing struct{ m map[string]any }

func (c changing) String() string {
	clear(c.m)
	for i := range 40 {
		c.m[fmt.Sprint("new", i)] = i
	}
	return "changed"
}

func TestMethods(t *testing.T) {
	var nilError *panicking
	var nilUser *user
	u, err := url.Parse("https://example.org/?a=b")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		v    any
		want string
	}{
		{"error", errors.New("wrong"), `"wrong"`},
		{"joined", errors.Join(errors.New("a"), errors.New("b")), `"a\nb"`},
		{"error in struct", struct{ Err error }{fmt.Errorf("x: %w", errors.New("y"))}, `{"Err":"x: y"}`},
		{"nil error in struct", struct{ Err error }{}, `{"Err":null}`},
		{"typed nil error", struct{ Err error }{nilError}, `{"Err":null}`},
		{"nil error", nilError, `null`},
		{"wrapped", wrapped{errors.New("in"), 5}, `"in"`},
		{"wrapped nil", wrapped{}, `"!PANIC: runtime error: invalid memory address or nil pointer dereference"`},
		{"stringer", color(3), `"color 3"`},
		{"stringers", map[string]any{"a": []color{1}}, `{"a":["color 1"]}`},
		{"stringers by key", map[string]color{"a": 1}, `{"a":"color 1"}`},
		{"stringer quoted", struct {
			C color `json:",string"`
		}{1}, `{"C":"color 1"}`},
		{"stringer pointer", &stringerPointer{1}, `"at 1"`},
		{"stringer not a variable", stringerPointer{1}, `{}`},
		{"stringer nil", (*stringerPointer)(nil), `null`},
		{"promoted stringer", took{time.Second, "x"}, `{"Duration":1000000000,"Name":"x"}`},
		{"url", u, `"https://example.org/?a=b"`},
		{"month", time.March, `"March"`},
		{"level", slog.LevelWarn, `"WARN"`},
		{"panic", panicking{"oops"}, `"!PANIC: oops"`},
		{"panic pointer", &panicking{"oops"}, `"!PANIC: oops"`},
		{"panic text", &panickingText{}, `"!PANIC: no text"`},
		{"panic json", panickingJSON(1), `"!PANIC: assignment to entry in nil map"`},
		{"panic value", panickingValue{}, `"!PANIC: no value"`},
		{"panic value in attr", slog.Any("k", panickingValue{}), `{"k":"!PANIC: no value"}`},
		{"panic in the middle", struct {
			A int
			B any
			C int
		}{1, []any{1, panicking{"x"}, 2}, 3}, `{"A":1,"B":[1,"!PANIC: x",2],"C":3}`},
		{"panic zero", struct {
			A panickingZero `log:",omitzero"`
		}{}, `{"A":{"A":0}}`},
		{"panic key", map[textKey]int{{""}: 1}, `{"!PANIC: empty key":1}`},
		{"failing key", map[textKey]int{{"x"}: 1}, `{"!ERROR: bad key":1}`},
		{"failing", failing{}, `"!ERROR: it failed"`},
		{"json cut off", jsonText(`{"a":[1,`), `"!ERROR: msgpack: value is cut off at byte 8"`},
		{"json none", jsonText(` `), `"!ERROR: msgpack: value is cut off at byte 1"`},
		{"json two", jsonText(`1 2`), `"!ERROR: more than one JSON value"`},
		{"json deep", jsonText(strings.Repeat("[", 101) + strings.Repeat("]", 101)), `"!DEPTH"`},
		{"json deeper", jsonText(strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), `"!DEPTH"`},
		{
			"json deep enough", jsonText(strings.Repeat("[", 100) + strings.Repeat("]", 100)),
			strings.Repeat("[", 100) + strings.Repeat("]", 100),
		},
		{"secret", struct{ S, T secret }{"a", "b"}, `{"S":"***","T":"***"}`},
		{"secrets", map[string]secret{"a": "b"}, `{"a":"***"}`},
		{"user", &user{"a", &user{"b", nil}}, `{"name":"a","boss":{"name":"b","boss":null}}`},
		{"user by value", user{"a", &user{"b", nil}}, `{"Name":"a","Boss":{"name":"b","boss":null}}`},
		{"nil user", nilUser, `null`},
		{"itself", itself{}, `"!DEPTH"`},
		{"map value", mapValue{"a": 1}, `1`},
		{"nil map value", mapValue(nil), `0`},
		{"map value in struct", struct{ M mapValue }{mapValue{"a": 1}}, `{"M":1}`},
		{"slog value", slog.GroupValue(slog.Int("a", 1)), `{"a":1}`},
		{"slog values", []slog.Value{
			slog.IntValue(1), slog.BoolValue(true), slog.DurationValue(5), slog.Uint64Value(6),
			slog.Float64Value(0.5),
			{},
		}, `[1,true,5,6,0.5,null]`},
		{"attrs", []slog.Attr{slog.Int("a", 1), {}, slog.Group("g")}, `{"a":1}`},
		{"attr", slog.Int("a", 1), `{"a":1}`},
		{"attr in struct", struct{ A slog.Attr }{slog.Int("a", 1)}, `{"A":{"a":1}}`},
		{"bytes", []byte("abc"), `"abc"`},
		{"named bytes", struct{ B []aByte }{[]aByte("abc")}, `{"B":"abc"}`},
		{"nil bytes", []byte(nil), `null`},
		{"nan", math.NaN(), `null`},
		{"chan", make(chan int), `"!TYPE: chan int"`},
		{"nil chan", struct{ C chan int }{}, `{"C":null}`},
		{"func", struct{ F func() }{func() {}}, `{"F":"!TYPE: func()"}`},
		{"complex", 1i, `"!TYPE: complex128"`},
		{"unsafe", unsafe.Pointer(nil), `null`},
		{"any keys", map[any]any{1: 2}, `{"1":2}`},
		{
			"more keys",
			[]any{
				map[any]int{nil: 1},
				map[any]int{color(3): 1},
				map[any]int{textKey{"x"}: 1},
				map[bool]int{true: 1},
				map[float64]int{1.5: 1},
				map[[2]int]int{{1, 2}: 3},
				map[any]int{uint8(3): 1},
				map[any]int{aKey("k"): 1},
				map[panickingKey]int{"p": 1},
			},
			`[{"null":1},{"3":1},{"!ERROR: bad key":1},{"true":1},{"1.5":1},{"[1 2]":3},{"3":1},{"k":1},{"p":1}]`,
		},
		{"year 10000", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), `"10000-01-01T00:00:00Z"`},
		{
			"no number",
			[]any{1.5, json.Number("abc"), json.Number("1 "), json.Number("true"), json.Number("1e999")},
			`[1.5,"abc","1 ","true","1e999"]`,
		},
		{"log tags", struct {
			A int `json:"j" log:"l"`
			B int `json:"-" log:"b"`
			C int `json:"c" log:"-"`
			D int `json:"d" log:",omitempty"`
			E int `json:"e" log:",omitempty,string"`
		}{1, 2, 3, 0, 5}, `{"l":1,"b":2,"E":"5"}`},
		{"invalid utf-8", "a\xffb", "\"a\ufffdb\""},
	} {
		if got := valueJSON(t, tt.v); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestChanging(t *testing.T) {
	for range 50 {
		c := changing{map[string]any{}}
		for i := range 10 {
			c.m[fmt.Sprint("k", i)] = c
		}
		valueJSONOnce(t, c.m)
		for i := range 10 {
			c.m[fmt.Sprint("k", i)] = c
		}
		valueJSONOnce(t, fields(c.m))
		m := map[int]any{}
		for i := range 10 {
			m[i] = changingInts(m)
		}
		valueJSONOnce(t, m)
	}
}

type changingInts map[int]any

func (c changingInts) String() string {
	clear(c)
	for i := range 40 {
		c[i+100] = i
	}
	return "changed"
}

func valueJSONOnce(t *testing.T, v any) {
	t.Helper()
	asJSON(t, AppendValue(nil, v))
}

func TestCycles(t *testing.T) {
	ring := &node{Name: "a"}
	ring.Next = &node{Name: "b", Next: ring}
	m := map[string]any{"n": 1}
	m["m"] = m
	s := []any{1, nil}
	s[1] = s
	type list []list
	l := list{nil}
	l[0] = l
	type self *self
	var p self
	p = &p
	var x any
	x = &x
	km := map[int]any{}
	km[1] = km
	u := &user{Name: "u"}
	u.Boss = u
	attrs := make([]slog.Attr, 2)
	attrs[0] = slog.Attr{Key: "g", Value: slog.GroupValue(attrs...)}
	attrs[1] = slog.Int("i", 1)
	for _, tt := range []struct {
		name string
		v    any
		want string
	}{
		{"ring", ring, `{"Name":"a","Next":{"Name":"b","Next":"!CYCLE","Kids":null,"More":null,"Any":null},"Kids":null,"More":null,"Any":null}`},
		{"map", m, `"!CYCLE"`},
		{"slice", s, `[1,"!CYCLE"]`},
		{"list", l, `["!CYCLE"]`},
		{"pointer", p, `"!CYCLE"`},
		{"interface", x, `"!CYCLE"`},
		{"reflected map", km, `{"1":"!CYCLE"}`},
		{"user", u, `{"name":"u","boss":"!CYCLE"}`},
		{"user by value", *u, `{"Name":"u","Boss":{"name":"u","boss":"!CYCLE"}}`},
	} {
		if tt.name == "map" {
			tt.want = "" // the order of its two keys is random
		}
		got := valueJSON(t, tt.v)
		if tt.want != "" && got != tt.want || !strings.Contains(got, cycle) {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	if got := valueJSON(t, attrs); len(got) > 2000 || !strings.Contains(got, cycle) {
		t.Errorf("attributes: %d bytes", len(got))
	}
	if b, err := AppendMap(nil, ring); err != nil || !strings.Contains(asJSON(t, b), cycle) {
		t.Errorf("record: %v, %s", err, b)
	}
}

// What is shared is no cycle.
func TestShared(t *testing.T) {
	n := &node{Name: "n"}
	m := map[string]any{"a": n, "b": n}
	sameAsJSON(t, "nodes", []any{n, n, m, m, map[string]any{"x": m, "y": m}})
}

func TestDeep(t *testing.T) {
	var v any = 1
	for range 10 * Depth {
		v = []any{v}
	}
	want := strings.Repeat("[", Depth) + `"!DEPTH"` + strings.Repeat("]", Depth)
	if got := valueJSON(t, v); got != want {
		t.Errorf("slices: %s", got)
	}
	for name, wrap := range map[string]func(v any) any{
		"map":     func(v any) any { return map[string]any{"m": v} },
		"int map": func(v any) any { return map[int]any{1: v} },
		"struct":  func(v any) any { return struct{ A any }{v} },
		"array":   func(v any) any { return [1]any{v} },
		"pointer": func(v any) any { return &v },
		"node":    func(v any) any { return &node{Any: v} },
		"group":   func(v any) any { return slog.GroupValue(slog.Any("g", v)) },
		"unkeyed": func(v any) any { return slog.GroupValue(slog.Any("", v)) },
		"attrs":   func(v any) any { return []slog.Attr{slog.Any("g", v)} },
		"[]string": func(v any) any {
			return []any{
				v,
				[]string{"x"},
				map[string]string{"a": "b"},
				map[string]int{"a": 1},
			}
		},
	} {
		v := any(1)
		for range 10 * Depth {
			v = wrap(v)
		}
		if got := valueJSON(t, v); !strings.Contains(got, deep) {
			t.Errorf("%s: %s", name, got)
		}
	}
	var list *node
	for range 10 * Depth {
		list = &node{Next: list}
	}
	if got := valueJSON(t, list); strings.Count(got, "Next") != Depth {
		t.Errorf("list: %d deep", strings.Count(got, "Next"))
	}
}

// Values that grow exponentially with their depth end all the same.
func TestEndless(t *testing.T) {
	needs.Time(t, "writes up to 64 MiB")
	if raceEnabled {
		needs.Skip(t, "writes up to 64 MiB, which the race detector makes many times as slow")
	}
	b := AppendValue(nil, doubling(0))
	if len(b) < 1<<20 || len(b) > maxSize+1<<20 {
		t.Errorf("%d bytes", len(b))
	}
	asJSON(t, b)
	b, _ = AppendAttr(nil, slog.Any("x", silent(0)))
	if len(b) > maxSize {
		t.Errorf("silent: %d bytes", len(b))
	}
	var dag any = "leaf"
	for range Depth - 1 {
		dag = []any{dag, dag}
	}
	if b = AppendValue(nil, dag); len(b) > maxSize+1<<20 {
		t.Errorf("shared: %d bytes", len(b))
	}
}

// The plan of a type needs no value of it.
func TestHugeType(t *testing.T) {
	type huge struct {
		P *[1 << 30]byte
		N int
	}
	if got := valueJSON(t, huge{N: 1}); got != `{"P":null,"N":1}` {
		t.Error(got)
	}
}

func TestNotRecord(t *testing.T) {
	var nilNode *node
	for _, v := range []any{
		nil, 1, "x", nilNode, errors.New("x"), time.Now(),
		[]int{1},
		[1]int{1},
		make(chan int), ptr("x"), ptr(any(nil)), slog.IntValue(1),
		secret("x"), (*user)(nil),
		itself{},
		true, []byte("x"), ptr(ptr((*node)(nil))),
	} {
		b, err := AppendMap([]byte("before"), v)
		if !errors.Is(err, ErrNotRecord) || string(b) != "before" {
			t.Errorf("%T: %v, %q", v, err, b)
		}
	}
	for _, tt := range []struct {
		v    any
		want string
	}{
		{map[string]any(nil), `{}`},
		{fields(nil), `{}`},
		{map[string]string{"a": "b"}, `{"a":"b"}`},
		{map[int]int(nil), `{}`},
		{struct{}{}, `{}`},
		{ptr(ptr(struct{ A int }{1})), `{"A":1}`},
		{ptr(any(&node{})), `{"Name":"","Next":null,"Kids":null,"More":null,"Any":null}`},
		{took{1, "x"}, `{"Duration":1,"Name":"x"}`},
		{panickingString{1}, `{"A":1}`},
		{panicking{}, ``},
		{wrapped{nil, 5}, `{"Code":5}`},
		{stamped{time.Unix(0, 0).UTC(), "x"}, `{"Time":"1970-01-01T00:00:00Z","Name":"x"}`},
		{jsonText(`{"a":1}`), `{"a":1}`},
		{jsonStruct{1}, `{"a":1}`},
		{&user{"a", nil}, `{"name":"a","boss":null}`},
		{slog.GroupValue(slog.Int("a", 1)), `{"a":1}`},
		{[]slog.Attr{slog.Int("a", 1)}, `{"a":1}`},
		{slog.Int("a", 1), `{"a":1}`},
		{mapValue{"a": 1}, ``},
		{map[any]any{1: 2}, `{"1":2}`},
	} {
		b, err := AppendMap(nil, tt.v)
		if tt.want == "" {
			if !errors.Is(err, ErrNotRecord) {
				t.Errorf("%T: %v", tt.v, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%T: %v", tt.v, err)
		} else if got := asJSON(t, b); got != tt.want {
			t.Errorf("%T: %s, want %s", tt.v, got, tt.want)
		}
	}
}

type stamped struct {
	time.Time
	Name string
}

type jsonStruct struct{ A int }

func (jsonStruct) MarshalJSON() ([]byte, error) { return []byte(`{"a":1}`), nil }

type aByte byte

// growing makes the stack move under the encoder that calls it.
type growing map[string]int

func (g growing) String() string { return fmt.Sprint(len(g), stack(200)) }

//go:noinline
func stack(n int) byte {
	var room [1000]byte
	room[n] = 1
	if n == 0 {
		return 0
	}
	return stack(n-1) + room[n] - 1
}

// Values that are kept inside an interface are found after the stack has moved.
func TestStackMoves(t *testing.T) {
	g := growing{"a": 1, "b": 2}
	for _, v := range []any{
		g,
		[]any{g, g},
		struct{ A, B any }{g, g},
		map[string]any{"a": g},
		[1]growing{g},
		struct{ G growing }{g},
		map[growingKey]any{"k": g},
	} {
		done := make(chan string)
		go func() { done <- valueJSON(t, v) }()
		if got := <-done; !strings.Contains(got, `"2 0"`) {
			t.Errorf("%T: %s", v, got)
		}
	}
}

type growingKey string

// isInside must agree with reflect about what is kept in an interface.
func TestInside(t *testing.T) {
	for _, v := range []any{
		1, 1.5, uintptr(1), ptr(1),
		map[string]int{},
		make(chan int), func() {},
		single{},
		singleMap{},
		[1]*int{},
		struct{ A [1]single }{},
		"",
		node{},
		struct {
			A struct{}
			B *int
		}{},
		struct{ A uintptr }{},
		[1]int{1},
		unsafe.Pointer(nil),
		struct{ A, B int32 }{},
	} {
		pl := planOf(&v)
		if p := reflect.New(pl.rtype).Interface(); pl.typ != (*word)(unsafe.Pointer(&v)).typ ||
			pl.pointer != (*word)(unsafe.Pointer(&p)).typ {
			t.Errorf("%T: another type word", v)
		}
		x := reflect.New(reflect.TypeOf(v)).Elem()
		x.Set(reflect.ValueOf(v))
		if got := *(*any)(unsafe.Pointer(&word{pl.typ, wordOf(x, pl.inside)})); !reflect.DeepEqual(got, v) &&
			x.Kind() != reflect.Func {
			t.Errorf("%T: %v", v, got)
		}
	}
}

func wordOf(x reflect.Value, inside bool) unsafe.Pointer {
	if inside {
		return *(*unsafe.Pointer)(x.Addr().UnsafePointer())
	}
	return x.Addr().UnsafePointer()
}

// A matryoshka panics with itself whenever it is looked at, which package fmt gives up on.
type matryoshka struct{}

func (m matryoshka) String() string       { panic(m) }
func (m matryoshka) LogValue() slog.Value { panic(m) }

func TestNestedPanics(t *testing.T) {
	want := string(appendString(nil, "!PANIC"))
	if got := string(AppendValue(nil, matryoshka{})); got != want {
		t.Errorf("%q", got)
	}
	key := string(appendString(nil, "k"))
	if got, n := AppendAttr(nil, slog.Any("k", matryoshka{})); string(got) != key+want || n != 1 {
		t.Errorf("%q", got)
	}
	same := func(_ []string, a slog.Attr) slog.Attr { return a }
	if got, n := AppendAttrsReplaced(nil, nil, []slog.Attr{slog.Any("k", matryoshka{})},
		same); string(got) != key+want || n != 1 {
		t.Errorf("%q", got)
	}
}
