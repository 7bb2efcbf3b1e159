// SPDX-License-Identifier: Apache-2.0

package test_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	original "github.com/fluent/fluent-logger-golang/fluent"
	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/compat/fluent/fluent"
)

// dataOf returns the bytes of what EncodeData returned.
func dataOf(t *testing.T, m any) []byte {
	t.Helper()
	return reflect.ValueOf(m).Elem().FieldByName("data").Bytes()
}

// decoded reads a message in MessagePack or JSON; chunk ids are random and become "id".
func decoded(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if b[0] == '[' {
		must(t, json.Unmarshal(b, &v))
	} else {
		var rest []byte
		var err error
		v, rest, err = msgp.ReadIntfBytes(b)
		if err != nil || len(rest) > 0 {
			t.Fatalf("%x: %v, %d bytes left", b, err, len(rest))
		}
	}
	if option, ok := v.([]any)[3].(map[string]any); ok && option["chunk"] != nil {
		if len(option["chunk"].(string)) != 24 {
			t.Errorf("id %q", option["chunk"])
		}
		option["chunk"] = "id"
	}
	return widest(v)
}

// widest makes numbers comparable whatever their width on the wire was.
func widest(v any) any {
	switch v := v.(type) {
	case float32:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		if v > math.MaxInt64 {
			return v
		}
		return float64(v)
	case []any:
		for i := range v {
			v[i] = widest(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = widest(v[k])
		}
	}
	return v
}

type keyText string

type withMethod struct{ N int64 }

func (w *withMethod) MarshalMsg(b []byte) ([]byte, error) {
	b = msgp.AppendMapHeader(b, 1)
	b = msgp.AppendString(b, "made")
	return msgp.AppendInt64(b, w.N), nil
}

type broken struct{}

func (broken) MarshalMsg([]byte) ([]byte, error) { return nil, errors.New("no") }

// both are values that the original takes too.
func both() []any {
	n, s := 7, "pointed"
	return []any{
		nil, true, false, 0, 1, -1, 127, 128, -32, -33, 255, 256, 65535, 65536, math.MaxInt32, math.MinInt32,
		int64(math.MaxInt64), int64(math.MinInt64),
		int8(-8), int16(-1600), int32(-320000), uint(1), uint8(200), uint16(60000), uint32(4e9), uint64(math.MaxUint64),
		float32(1.5), 2.25, math.Inf(1), "", "text", strings.Repeat("x", 31), strings.Repeat("x", 32),
		strings.Repeat("x", 300), strings.Repeat("x", 70000), "\xff\xfe", "日本",
		[]byte(nil),
		[]byte{1, 2},
		bytes.Repeat([]byte{7}, 300), time.Second, json.Number("12"), json.Number("-1.5"), json.Number(""),
		[]any{},
		[]any(nil),
		[]any{1, "a", nil, []any{2}},
		[]int{1, 2, 3},
		[]string{"a"},
		[2]int{1, 2},
		[2]byte{1, 2},
		make([]int, 20), make([]int, 70000),
		map[string]any{},
		map[string]any(nil),
		map[string]any{"a": 1},
		map[string]string{"foo": "bar", "hoge": "hoge"},
		map[keyText]int{"k": 1},
		map[string]any{"deep": map[string]any{"deeper": []any{map[string]int{"x": 1}}}},
		map[string][]int{"foo": {1, 2, 3}},
		map[string]map[string]bool{"a": {"b": true}},
		&n, &s, (*int)(nil),
		[]*int{&n, nil},
		map[string]*string{"p": &s},
		&map[string]int{"via": 1},
		&withMethod{5},
		map[string]any{"inside": &withMethod{6}},
		[]any{&withMethod{7}},
	}
}

var clock = time.Date(2026, 11, 21, 2, 3, 4, 123456789, time.UTC)

// modes are the ways to encode.
var modes = map[string]fluent.Config{
	"plain":     {},
	"subsecond": {SubSecondPrecision: true},
	"ack":       {RequestAck: true},
	"JSON":      {MarshalAsJSON: true},
	"JSON, ack": {MarshalAsJSON: true, RequestAck: true, SubSecondPrecision: true},
}

func originalConfig(c fluent.Config) original.Config {
	return original.Config{
		FluentHost: c.FluentHost, FluentPort: c.FluentPort, TagPrefix: c.TagPrefix,
		SubSecondPrecision: c.SubSecondPrecision, RequestAck: c.RequestAck, MarshalAsJSON: c.MarshalAsJSON,
	}
}

// TestEncodeData compares with the original's EncodeData.
func TestEncodeData(t *testing.T) {
	for name, config := range modes {
		t.Run(name, func(t *testing.T) {
			ours, theirs := &fluent.Fluent{Config: config}, &original.Fluent{Config: originalConfig(config)}
			for _, v := range both() {
				for _, when := range []time.Time{clock, time.Unix(0, 0), time.Unix(1<<31+5, 7)} {
					a, err1 := ours.EncodeData("a.tag", when, v)
					b, err2 := theirs.EncodeData("a.tag", when, v)
					if err1 != nil || err2 != nil {
						if (err1 == nil) != (err2 == nil) {
							t.Errorf("%#v: error %v, the original's is %v", v, err1, err2)
						}
						continue
					}
					x, y := decoded(t, dataOf(t, a)), decoded(t, dataOf(t, b))
					if config.SubSecondPrecision && !config.MarshalAsJSON { // the original reads seconds back as signed
						if !bytes.Equal(dataOf(t, a)[7:17], dataOf(t, b)[7:17]) {
							t.Errorf("%v: time %x, the original's is %x", when, dataOf(t, a)[7:17], dataOf(t, b)[7:17])
						}
						x.([]any)[1], y.([]any)[1] = nil, nil
					}
					if !reflect.DeepEqual(x, y) {
						t.Errorf("%#v:\n%v, the original's is\n%v", v, x, y)
					}
				}
			}
		})
	}
}

// TestEncodeJSONText compares the very bytes: there is one way to write them.
func TestEncodeJSONText(t *testing.T) {
	ours := &fluent.Fluent{Config: fluent.Config{MarshalAsJSON: true}}
	theirs := &original.Fluent{Config: original.Config{MarshalAsJSON: true}}
	for _, v := range both() {
		a, err1 := ours.EncodeData("tag", clock, v)
		b, err2 := theirs.EncodeData("tag", clock, v)
		if err1 != nil || err2 != nil {
			continue
		}
		if x, y := string(dataOf(t, a)), string(dataOf(t, b)); x != y {
			t.Errorf("%#v:\n%s, the original's is\n%s", v, x, y)
		}
	}
}

type tagged struct {
	Plain   string
	Msg     int    `msg:"named"`
	Codec   bool   `codec:"by_codec"`
	Both    string `msg:"first" codec:"second"`
	List    []string
	Pairs   map[string]any `msg:"pairs"`
	Pointer *int
	hidden  string
}

// posts are what both PostWithTime take.
func posts() []any {
	n := 3
	return []any{
		map[string]string{"foo": "bar", "hoge": "hoge"},
		map[string]any{"n": 1, "list": []any{"a", 2.5, nil, true}, "map": map[string]int{"x": -1}},
		map[keyText]int{"k": 1},
		map[string][]int{"foo": {1, 2, 3}},
		struct {
			Name string `msg:"name"`
		}{"john smith"},
		tagged{"p", 1, true, "b", []string{"x"}, map[string]any{"deep": 1}, &n, "hidden"},
		tagged{},
		struct{}{},
		&withMethod{9},
		original.TestMessage{Foo: "bar"},
		&original.TestMessage{Foo: "bar", Hoge: "h"},
	}
}

// TestPostWithTime compares what arrives at a server with what the original sends there.
func TestPostWithTime(t *testing.T) {
	for name, config := range modes {
		t.Run(name, func(t *testing.T) {
			s := listen(t, "tcp", "127.0.0.1:0")
			at := s.config()
			config.FluentHost, config.FluentPort, config.TagPrefix = at.FluentHost, at.FluentPort, "pre"
			ours := open(t, config)
			theirs, err := original.New(originalConfig(config))
			must(t, err)
			defer func() { must(t, theirs.Close()) }()
			for i, v := range posts() {
				must(t, ours.PostWithTime("tag", clock, v))
				must(t, theirs.PostWithTime("tag", clock, v))
				events := s.wait(2*i + 2)[2*i:]
				equal(t, events[0], events[1])
			}
		})
	}
}

// TestErrorsOfTheOriginal compares the errors that callers may look at.
func TestErrorsOfTheOriginal(t *testing.T) {
	s := listen(t, "tcp", "127.0.0.1:0")
	ours := open(t, s.config())
	theirs, err := original.New(originalConfig(s.config()))
	must(t, err)
	for _, v := range []any{"a string", 5, []int{1}, map[int]string{1: "a"}} {
		a, b := ours.Post("tag", v), theirs.Post("tag", v)
		if a == nil || b == nil || a.Error() != b.Error() {
			t.Errorf("%#v: error %q, the original's is %q", v, a, b)
		}
	}
	for _, v := range []any{
		map[string]any{"c": make(chan int)},
		map[string]any{"f": func() {}},
		map[string]any{"m": map[int]int{}},
		broken{},
	} {
		a, b := ours.Post("tag", v), theirs.Post("tag", v)
		_, x, _ := strings.Cut(a.Error(), "to msgpack:")
		_, y, _ := strings.Cut(b.Error(), "to msgpack:")
		if x != y || x == "" {
			t.Errorf("%#v: error %q, the original's is %q", v, a, b)
		}
	}
	must(t, ours.Close())
	must(t, theirs.Close())
	if a, b := ours.Post("tag", text("late")), theirs.Post("tag", text("late")); a.Error() != b.Error() {
		t.Errorf("closed: error %q, the original's is %q", a, b)
	}
	_, a := fluent.New(fluent.Config{FluentNetwork: "carrier pigeon"})
	_, b := original.New(original.Config{FluentNetwork: "carrier pigeon"})
	if a.Error() != b.Error() {
		t.Errorf("network: error %q, the original's is %q", a, b)
	}
	var unknown *fluent.ErrUnknownNetwork
	if !errors.As(a, &unknown) || fluent.NewErrUnknownNetwork("x").Error() !=
		original.NewErrUnknownNetwork("x").Error() {
		t.Errorf("network: %T", a)
	}
}

// TestConfigJSON compares the keys under which a Config stands in JSON, and that no field of the
// original is missing.
func TestConfigJSON(t *testing.T) {
	ours, theirs := reflect.TypeFor[fluent.Config](), reflect.TypeFor[original.Config]()
	if ours.NumField() != theirs.NumField() {
		t.Errorf("%d fields, the original has %d", ours.NumField(), theirs.NumField())
	}
	for i := range theirs.NumField() {
		want := theirs.Field(i)
		got, ok := ours.FieldByName(want.Name)
		if !ok || got.Tag.Get("json") != want.Tag.Get("json") || got.Type != want.Type {
			t.Errorf("field %s: %v %s, the original's is %v %s", want.Name, got.Type, got.Tag, want.Type, want.Tag)
		}
	}
}

// TestNames looks for everything that the original exports, methods with their signatures.
func TestNames(t *testing.T) {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[*fluent.Fluent](), reflect.TypeFor[*original.Fluent]()},
		{reflect.TypeFor[*fluent.Message](), reflect.TypeFor[*original.Message]()},
		{reflect.TypeFor[*fluent.MessageExt](), reflect.TypeFor[*original.MessageExt]()},
		{reflect.TypeFor[*fluent.Forward](), reflect.TypeFor[*original.Forward]()},
		{reflect.TypeFor[*fluent.Entry](), reflect.TypeFor[*original.Entry]()},
		{reflect.TypeFor[fluent.Entry](), reflect.TypeFor[original.Entry]()},
		{reflect.TypeFor[*fluent.AckResp](), reflect.TypeFor[*original.AckResp]()},
		{reflect.TypeFor[fluent.AckResp](), reflect.TypeFor[original.AckResp]()},
		{reflect.TypeFor[*fluent.TestMessage](), reflect.TypeFor[*original.TestMessage]()},
		{reflect.TypeFor[*fluent.EventTime](), reflect.TypeFor[*original.EventTime]()},
		{reflect.TypeFor[*fluent.MessageChunk](), reflect.TypeFor[*original.MessageChunk]()},
		{reflect.TypeFor[*fluent.ErrUnknownNetwork](), reflect.TypeFor[*original.ErrUnknownNetwork]()},
	} {
		ours, theirs := pair[0], pair[1]
		for i := range theirs.NumMethod() {
			want := theirs.Method(i)
			got, ok := ours.MethodByName(want.Name)
			if !ok {
				t.Errorf("%v has no %s", ours, want.Name)
				continue
			}
			signature := func(f reflect.Type) string { // without the receiver
				_, rest, _ := strings.Cut(f.String(), ",")
				return rest
			}
			if signature(got.Type) != signature(want.Type) {
				t.Errorf("%v.%s: %v, the original's is %v", ours, want.Name, got.Type, want.Type)
			}
		}
		if ours.Kind() == reflect.Pointer && ours.Elem().Kind() == reflect.Struct {
			for i := range theirs.Elem().NumField() {
				if want := theirs.Elem().Field(i); want.IsExported() {
					if got, ok := ours.Elem().FieldByName(want.Name); !ok || got.Tag.Get("msg") != want.Tag.Get("msg") {
						t.Errorf("%v: field %s %v", ours, want.Name, got.Type)
					}
				}
			}
		}
	}
	_ = fluent.Version
}

