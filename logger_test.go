// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/msgpack"
)

// text returns the events' records as JSON, a line each, with their keys in order.
func text(t *testing.T, events *TestEvents) string {
	t.Helper()
	var b []byte
	for _, e := range events.All() {
		out, n, err := msgpack.AppendJSON(b, e.Raw, forward.AppendExtJSON)
		if err != nil || n != len(e.Raw) {
			t.Fatalf("record %x: %v after %d bytes", e.Raw, err, n)
		}
		b = append(out, '\n')
	}
	return string(b)
}

func expect(t *testing.T, events *TestEvents, lines ...string) {
	t.Helper()
	want := ""
	for _, line := range lines {
		want += line + "\n"
	}
	if got := text(t, events); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	events.Reset()
}

// all lets every level pass.
func all(o Options) *Options {
	o.Level = LevelTrace
	return &o
}

func TestCalls(t *testing.T) {
	l, events := NewTest(all(Options{Tag: "app"}))
	l.Trace("a")
	l.Debug("b", slog.Int("n", -1))
	l.Info("c", slog.String("s", "x"), slog.Bool("ok", true))
	l.Warn("d", slog.Float64("f", 1.5))
	l.Error("e", slog.Any("nothing", nil))
	l.Log(context.Background(), slog.LevelInfo+2, "f")
	l.Log(nil, LevelFatal, "g") //nolint:staticcheck // nil is survived
	first := events.All()[2]
	if first.Tag != "app" || first.Level != slog.LevelInfo || first.Message != "c" || first.Record["s"] != "x" {
		t.Errorf("%+v", first)
	}
	if age := time.Since(first.Time); age < -time.Hour || age > time.Hour {
		t.Errorf("the event is %v old", age)
	}
	expect(t, events,
		`{"level":"TRACE","msg":"a"}`,
		`{"level":"DEBUG","msg":"b","n":-1}`,
		`{"level":"INFO","msg":"c","s":"x","ok":true}`,
		`{"level":"WARN","msg":"d","f":1.5}`,
		`{"level":"ERROR","msg":"e","nothing":null}`,
		`{"level":"INFO+2","msg":"f"}`,
		`{"level":"FATAL","msg":"g"}`,
	)
}

func TestWithAndGroups(t *testing.T) {
	l, events := NewTest(&Options{Attrs: []slog.Attr{slog.String("app", "x")}, Service: "shop"})
	a := slog.Int("a", 1)
	b := slog.Int("b", 2)
	c := slog.Int("c", 3)
	for _, tt := range []struct {
		l     *Logger
		attrs []slog.Attr
		want  string
	}{
		{l, nil, `}`},
		{l, []slog.Attr{a, b}, `,"a":1,"b":2}`},
		{l.With(a), nil, `,"a":1}`},
		{l.With(a).With(b), []slog.Attr{c}, `,"a":1,"b":2,"c":3}`},
		{l.WithGroup("g"), nil, `}`},
		{l.WithGroup("g"), []slog.Attr{a}, `,"g":{"a":1}}`},
		{l.WithGroup("g"), []slog.Attr{{}, slog.Group("none")}, `}`},
		{l.With(a).WithGroup("g").With(b).WithGroup("h"), nil, `,"a":1,"g":{"b":2}}`},
		{l.With(a).WithGroup("g").With(b).WithGroup("h"), []slog.Attr{c}, `,"a":1,"g":{"b":2,"h":{"c":3}}}`},
		{l.WithGroup("g").WithGroup("h").WithGroup("i"), nil, `}`},
		{l.WithGroup("g").WithGroup("h").WithGroup("i"), []slog.Attr{c, a}, `,"g":{"h":{"i":{"c":3,"a":1}}}}`},
		{
			l.WithGroup("g").WithGroup("h").With(a).WithGroup("i").With(b),
			[]slog.Attr{c},
			`,"g":{"h":{"a":1,"i":{"b":2,"c":3}}}}`,
		},
		{l.WithGroup("g").With(a).With(b), []slog.Attr{c}, `,"g":{"a":1,"b":2,"c":3}}`},
		{l.WithGroup("g").With(slog.Group("", a, b)), nil, `,"g":{"a":1,"b":2}}`},
		{
			l.With(slog.Group("k", a)).With(),
			[]slog.Attr{slog.Group("m", b, slog.Group("n", c))},
			`,"k":{"a":1},"m":{"b":2,"n":{"c":3}}}`,
		},
		{l.WithGroup(""), []slog.Attr{a}, `,"a":1}`},
	} {
		tt.l.Info("m", tt.attrs...)
		expect(t, events, `{"level":"INFO","msg":"m","service":"shop","app":"x"`+tt.want)
	}
}

