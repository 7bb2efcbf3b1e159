// SPDX-License-Identifier: Apache-2.0

package spillwaylogrus

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
	"github.com/spillwaylog/spillway/internal/needs"
)

func redirected(o *spillway.Options) (*logrus.Logger, *spillway.TestEvents) {
	log, events := spillway.NewTest(o)
	l := logrus.New()
	l.SetLevel(logrus.TraceLevel)
	Redirect(l, log)
	return l, events
}

// TestHookAsFormatter compares what the hook logs with what logrus's own formatter writes.
func TestHookAsFormatter(t *testing.T) {
	t.Parallel()
	r := alike.Random(t)
	l, events := redirected(&spillway.Options{Level: spillway.LevelTrace, Source: spillway.LongSource})
	theirs := &logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano}
	var line []byte
	l.AddHook(hookFunc(func(e *logrus.Entry) (err error) {
		line, err = theirs.Format(e)
		return err
	}))
	levels := map[logrus.Level]string{
		logrus.TraceLevel: "TRACE", logrus.DebugLevel: "DEBUG", logrus.InfoLevel: "INFO", logrus.WarnLevel: "WARN",
		logrus.ErrorLevel: "ERROR", logrus.FatalLevel: "FATAL", logrus.PanicLevel: "ERROR+2",
	}
	for range needs.Rounds(t, "SPILLWAY_CALLS", 2000, 10_000) {
		level := logrus.Level(r.IntN(7))
		entry := l.WithFields(randomData(r)).WithTime(time.Unix(1+r.Int64N(1<<32-1), r.Int64N(1e9)))
		delete(entry.Data, "func") // the names of callers and errors are the library's own: only it may use them here
		delete(entry.Data, "file")
		delete(entry.Data, "time")
		delete(entry.Data, "logrus_error")
		for key, value := range entry.Data {
			if x, ok := value.(float32); ok { // to slog it is a float64
				entry.Data[key] = float64(x)
			}
		}
		if r.IntN(5) == 0 {
			entry.Caller = &runtime.Frame{Function: "pack.Func", File: "/a/b.go", Line: r.IntN(1000)}
		}
		entry.Log(level, alike.Text(r))
		event := events.All()[0]
		events.Reset()
		want := alike.Line(t, line)
		if when, err := time.Parse(time.RFC3339Nano, want["time"].(string)); err != nil || !when.Equal(event.Time) {
			t.Fatalf("time %v, want %v", event.Time, want["time"])
		}
		delete(want, "time")
		want["level"] = levels[level]
		if file, ok := want["file"]; ok {
			want["source"] = file
			delete(want, "file")
		}
		alike.Check(t, alike.Record(t, event.Raw), want, entry.Data)
	}
}

func TestHook(t *testing.T) {
	t.Parallel()
	type key struct{}
	l, events := redirected(&spillway.Options{ContextAttrs: func(ctx context.Context, attrs []slog.Attr) []slog.Attr {
		if id := ctx.Value(key{}); id != nil {
			attrs = append(attrs, slog.Any("trace", id))
		}
		return attrs
	}})
	l.SetReportCaller(true)
	traced := context.WithValue(context.Background(), key{}, "t7")
	_, _, here, _ := runtime.Caller(0)
	l.WithContext(traced).WithError(io.EOF).WithField("level", 3).Warn("m")
	l.Debug("below the level of the logger that it goes to")
	func() {
		defer func() { _ = recover() }()
		l.Panic("p")
	}()
	all := events.All()
	if len(all) != 2 {
		t.Fatalf("%d events", len(all))
	}
	for key, want := range map[string]any{
		"level": "WARN", "msg": "m", "trace": "t7", "error": "EOF", "fields.level": int64(3),
		"source": fmt.Sprint("hook_test.go:", here+1),
	} {
		if got := all[0].Record[key]; got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	if f, _ := all[0].Record["func"].(string); !strings.HasSuffix(f, ".TestHook") {
		t.Errorf("func %q", f)
	}
	if got := all[1].Record["level"]; got != "ERROR+2" {
		t.Errorf("level %v", got)
	}
}

// TestFatalIsDelivered ends a logger of logrus whose event is on its way.
func TestFatalIsDelivered(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/log"
	log := alike.Open(t, "file://"+path, &spillway.Options{Shm: "none", FlushInterval: time.Hour})
	l := logrus.New()
	Redirect(l, log)
	l.ExitFunc = func(int) {
		if s := log.Stats(); s.Delivered != 1 {
			t.Errorf("at the exit: %+v", s)
		}
	}
	l.Fatal("last words")
}
