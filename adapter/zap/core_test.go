// SPDX-License-Identifier: Apache-2.0

package spillwayzap

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
	"github.com/spillwaylog/spillway/internal/needs"
)

// theirs is zap's JSON with the names that a record has here.
var theirs = zapcore.EncoderConfig{
	MessageKey: "msg", LevelKey: "level", TimeKey: "time", NameKey: "logger", CallerKey: "source",
	StacktraceKey: "stacktrace",
	EncodeLevel: func(l zapcore.Level, e zapcore.PrimitiveArrayEncoder) {
		e.AppendString(map[zapcore.Level]string{
			-2: "TRACE", -1: "DEBUG", 0: "INFO", 1: "WARN", 2: "ERROR",
			3: "ERROR+1", 4: "ERROR+2", 5: "FATAL",
		}[l])
	},
	EncodeTime:     zapcore.RFC3339NanoTimeEncoder,
	EncodeDuration: zapcore.NanosDurationEncoder,
	EncodeCaller:   zapcore.FullCallerEncoder,
}

// TestCoreAsJSON compares random entries with zap's JSON of them.
func TestCoreAsJSON(t *testing.T) {
	t.Parallel()
	r := alike.Random(t)
	log, events := spillway.NewTest(&spillway.Options{Level: spillway.LevelTrace, Source: spillway.LongSource})
	var lines zaptest.Buffer
	for range needs.Rounds(t, "SPILLWAY_CALLS", 2000, 10_000) {
		cores := []zapcore.Core{
			NewCore(log),
			zapcore.NewCore(zapcore.NewJSONEncoder(theirs), &lines, zapcore.DebugLevel-1),
		}
		entry := zapcore.Entry{
			Level: zapcore.Level(r.IntN(8) - 2), Time: time.Unix(1+r.Int64N(1<<32-1), r.Int64N(1e9)),
			Message: alike.Text(r),
		}
		if r.IntN(3) == 0 {
			entry.LoggerName = "a." + alike.Text(r)
		}
		if r.IntN(3) == 0 {
			entry.Caller = zapcore.EntryCaller{Defined: true, File: "/a/b.go", Line: r.IntN(100)}
		}
		if r.IntN(3) == 0 {
			entry.Stack = alike.Text(r)
		}
		for range r.IntN(3) {
			with := randomFields(r, 0)
			for i := range cores {
				sibling := cores[i].With(randomFields(r, 2)) // must change nothing
				cores[i] = cores[i].With(with)
				sibling.With(with)
			}
		}
		fields := randomFields(r, 0)
		for _, core := range cores {
			if ce := core.Check(entry, nil); ce != nil {
				ce.Write(fields...)
			}
		}
		event := events.All()[0]
		events.Reset()
		want := alike.Line(t, []byte(lines.Stripped()))
		lines.Reset()
		if when, ok := want["time"].(string); ok && !event.Time.Equal(entry.Time) {
			t.Fatalf("time %v, want %s", event.Time, when)
		}
		delete(want, "time")
		alike.Check(t, alike.Record(t, event.Raw), want, entry, fields)
	}
}