// TestMessages writes with one and reads with the other.
func TestMessages(t *testing.T) {
	type message interface {
		msgp.Marshaler
		msgp.Unmarshaler
		msgp.Encodable
		msgp.Decodable
		msgp.Sizer
	}
	record := map[string]any{"a": int64(-1), "b": []any{"x", nil}}
	option := map[string]string{"chunk": "id"}
	for _, tt := range []struct {
		full, empty message // ours
		theirs      message // the original's, empty
	}{
		{&fluent.Message{Tag: "t", Time: -5, Record: record, Option: option}, &fluent.Message{}, &original.Message{}},
		{&fluent.Message{}, &fluent.Message{}, &original.Message{}},
		{
			&fluent.MessageExt{Tag: "t", Time: fluent.EventTime(clock), Record: record, Option: option},
			&fluent.MessageExt{}, &original.MessageExt{},
		},
		{&fluent.Entry{Time: 5, Record: record}, &fluent.Entry{}, &original.Entry{}},
		{
			&fluent.Forward{Tag: "t", Entries: []fluent.Entry{{Time: 1, Record: record}, {Time: 2}}, Option: option},
			&fluent.Forward{}, &original.Forward{},
		},
		{&fluent.AckResp{Ack: "id"}, &fluent.AckResp{}, &original.AckResp{}},
		{&fluent.TestMessage{Foo: "f", Hoge: "h"}, &fluent.TestMessage{}, &original.TestMessage{}},
	} {
		b, err := tt.full.MarshalMsg(nil)
		must(t, err)
		rest, err := tt.theirs.UnmarshalMsg(append(b, 0xc0))
		must(t, err)
		if len(rest) != 1 {
			t.Errorf("%T: %d bytes left", tt.full, len(rest))
		}
		back, err := tt.theirs.MarshalMsg(nil)
		must(t, err)
		var written bytes.Buffer
		must(t, msgp.Encode(&written, tt.full))
		if written.Len() != len(b) || tt.full.Msgsize() < len(b) {
			t.Errorf("%T: %d bytes written, want %d; size %d", tt.full, written.Len(), len(b), tt.full.Msgsize())
		}
		must(t, msgp.Decode(bytes.NewReader(back), tt.empty))
		again, err := tt.empty.MarshalMsg(nil)
		must(t, err)
		x, _, err := msgp.ReadIntfBytes(again)
		must(t, err)
		y, _, err := msgp.ReadIntfBytes(b)
		must(t, err)
		equal(t, widest(x), widest(y))
		for n := range len(b) { // cut off
			if _, err := tt.empty.UnmarshalMsg(b[:n]); err == nil {
				t.Errorf("%T: %d bytes of %d are enough", tt.empty, n, len(b))
			}
		}
	}
}