// TestSiblings makes several loggers of one and looks whether they write into each other's prefix.
func TestSiblings(t *testing.T) {
	l, events := NewTest(nil)
	base := l.With(slog.Int("a", 1)).WithGroup("g").With(slog.Int("b", 2))
	x := base.With(slog.Int("x", 1)).WithGroup("h")
	y := base.With(slog.Int("y", 2)).WithGroup("i")
	x.Info("m", slog.Int("c", 3))
	y.Info("m", slog.Int("c", 3))
	base.Info("m")
	expect(t, events,
		`{"level":"INFO","msg":"m","a":1,"g":{"b":2,"x":1,"h":{"c":3}}}`,
		`{"level":"INFO","msg":"m","a":1,"g":{"b":2,"y":2,"i":{"c":3}}}`,
		`{"level":"INFO","msg":"m","a":1,"g":{"b":2}}`,
	)
}

// TestManyAttributes counts across the forms of map headers.
func TestManyAttributes(t *testing.T) {
	for _, n := range []int{
		0, 12, 13, 14, 16, 255, 256, math.MaxUint16 - 2, math.MaxUint16 - 1, math.MaxUint16,
		math.MaxUint16 + 1,
	} {
		attrs := make([]slog.Attr, n)
		for i := range attrs {
			attrs[i] = slog.Int(fmt.Sprint(i), i)
		}
		l, events := NewTest(&Options{MaxEvent: 1 << 24, RingSize: 1 << 26})
		l.Info("m", attrs...)
		l.With(attrs...).Info("m", slog.Int("x", 1))
		l.WithGroup("g").With(attrs...).WithGroup("h").Info("m", slog.Int("x", 1))
		l.WithGroup("g").Info("m", attrs...)
		all := events.All()
		for i, want := range []int{2 + n, 3 + n, 1 + n, n} {
			m := all[i].Record
			if i >= 2 {
				m, _ = m["g"].(map[string]any)
			}
			if len(m) != want {
				t.Errorf("%d attributes, case %d: %d pairs, want %d", n, i, len(m), want)
			}
			if k, err := msgpack.Skip(all[i].Raw); err != nil || k != len(all[i].Raw) {
				t.Errorf("%d attributes, case %d: %v", n, i, err)
			}
		}
	}
}

// TestGrownGroup has a group's header grow when another group is open in it already.
func TestGrownGroup(t *testing.T) {
	attrs := make([]slog.Attr, math.MaxUint16)
	for i := range attrs {
		attrs[i] = slog.Int(fmt.Sprint(i), i)
	}
	l, events := NewTest(&Options{MaxEvent: 1 << 24, RingSize: 1 << 26})
	m := l.WithGroup("g").With(attrs...).WithGroup("h").With(slog.Int("x", 1))
	m.Info("m")
	m.Info("m", slog.Int("y", 2))
	m.With(slog.Int("y", 2)).WithGroup("i").Info("m", slog.Int("z", 3))
	for i, want := range []int{1, 2, 3} {
		e := events.All()[i]
		if k, err := msgpack.Skip(e.Raw); err != nil || k != len(e.Raw) {
			t.Fatalf("event %d: %v after %d of %d bytes", i, err, k, len(e.Raw))
		}
		g, _ := e.Record["g"].(map[string]any)
		h, _ := g["h"].(map[string]any)
		if len(g) != len(attrs)+1 || len(h) != want {
			t.Errorf("event %d: %d and %d pairs, want %d and %d", i, len(g), len(h), len(attrs)+1, want)
		}
	}
}

