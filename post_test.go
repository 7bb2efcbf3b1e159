// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

func TestPost(t *testing.T) {
	type inner struct {
		ID int `json:"id"`
	}
	type order struct {
		inner
		Name  string  `log:"name"`
		Price float64 `json:"price,omitempty"`
	}
	l, events := NewTest(&Options{Tag: "app"})
	at := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	v := order{inner: inner{7}, Name: "x"}
	for _, tt := range []struct {
		l    *Logger
		v    any
		want string
	}{
		{l, v, `{"id":7,"name":"x"}`},
		{l, &v, `{"id":7,"name":"x"}`},
		{l, map[string]any{"n": 1}, `{"n":1}`},
		{l, map[string]int{}, `{}`},
		{l, []slog.Attr{slog.Int("a", 1)}, `{"a":1}`},
		{l.With(slog.Int("w", 1)), v, `{"w":1,"id":7,"name":"x"}`},
		{l.WithGroup("g"), v, `{"g":{"id":7,"name":"x"}}`},
		{
			l.With(slog.Int("w", 1)).WithGroup("g").With(slog.Int("x", 2)).WithGroup("h"), v,
			`{"w":1,"g":{"x":2,"h":{"id":7,"name":"x"}}}`,
		},
		{l.With(slog.Int("w", 1)).WithGroup("g"), struct{}{}, `{"w":1}`},
	} {
		if err := tt.l.PostWithTime("app.order", at, tt.v); err != nil {
			t.Fatal(err)
		}
		if e := events.All()[0]; e.Tag != "app.order" || !e.Time.Equal(at) {
			t.Errorf("%+v", e)
		}
		expect(t, events, tt.want)
	}
}

func TestPostErrors(t *testing.T) {
	l, events := NewTest(&Options{MaxEvent: 100})
	var null *struct{ A int }
	long := strings.Repeat("x", 1025)
	for _, tt := range []struct {
		tag  string
		v    any
		want error
	}{
		{"t", nil, ErrNotRecord},
		{"t", null, ErrNotRecord},
		{"t", 5, ErrNotRecord},
		{"t", "text", ErrNotRecord},
		{"t", map[string]any(nil), nil},
		{"t", map[string]any{"k": long}, ErrTooLarge},
		{long, map[string]any{}, ErrTag},
		{long[1:], map[string]any{}, nil},
		{"", map[string]any{}, nil},
	} {
		for _, l := range []*Logger{l, l.With(slog.Int("a", 1))} {
			if err := l.Post(tt.tag, tt.v); !errors.Is(err, tt.want) {
				t.Errorf("%T %v: %v, want %v", tt.v, tt.v, err, tt.want)
			}
		}
	}
	if n := events.Len(); n != 6 {
		t.Errorf("%d events", n)
	}
	if s := l.Stats(); s.Refused != 2 || s.RefusedBy["too_large"] != 2 || s.Accepted != 6 {
		t.Errorf("%+v", s)
	}
}

func TestPostRaw(t *testing.T) {
	l, events := NewTest(&Options{Attrs: []slog.Attr{slog.Int("a", 1)}})
	rec := msgpack.AppendString(msgpack.AppendString(msgpack.AppendMapHeader(nil, 1), "k"), "v")
	if err := l.PostRaw("t", time.Unix(5, 0), rec); err != nil {
		t.Fatal(err)
	}
	clear(rec)
	e := events.All()[0]
	if e.Tag != "t" || e.Time.Unix() != 5 {
		t.Errorf("%+v", e)
	}
	expect(t, events, `{"k":"v"}`)
	for _, bad := range [][]byte{nil, {}, {0xc0}, {0x90}, {0x81}, {0x81, 0xa1}, {0x80, 0x80}, {0xc1}} {
		if err := l.PostRaw("t", time.Time{}, bad); !errors.Is(err, ErrNotRecord) {
			t.Errorf("%x: %v", bad, err)
		}
	}
	if err := l.PostRaw(strings.Repeat("x", 1025), time.Time{}, []byte{0x80}); !errors.Is(err, ErrTag) {
		t.Error(err)
	}
}

// FuzzPostRaw posts any bytes: what is taken is one map, and stays as it is.
func FuzzPostRaw(f *testing.F) {
	f.Add([]byte{0x81, 0xa1, 'k', 0x01})
	f.Add([]byte{0xde, 0x00, 0x01, 0xa1, 'k', 0xc0})
	f.Add([]byte{0x81, 0x90, 0xd7, 0, 0, 0, 0, 1, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, rec []byte) {
		l, events := NewTest(nil)
		if err := l.PostRaw("t", time.Time{}, rec); err != nil {
			if !errors.Is(err, ErrNotRecord) && !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		e := events.All()[0]
		if string(e.Raw) != string(rec) || e.Record == nil {
			t.Fatalf("%x became %x", rec, e.Raw)
		}
	})
}