func TestCore(t *testing.T) {
	t.Parallel()
	log, events := spillway.NewTest(nil)
	l := zap.New(NewCore(log), zap.AddCaller(), zap.AddStacktrace(zap.ErrorLevel)).Named("shop").With(zap.Int("a", 1),
		zap.Namespace("in"))
	_, _, here, _ := runtime.Caller(0)
	l.Info("m", zap.Binary("bin", []byte{0xff}), zap.Float64("nan", math.NaN()), zap.Error(io.EOF))
	l.Debug("below")
	l.Sugar().Errorw("e", "k", []byte(nil))
	all := events.All()
	if len(all) != 2 {
		t.Fatalf("%d events", len(all))
	}
	in, _ := all[0].Record["in"].(map[string]any)
	if nan, _ := in["nan"].(float64); !math.IsNaN(nan) {
		t.Errorf("nan: %v", in["nan"])
	}
	delete(in, "nan")
	want := map[string]any{
		"level": "INFO", "msg": "m", "logger": "shop", "source": fmt.Sprint("core_test.go:", here+1), "a": int64(1),
		"in": map[string]any{"bin": []byte{0xff}, "error": "EOF"},
	}
	if !reflect.DeepEqual(all[0].Record, want) {
		t.Errorf("got %v, want %v", all[0].Record, want)
	}
	if s, _ := all[1].Record["stacktrace"].(string); !strings.Contains(s, "TestCore") {
		t.Errorf("stack %q", s)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		least slog.Level
		want  zapcore.Level
	}{
		{spillway.LevelTrace, zap.DebugLevel},
		{slog.LevelDebug, zap.DebugLevel},
		{slog.LevelInfo, zap.InfoLevel},
		{slog.LevelInfo + 1, zap.WarnLevel},
		{slog.LevelError, zap.ErrorLevel},
		{slog.LevelError + 1, zap.DPanicLevel},
		{spillway.LevelFatal, zap.FatalLevel},
		{spillway.LevelFatal + 1, zapcore.InvalidLevel},
	} {
		log, _ := spillway.NewTest(&spillway.Options{Level: c.least})
		core := NewCore(log)
		if got := zapcore.LevelOf(core); got != c.want {
			t.Errorf("%v: level %v, want %v", c.least, got, c.want)
		}
		for l := zap.DebugLevel; l <= zap.FatalLevel; l++ {
			if core.Enabled(l) != (l >= c.want) {
				t.Errorf("%v: %v enabled: %v", c.least, l, core.Enabled(l))
			}
		}
	}
	if core := NewCore(spillway.Discard()); core.Enabled(zap.FatalLevel) || core.Sync() != nil {
		t.Error("the core of a logger that does nothing does something")
	}
}

// many is an object and an array with more than a count of 16 bits.
type many int

func (n many) MarshalLogArray(e zapcore.ArrayEncoder) error {
	for range n {
		e.AppendBool(true)
	}
	return nil
}

func (n many) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.OpenNamespace("inner")
	for range n {
		e.AddInt("k", 1)
	}
	return e.AddArray("a", n)
}

func TestManyElements(t *testing.T) {
	t.Parallel()
	for _, n := range []int{math.MaxUint16, math.MaxUint16 + 1} {
		log, events := spillway.NewTest(nil)
		zap.New(NewCore(log)).Info("m", zap.Namespace("outer"), zap.Object("o", many(n)), zap.Int("z", 7))
		if events.Len() != 1 {
			t.Fatalf("%d: %d events", n, events.Len())
		}
		outer, _ := events.All()[0].Record["outer"].(map[string]any)
		o, _ := outer["o"].(map[string]any)
		inner, _ := o["inner"].(map[string]any)
		if a, _ := inner["a"].([]any); len(a) != n || outer["z"] != int64(7) {
			t.Errorf("%d: %d elements, z %v", n, len(a), outer["z"])
		}
	}
}

// TestShared has goroutines share cores that have fields.
func TestShared(t *testing.T) {
	t.Parallel()
	log, events := spillway.NewTest(nil)
	l := zap.New(NewCore(log)).With(zap.Namespace("n"), zap.Int("a", 1))
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for range 200 {
				l.With(zap.Int("g", g)).Info("m", zap.Int("g2", g))
			}
		})
	}
	all.Wait()
	for _, e := range events.All() {
		n, _ := e.Record["n"].(map[string]any)
		if len(n) != 3 || n["g"] != n["g2"] {
			t.Fatalf("%v", e.Record)
		}
	}
}

// TestFatalIsDelivered has an entry on its way when zap would end the process.
func TestFatalIsDelivered(t *testing.T) {
	t.Parallel()
	log := alike.Open(t, "file://"+t.TempDir()+"/log", &spillway.Options{Shm: "none", FlushInterval: time.Hour})
	l := zap.New(NewCore(log), zap.WithFatalHook(zapcore.WriteThenPanic))
	defer func() {
		if r := recover(); r == nil || log.Stats().Delivered != 1 {
			t.Errorf("%v, %+v", r, log.Stats())
		}
	}()
	l.Fatal("last words", zap.Error(errors.New("e")))
}