func TestDefaultFields(t *testing.T) {
	l, events := NewTest(&Options{Host: true, PID: true, Service: "s", Attrs: []slog.Attr{slog.Int("v", 1)}})
	l.Info("m")
	if err := l.Post("t", map[string]any{"x": 1}); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.All() {
		for _, key := range []string{"host", "pid", "service", "v"} {
			if _, ok := e.Record[key]; !ok {
				t.Errorf("%v has no %s", e.Record, key)
			}
		}
	}
}

func TestLevels(t *testing.T) {
	l, events := NewTest(nil)
	derived := l.With(slog.Int("a", 1))
	if l.Level() != slog.LevelInfo || l.Enabled(slog.LevelDebug) || !l.Enabled(slog.LevelInfo) {
		t.Error("the default level is not Info")
	}
	l.Debug("no")
	derived.SetLevel(slog.LevelDebug)
	l.Debug("yes")
	l.SetLevel(slog.LevelError)
	derived.Warn("no")
	derived.Error("yes")
	if err := derived.Post("t", struct{}{}); err != nil { // not held back by levels
		t.Error(err)
	}
	expect(t, events, `{"level":"DEBUG","msg":"yes"}`, `{"level":"ERROR","msg":"yes","a":1}`, `{"a":1}`)

	level := new(slog.LevelVar)
	l, _ = NewTest(&Options{Level: level})
	level.Set(slog.LevelWarn)
	if l.Enabled(slog.LevelInfo) {
		t.Error("a LevelVar is not followed")
	}
	l.SetLevel(slog.LevelDebug)
	if level.Level() != slog.LevelDebug {
		t.Error("SetLevel does not set the LevelVar")
	}
}

func TestLevelText(t *testing.T) {
	for l, want := range map[slog.Level]string{
		-8: "TRACE", -4: "DEBUG", 0: "INFO", 4: "WARN", 8: "ERROR", 12: "FATAL",
		-9: "TRACE-1", -7: "TRACE+1", -5: "TRACE+3", -3: "DEBUG+1", 2: "INFO+2", 11: "ERROR+3", 13: "FATAL+1",
		100: "FATAL+88", -100: "TRACE-92",
	} {
		if got := levelText(l); got != want {
			t.Errorf("%d is %s, want %s", l, got, want)
		}
		if got, ok := parseLevel(want); !ok || got != l {
			t.Errorf("%s is %d, want %d", want, got, l)
		}
	}
	for _, l := range []slog.Level{math.MinInt, math.MaxInt, math.MinInt + 8, math.MaxInt - 8} {
		text := levelText(l)
		if got, ok := parseLevel(text); !ok || got != l || len(text) > maxLevelText {
			t.Errorf("%d is %s, which is %d", l, text, got)
		}
	}
}

