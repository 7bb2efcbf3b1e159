// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/slogtest"
	"time"
)

// handler is the least that makes a slog.Handler of this package.
type handler struct {
	out     *[][]byte
	groups  []string
	levels  [][]slog.Attr // the attributes of WithAttrs, by group
	replace Replace
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.levels = slices.Clone(h.levels)
	last := len(c.levels) - 1
	c.levels[last] = append(slices.Clone(c.levels[last]), attrs...)
	return &c
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.groups = append(slices.Clone(h.groups), name)
	c.levels = append(slices.Clone(h.levels), nil)
	return &c
}

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(h.levels[len(h.groups)])
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	for i := len(h.groups) - 1; i >= 0; i-- {
		attrs = append(slices.Clone(h.levels[i]), slog.Attr{Key: h.groups[i], Value: slog.GroupValue(attrs...)})
	}
	first := []slog.Attr{slog.Any("level", r.Level), slog.String("msg", r.Message)}
	if !r.Time.IsZero() {
		first = append([]slog.Attr{slog.Time("time", r.Time)}, first...)
	}
	b, at := BeginMap(nil, 0)
	b, n := AppendAttrsReplaced(b, nil, append(first, attrs...), h.replace)
	*h.out = append(*h.out, EndMap(b, at, n))
	return nil
}

func TestSlog(t *testing.T) {
	for _, replace := range []Replace{nil, func(_ []string, a slog.Attr) slog.Attr { return a }} {
		var out [][]byte
		err := slogtest.TestHandler(&handler{out: &out, levels: [][]slog.Attr{nil}, replace: replace},
			func() (results []map[string]any) {
				for _, b := range out {
					m := map[string]any{}
					if err := json.Unmarshal([]byte(asJSON(t, b)), &m); err != nil {
						t.Fatal(err)
					}
					results = append(results, m)
				}
				return results
			})
		if err != nil {
			t.Error(err)
		}
	}
}

// bySlog is what slog's JSON handler makes of attributes.
func bySlog(t *testing.T, attrs []slog.Attr, replace Replace) string {
	t.Helper()
	var out bytes.Buffer
	h := slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		if replace != nil {
			return replace(groups, a)
		}
		return a
	}})
	r := slog.NewRecord(time.Time{}, 0, "", 0)
	r.AddAttrs(attrs...)
	if err := h.Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// withoutEmpty drops groups in which nothing is left. slog writes one if what was left out last was
// itself a group.
func withoutEmpty(t *testing.T, text string) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var drop func(m map[string]any)
	drop = func(m map[string]any) {
		for k, v := range m {
			if inner, ok := v.(map[string]any); ok {
				if drop(inner); len(inner) == 0 {
					delete(m, k)
				}
			}
		}
	}
	drop(v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func randomAttrs(r *rand.Rand, depth int) []slog.Attr {
	attrs := make([]slog.Attr, r.IntN(5))
	for i := range attrs {
		key := fmt.Sprint("k", r.IntN(1000), "_", i)
		switch r.IntN(16) {
		case 0:
			attrs[i] = slog.String(key, strings.Repeat("aé", r.IntN(200)))
		case 1:
			attrs[i] = slog.Int64(key, int64(r.Uint64())>>r.IntN(64))
		case 2:
			attrs[i] = slog.Uint64(key, r.Uint64()>>r.IntN(64))
		case 3:
			attrs[i] = slog.Float64(key, float64(r.IntN(100))/8)
		case 4:
			attrs[i] = slog.Bool(key, r.IntN(2) == 0)
		case 5:
			attrs[i] = slog.Duration(key, time.Duration(r.Int64()))
		case 6:
			attrs[i] = slog.Time(key, time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).UTC())
		case 7:
			attrs[i] = slog.Any(key, &secretGroup{r.IntN(2)})
		case 8:
			attrs[i] = slog.Any("", secretGroup{r.IntN(2)})
		case 9:
			attrs[i] = slog.Any(key, []any{nil, "x", map[string]any{"a": 1}})
		case 10:
			attrs[i] = slog.Any(key, errors.New("wrong"))
		case 11, 12:
			if r.IntN(3) == 0 {
				key = ""
			}
			if depth > 0 {
				attrs[i] = slog.Attr{Key: key, Value: slog.GroupValue(randomAttrs(r, depth-1)...)}
			}
		case 13:
			attrs[i] = slog.Any(key, nil)
		case 14:
			attrs[i] = slog.Any(key, secret("s"))
		}
	}
	return attrs
}

type secretGroup struct{ n int }

func (s secretGroup) LogValue() slog.Value {
	if s.n == 0 {
		return slog.GroupValue()
	}
	return slog.GroupValue(slog.Int("inline", s.n))
}

