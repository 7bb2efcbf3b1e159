// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

type request struct {
	Method string `msg:"method"`
	Path   string `msg:"path"`
	Status int    `msg:"status"`
	Took   time.Duration
	Tags   []string `codec:"tags"`
	Ok     bool     `msg:"ok,omitempty"`
}

// TestAllocs encodes the commonest records without an allocation.
func TestAllocs(t *testing.T) {
	c := &Config{}
	m := new(msgToSend)
	for name, v := range map[string]any{
		"struct":            request{"GET", "/a", 200, time.Second, []string{"x", "y"}, true},
		"pointer":           &request{"GET", "/a", 200, time.Second, []string{"x", "y"}, false},
		"map[string]string": map[string]string{"foo": "bar", "hoge": "hoge"},
		"map[string]any": map[string]any{
			"n": 1000, "s": "text", "b": true, "f": 1.5, "t": time.Unix(1, 0),
			"l": []any{1, "a"},
		},
	} {
		encode := func() {
			if err := c.encode(m, "tag", time.Unix(1, 0), v); err != nil {
				t.Fatal(err)
			}
		}
		encode() // the plan, the buffer
		if n := testing.AllocsPerRun(100, encode); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if n, err := msgpack.Skip(m.data); err != nil || n != len(m.data) || !m.isRecord() {
			t.Errorf("%s: %x: %v", name, m.data, err)
		}
	}
}

type jsonPanics struct{}

func (jsonPanics) MarshalJSON() ([]byte, error) { panic("in MarshalJSON") }

// TestPanicInJSON: with MarshalAsJSON too, a method that panics is an error of its own event.
func TestPanicInJSON(t *testing.T) {
	c := &Config{MarshalAsJSON: true}
	for _, encode := range []func(*msgToSend, string, time.Time, any) error{c.encode, c.encodeRecord} {
		if err := encode(new(msgToSend), "tag", time.Unix(1, 0), map[string]any{"x": jsonPanics{}}); err == nil ||
			!strings.Contains(err.Error(), "in MarshalJSON") {
			t.Error(err)
		}
	}
}

// TestNumbers: a json.Number is the number that its text means.
func TestNumbers(t *testing.T) {
	for n, want := range map[json.Number][]byte{
		"":                     msgpack.AppendInt(nil, 0),
		"-9223372036854775808": msgpack.AppendInt(nil, math.MinInt64),
		"18446744073709551615": msgpack.AppendUint(nil, math.MaxUint64),
		"1.5":                  msgpack.AppendFloat64(nil, 1.5),
	} {
		if b, err := appendAny(nil, n, 0); err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s: %x, %v", n, b, err)
		}
	}
}

// FuzzMessages reads messages of every type: nothing panics, and what is read can be written and
// read again.
func FuzzMessages(f *testing.F) {
	for _, m := range []interface{ MarshalMsg([]byte) ([]byte, error) }{
		&Message{
			Tag: "t", Time: 1, Record: map[string]any{"a": []any{1.5, nil}},
			Option: map[string]string{"chunk": "x"},
		},
		&MessageExt{Tag: "t", Time: EventTime(time.Unix(1, 5))}, &Forward{Tag: "t", Entries: []Entry{{Time: 1}}},
		Entry{Time: 1, Record: "x"},
		AckResp{"x"},
		TestMessage{"a", "b"},
	} {
		b, err := m.MarshalMsg(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\xdd\xff\xff\xff\xff"))
	f.Add([]byte("\x93\xa1t\xdd\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range []interface {
			MarshalMsg([]byte) ([]byte, error)
			UnmarshalMsg([]byte) ([]byte, error)
		}{&Message{}, &MessageExt{}, &Forward{}, &Entry{}, &AckResp{}, &TestMessage{}} {
			rest, err := m.UnmarshalMsg(b)
			if err != nil {
				continue
			}
			if len(rest) > len(b) || !bytes.HasSuffix(b, rest) {
				t.Fatalf("%T: rest %x of %x", m, rest, b)
			}
			again, err := m.MarshalMsg(nil)
			if err != nil {
				continue // an extension that cannot be written, for one
			}
			if _, err := m.UnmarshalMsg(again); err != nil {
				t.Fatalf("%T: %x became %x: %v", m, b, again, err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for name, v := range map[string]any{
		"struct": request{"GET", "/a", 200, time.Second, []string{"x", "y"}, true},
		"map":    map[string]string{"foo": "bar", "hoge": "hoge"},
	} {
		b.Run(name, func(b *testing.B) {
			c, m := &Config{}, new(msgToSend)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.encode(m, "tag", time.Unix(1, 0), v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