// TestNothing calls every method of loggers that do nothing.
func TestNothing(t *testing.T) {
	ctx := context.Background()
	for name, l := range map[string]*Logger{"nil": nil, "zero": {}, "Discard": Discard()} {
		l.SetLevel(LevelTrace)
		if l.Enabled(LevelFatal) {
			t.Errorf("%s is enabled", name)
		}
		l = l.With(slog.Int("a", 1)).WithGroup("g")
		l.Trace("m")
		l.Debug("m")
		l.Info("m")
		l.Warn("m")
		l.Error("m")
		l.Log(ctx, 100, "m")
		l.Log(ctx, never, "m")
		l.StdLogger(slog.LevelInfo).Print("m")
		if _, err := l.Writer().Write([]byte("x\n")); err != nil {
			t.Error(err)
		}
		slog.New(l.Handler()).With("a", 1).WithGroup("g").Error("m")
		if err := l.Handler().Handle(ctx, slog.Record{}); err != nil {
			t.Error(err)
		}
		if err := l.Post("t", nil); err != nil {
			t.Error(err)
		}
		if err := l.PostRaw("t", time.Time{}, nil); err != nil {
			t.Error(err)
		}
		if err := l.LogEvent(ctx, nil); err != nil {
			t.Error(err)
		}
		if _, open := <-l.Subscribe(); open {
			t.Error("an event of no breaker")
		}
		if s := l.Stats(); s.Accepted != 0 {
			t.Error(s)
		}
		if err := l.Flush(ctx); err != nil {
			t.Error(err)
		}
		func() {
			defer func() {
				if v := recover(); v != "boom" {
					t.Errorf("%v", v)
				}
			}()
			defer l.Recover()
			panic("boom")
		}()
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

func TestContextAttrs(t *testing.T) {
	type key struct{}
	extract := func(ctx context.Context, attrs []slog.Attr) []slog.Attr {
		if id, ok := ctx.Value(key{}).(string); ok {
			attrs = append(attrs, slog.String("trace_id", id))
		}
		if ctx.Value(key{}) == 13 {
			panic("thirteen")
		}
		return attrs
	}
	l, events := NewTest(&Options{ContextAttrs: extract})
	ctx := context.WithValue(context.Background(), key{}, "abc")
	l = l.WithGroup("g").With(slog.Int("a", 1))
	l.Log(ctx, slog.LevelInfo, "m", slog.Int("b", 2))
	slog.New(l.Handler()).InfoContext(ctx, "m")
	l.Info("m")
	l.Log(context.WithValue(ctx, key{}, 13), slog.LevelInfo, "m")
	expect(t, events,
		`{"level":"INFO","msg":"m","trace_id":"abc","g":{"a":1,"b":2}}`,
		`{"level":"INFO","msg":"m","trace_id":"abc","g":{"a":1}}`,
		`{"level":"INFO","msg":"m","g":{"a":1}}`,
		`{"level":"INFO","msg":"m","context":"!PANIC: thirteen","g":{"a":1}}`,
	)
}

func TestReplaceAttr(t *testing.T) {
	var seen []string
	replace := func(groups []string, a slog.Attr) slog.Attr {
		seen = append(seen, strings.Join(append(groups, a.Key), "."))
		switch {
		case a.Key == "password":
			return slog.String(a.Key, "***")
		case a.Key == "gone", a.Key == slog.MessageKey && a.Value.String() == "":
			return slog.Attr{}
		case a.Key == slog.LevelKey && len(groups) == 0 && a.Value.Any() == slog.LevelWarn:
			return slog.Int("severity", 4)
		case a.Key == "panic":
			panic("secret is safe")
		case a.Key == slog.SourceKey:
			return slog.String("source", "here")
		}
		return a
	}
	l, events := NewTest(&Options{
		ReplaceAttr: replace, Service: "s", Attrs: []slog.Attr{slog.String("password", "1")},
		Source: ShortSource,
	})
	if got := strings.Join(seen, " "); got != "service password" {
		t.Errorf("saw %s of the default fields", got)
	}
	w := l.With(slog.String("password", "2"), slog.Int("a", 1)).WithGroup("g").With(slog.String("password", "3"))
	seen = nil
	w.Warn("m", slog.String("password", "4"), slog.Int("gone", 1),
		slog.Group("h", slog.String("password", "5"), slog.Int("panic", 42)))
	if got := strings.Join(seen, " "); got != "level msg source g.password g.gone g.h.password g.h.panic" {
		t.Errorf("saw %s", got)
	}
	slog.New(w.Handler()).Info("", "password", "6")
	expect(t, events,
		`{"severity":4,"msg":"m","source":"here","service":"s","password":"***","a":1,"g":{"password":"***","password":"***","h":{"password":"***","panic":"!PANIC: secret is safe"}}}`,
		`{"level":"INFO","source":"here","service":"s","password":"***","a":1,"g":{"password":"***","password":"***"}}`,
	)
}

func TestSource(t *testing.T) {
	for _, source := range []Source{ShortSource, LongSource} {
		for _, replace := range []func([]string, slog.Attr) slog.Attr{
			nil,
			func(_ []string, a slog.Attr) slog.Attr { return a },
		} {
			l, events := NewTest(&Options{Source: source, ReplaceAttr: replace, Exit: func(int) {}})
			l.Info("m") // the line of this call is the first of the next ones
			first := events.All()[0].Record["source"].(string)
			var line int
			if _, err := fmt.Sscanf(first[strings.LastIndex(first, ":"):], ":%d", &line); err != nil {
				t.Fatal(err)
			}
			l.Warn("m")
			l.Log(context.Background(), slog.LevelInfo, "m")
			l.With(slog.Int("a", 1)).Error("m")
			slog.New(l.Handler()).Info("m")
			l.StdLogger(slog.LevelInfo).Print("m")
			l.StdLogger(slog.LevelInfo).Printf("%s", "m")
			func() { l.Info("m") }()
			l.Fatal("m")
			lines := []int{0, 6, 7, 8, 9, 10, 11, 12, 13}
			all := events.All()
			if len(all) != len(lines) {
				t.Fatalf("%d events", len(all))
			}
			for i, e := range all {
				got, _ := e.Record["source"].(string)
				want := fmt.Sprintf("logger_test.go:%d", line+lines[i])
				if source == ShortSource && got != want || !strings.HasSuffix(got, "/"+want) && source == LongSource {
					t.Errorf("call %d: %q, want %s", i, got, want)
				}
			}
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	l, events := NewTest(&Options{Sample: map[slog.Level]Sampling{slog.LevelDebug: {First: 1}}})
	l.SetLevel(slog.LevelDebug)
	var wg sync.WaitGroup
	const each = 200
	for g := range 8 {
		wg.Go(func() {
			m := l.With(slog.Int("g", g)).WithGroup("in")
			for i := range each {
				m.Info("m", slog.Int("i", i))
				m.Debug("d")
				if err := m.Post("t", map[string]int{"i": i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := events.Len(); n < 8*2*each {
		t.Errorf("%d events", n)
	}
	for _, e := range events.All() {
		if e.Record["g"] == nil {
			t.Fatalf("%v", e.Record)
		}
	}
}

func TestNanos(t *testing.T) {
	for _, tt := range []struct {
		t    time.Time
		want int64
	}{
		{time.Time{}, 0},
		{time.Unix(0, 0), 1},
		{time.Unix(-5, 0), 1},
		{time.Unix(1, 2), 1e9 + 2},
		{time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), math.MaxUint32*1e9 + 999_999_999},
		{time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC), math.MaxUint32*1e9 + 999_999_999},
	} {
		if got := nanos(tt.t); got != tt.want {
			t.Errorf("%v is %d, want %d", tt.t, got, tt.want)
		}
	}
}

// TestDeepGroups: however many groups are opened, a receiver can read the record.
func TestDeepGroups(t *testing.T) {
	l, events := NewTest(nil)
	type nested []any
	deep := nested{1}
	for range 200 {
		deep = nested{deep}
	}
	for range 100 {
		l = l.WithGroup("g")
	}
	l.Info("m", slog.Any("deep", deep))
	if got := text(t, events); strings.Count(got, `"g":{`) != maxGroups || !strings.Contains(got, "!DEPTH") {
		t.Error(got)
	}
}

// TestContextAttrsOwnSlice has an extractor that does not append, but returns what it keeps: nobody
// changes that.
func TestContextAttrsOwnSlice(t *testing.T) {
	own := make([]slog.Attr, 1, 8)
	own[0] = slog.String("trace", "1")
	l, events := NewTest(&Options{ContextAttrs: func(_ context.Context, attrs []slog.Attr) []slog.Attr {
		if len(attrs) > 0 {
			t.Errorf("%v", attrs)
		}
		return own
	}})
	l.Info("a")
	l.Info("b")
	expect(t, events, `{"level":"INFO","msg":"a","trace":"1"}`, `{"level":"INFO","msg":"b","trace":"1"}`)
}

// A matryoshka panics with itself whenever it is looked at, which package fmt gives up on.
type matryoshka struct{}

func (m matryoshka) String() string       { panic(m) }
func (m matryoshka) LogValue() slog.Value { panic(m) }

func TestNestedPanics(t *testing.T) {
	for name, o := range map[string]*Options{
		"plain":        nil,
		"ReplaceAttr":  {ReplaceAttr: func([]string, slog.Attr) slog.Attr { panic(matryoshka{}) }},
		"ContextAttrs": {ContextAttrs: func(context.Context, []slog.Attr) []slog.Attr { panic(matryoshka{}) }},
	} {
		l, events := NewTest(o)
		l.Info("m", slog.Any("k", matryoshka{}))
		l.With(slog.Any("k", matryoshka{})).Info("m", slog.Group("g", slog.Any("k", matryoshka{})))
		if err := l.Post("t", map[string]any{"k": matryoshka{}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, e := range events.All() {
			if !strings.Contains(string(e.Raw), "!PANIC") {
				t.Errorf("%s: %v", name, e.Record)
			}
		}
		if events.Len() != 3 {
			t.Errorf("%s: %d events", name, events.Len())
		}
	}
}

// TestDefaultFieldsGiveWay: a field of With, of the context or of a call takes the place of a
// default field of its name; level, message and fields of groups do not.
func TestDefaultFieldsGiveWay(t *testing.T) {
	o := &Options{Service: "s", Attrs: []slog.Attr{
		slog.String("zone", "a"), slog.Int("msg", 0),
		slog.Group("g", slog.Int("x", 1)),
	}}
	l, events := NewTest(o)
	l.Info("m", slog.Int("n", 1))
	l.Info("m", slog.Int("n", 1), slog.String("zone", "b"))
	l.Info("m", slog.Group("", slog.String("service", "b"), slog.Int("g", 2)))
	l.With(slog.String("zone", "w"), slog.Int("n", 1)).Info("m", slog.Int("n", 2), slog.String("zone", "b"))
	l.WithGroup("g").Info("m", slog.String("zone", "b"))
	l.WithGroup("h").With(slog.String("zone", "c")).Info("m", slog.String("service", "b"))
	slog.New(l.Handler()).Info("m", "zone", "h")
	if err := l.Post("t", map[string]any{"zone": "p"}); err != nil {
		t.Fatal(err)
	}
	expect(t, events,
		`{"level":"INFO","msg":"m","service":"s","zone":"a","g":{"x":1},"n":1}`,
		`{"level":"INFO","msg":"m","service":"s","g":{"x":1},"n":1,"zone":"b"}`,
		`{"level":"INFO","msg":"m","zone":"a","service":"b","g":2}`,
		`{"level":"INFO","msg":"m","service":"s","g":{"x":1},"zone":"w","n":1,"n":2,"zone":"b"}`,
		`{"level":"INFO","msg":"m","service":"s","zone":"a","g":{"zone":"b"}}`,
		`{"level":"INFO","msg":"m","service":"s","zone":"a","g":{"x":1},"h":{"zone":"c","service":"b"}}`,
		`{"level":"INFO","msg":"m","service":"s","g":{"x":1},"zone":"h"}`,
		`{"service":"s","msg":0,"g":{"x":1},"zone":"p"}`,
	)
	o.ContextAttrs = func(_ context.Context, attrs []slog.Attr) []slog.Attr {
		return append(attrs,
			slog.String("zone", "c"))
	}
	l, events = NewTest(o)
	l.Info("m")
	expect(t, events, `{"level":"INFO","msg":"m","zone":"c","service":"s","g":{"x":1}}`)
}

// TestSummaryFields: default fields give way to those of the event that tells what was dropped.
func TestSummaryFields(t *testing.T) {
	fields := []slog.Attr{slog.Int("dropped", 1), slog.String("msg", "d"), slog.Int("n", 2)}
	l, _ := NewTest(&Options{Tag: "t", Attrs: fields})
	b := l.c.summary(nil, mover.Missed{mover.Sampled: 9})
	got, _, err := msgpack.AppendJSON(nil, b[len(window.AppendPayload(nil, "t")):], nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"level":"WARN","msg":"events dropped","n":2,"dropped":{"sampled":9}}`; string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLastWins(t *testing.T) {
	l, events := NewTest(&Options{LastWins: true, Attrs: []slog.Attr{slog.Int("n", 0)}})
	l.With(slog.Int("n", 1)).WithGroup("g").Info("m", slog.Int("n", 2), slog.Int("n", 3))
	l.With(slog.Int("n", 1)).Info("m", slog.Int("n", 2), slog.String("msg", "x"))
	if err := l.Post("t", []slog.Attr{slog.Int("n", 4), slog.Int("n", 5)}); err != nil {
		t.Fatal(err)
	}
	expect(t, events,
		`{"level":"INFO","msg":"m","n":1,"g":{"n":3}}`,
		`{"level":"INFO","n":2,"msg":"x"}`,
		`{"n":5}`,
	)
}