func TestSameAsSlog(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	redact := func(groups []string, a slog.Attr) slog.Attr {
		switch len(a.Key) % 4 {
		case 0:
			return slog.Attr{}
		case 1:
			return slog.Group(a.Key, slog.String("was", a.Key), slog.String("groups", strings.Join(groups, ".")))
		case 2:
			if a.Value.Kind() == slog.KindString && a.Value.String() == "redacted" || slices.Contains(groups, a.Key) {
				return a
			}
			return slog.Any(a.Key, secret(strings.Join(groups, ".")))
		}
		return a
	}
	for round := range 3000 {
		attrs := randomAttrs(r, 3)
		b, at := BeginMap(nil, 0)
		b, n := AppendAttrs(b, attrs)
		got, want := asJSON(t, EndMap(b, at, n)), bySlog(t, attrs, nil)
		if !json.Valid([]byte(want)) {
			continue // slog forgets a comma after a group of which nothing is left
		}
		if withoutEmpty(t, got) != withoutEmpty(t, want) {
			t.Fatalf("round %d:\n got %s\nwant %s", round, got, want)
		}
		quiet := func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == "was" || a.Key == "groups" { // else it would go on for ever
				return a
			}
			return redact(groups, a)
		}
		b, at = BeginMap(nil, 0)
		b, n = AppendAttrsReplaced(b, nil, attrs, quiet)
		got, want = asJSON(t, EndMap(b, at, n)), bySlog(t, attrs, quiet)
		if json.Valid([]byte(want)) && withoutEmpty(t, got) != withoutEmpty(t, want) {
			t.Fatalf("round %d, replaced:\n got %s\nwant %s", round, got, want)
		}
	}
}

func TestReplace(t *testing.T) {
	var seen []string
	replace := func(groups []string, a slog.Attr) slog.Attr {
		seen = append(seen, strings.Join(append(slices.Clone(groups), a.Key), "."))
		switch a.Key {
		case "password":
			panic("no idea")
		case "gone":
			return slog.Attr{}
		case "endless":
			return slog.Group("endless", slog.String("endless", "x"))
		}
		return a
	}
	attrs := []slog.Attr{
		slog.Int("a", 1), slog.String("password", "hunter2"),
		slog.Group("g", slog.Int("gone", 1), slog.Group("", slog.Int("b", 2)), slog.Group("h", slog.Int("gone", 3))),
		slog.Group("empty", slog.Int("gone", 1)),
	}
	b, at := BeginMap(nil, len(attrs))
	b, n := AppendAttrsReplaced(b, []string{"open"}, attrs, replace)
	const want = `{"a":1,"password":"!PANIC: no idea","g":{"b":2}}`
	if got := asJSON(t, EndMap(b, at, n)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if want := []string{
		"open.a", "open.password", "open.g.gone", "open.g.b", "open.g.h.gone",
		"open.empty.gone",
	}; !slices.Equal(seen, want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
	b, at = BeginMap(nil, 1)
	b, n = AppendAttrsReplaced(b, nil, []slog.Attr{slog.Int("endless", 1)}, replace)
	if got := asJSON(t, EndMap(b, at, n)); !strings.Contains(got, deep) {
		t.Errorf("endless: %s", got)
	}
}

// Values that lead back to themselves, and such that never end, end under a Replace too.
func TestReplaceEnds(t *testing.T) {
	same := func(_ []string, a slog.Attr) slog.Attr { return a }
	more := func(_ []string, a slog.Attr) slog.Attr {
		return slog.Group(a.Key, slog.Int("a", 1), slog.Int("b", 2))
	}
	u := &pair{}
	u.left, u.right = u, u
	attrs := make([]slog.Attr, 2)
	attrs[0] = slog.Attr{Key: "g", Value: slog.GroupValue(attrs...)}
	attrs[1] = attrs[0]
	for _, tt := range []struct {
		name    string
		a       slog.Attr
		replace Replace
	}{
		{"pair", slog.Any("u", u), same},
		{"group", attrs[0], same},
		{"silent", slog.Any("", silent(0)), same},
		{"doubling", slog.Any("d", doubling(0)), same},
		{"more", slog.Int("m", 1), more},
	} {
		if testing.Short() || raceEnabled && tt.name != "pair" {
			continue
		}
		b, at := BeginMap(nil, 1)
		b, n := AppendAttrsReplaced(b, nil, []slog.Attr{tt.a}, tt.replace)
		b = EndMap(b, at, n)
		asJSON(t, b)
		if len(b) > maxSize+1<<20 {
			t.Errorf("%s: %d bytes", tt.name, len(b))
		}
		b, at = BeginMap(nil, 1)
		b, n = AppendAttrs(b, []slog.Attr{tt.a})
		asJSON(t, EndMap(b, at, n))
	}
}

type pair struct{ left, right *pair }

func (p *pair) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("left", p.left), slog.Any("right", p.right))
}

func TestHeader(t *testing.T) {
	for _, hint := range []int{0, 1, 15, 16, 65535, 65536} {
		for _, n := range []int{0, 1, 15, 16, 65535, 65536} {
			b, at := BeginMap([]byte("before"), hint)
			for i := range n {
				b = append(b, byte(i&0x7f), 1)
			}
			b = EndMap(b, at, n)
			if !bytes.HasPrefix(b, []byte("before")) {
				t.Fatal("moved")
			}
			asJSON(t, b[6:])
		}
	}
}
