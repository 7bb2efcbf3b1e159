// SPDX-License-Identifier: Apache-2.0

package spillwaylogr

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
	"github.com/spillwaylog/spillway/internal/needs"
)

// secret is written as what its method returns.
type secret struct{ Text string }

func (s secret) MarshalLog() any { return map[string]any{"hidden": len(s.Text)} }

type panics struct{}

func (*panics) MarshalLog() any { panic("no") }

type point struct {
	X    int            `json:"x"`
	Name string         `json:"name,omitempty"`
	Map  map[string]int `json:"map"`
}

// text leaves out what funcr writes as no JSON.
func text(r *rand.Rand) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' || c == 0x7f || c == 0xfffd {
			return -1
		}
		return c
	}, alike.Text(r))
}

func randomValue(r *rand.Rand) any {
	switch n := r.Uint64(); r.IntN(16) {
	case 0:
		return nil
	case 1:
		return n%2 == 0
	case 2:
		return int(n)
	case 3:
		return int8(n)
	case 4:
		return int64(n)
	case 5:
		return n
	case 6:
		return uint16(n)
	case 7:
		return r.NormFloat64()
	case 8:
		return errors.New(text(r))
	case 9:
		return []string{text(r), ""}
	case 10:
		return map[string]any{"a": text(r), "b": []any{1, nil}}
	case 11:
		return point{int(n >> 1), text(r), map[string]int{"m": 1}}
	case 12:
		return &point{Name: "p", Map: map[string]int{}}
	case 13:
		return secret{text(r)}
	}
	return text(r)
}

func randomPairs(r *rand.Rand, prefix string) (kv []any) {
	for i := range r.IntN(6) {
		kv = append(kv, fmt.Sprint(prefix, i), randomValue(r))
	}
	switch r.IntN(10) {
	case 0:
		kv = append(kv, 12345, "value")
	case 1:
		kv = append(kv, prefix+"odd")
	}
	return kv
}

// TestSinkAsJSON compares random calls with the JSON that package funcr writes of them.
func TestSinkAsJSON(t *testing.T) {
	t.Parallel()
	r := alike.Random(t)
	log, events := spillway.NewTest(&spillway.Options{Level: spillway.LevelTrace - 2})
	var line string
	theirs := funcr.NewJSON(func(obj string) { line = obj }, funcr.Options{Verbosity: 10})
	ours := logr.New(NewSink(log))
	for range needs.Rounds(t, "SPILLWAY_CALLS", 2000, 10_000) {
		both := []logr.Logger{theirs, ours}
		if r.IntN(2) == 0 {
			name, kv := text(r), randomPairs(r, "w")
			for i := range both {
				both[i] = both[i].WithName("n" + name).WithName("m").WithValues(kv...)
			}
		}
		v, isError, msg, kv := r.IntN(11), r.IntN(4) == 0, text(r), randomPairs(r, "k")
		var err error
		if r.IntN(5) > 0 {
			err = errors.New(msg)
		}
		for _, l := range both {
			if isError {
				l.Error(err, msg, kv...)
			} else {
				l.V(v).Info(msg, kv...)
			}
		}
		want := alike.Line(t, []byte(line))
		want["level"] = "ERROR"
		if !isError {
			d := -v + 8 // above TRACE
			want["level"] = []string{"TRACE", "DEBUG", "INFO"}[max(d, 0)/4]
			if d < 0 {
				want["level"] = fmt.Sprint("TRACE", d)
			} else if d%4 > 0 {
				want["level"] = fmt.Sprint(want["level"], "+", d%4)
			}
		}
		if want["error"] == nil {
			delete(want, "error")
		}
		if want["logger"] == "" {
			delete(want, "logger")
		}
		event := events.All()[0]
		events.Reset()
		alike.Check(t, alike.Record(t, event.Raw), want, line)
	}
}

func helper(l logr.Logger) { l.WithCallDepth(1).Info("from a helper") }

func TestSink(t *testing.T) {
	t.Parallel()
	log, events := spillway.NewTest(&spillway.Options{Source: spillway.ShortSource})
	l := logr.New(NewSink(log)).WithName("a").WithName("b")
	_, _, here, _ := runtime.Caller(0)
	l.Info("m", "k", (*panics)(nil))
	helper(l)
	l.Error(io.EOF, "e")
	l.V(1).Info("below")
	slog.New(logr.ToSlogHandler(l)).Info("through slog", "k", 1)
	var got []string
	for _, e := range events.All() {
		got = append(got, fmt.Sprint(e.Record["level"], e.Record["msg"], e.Record["source"], e.Record["logger"],
			e.Record["error"], e.Record["k"]))
	}
	want := []string{
		fmt.Sprint("INFO", "m", fmt.Sprint("sink_test.go:", here+1), "a/b", nil, "!PANIC: no"),
		fmt.Sprint("INFO", "from a helper", fmt.Sprint("sink_test.go:", here+2), "a/b", nil, nil),
		fmt.Sprint("ERROR", "e", fmt.Sprint("sink_test.go:", here+3), "a/b", "EOF", nil),
		fmt.Sprint("INFO", "through slog", fmt.Sprint("sink_test.go:", here+5), "a/b", nil, int64(1)),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if l := logr.New(NewSink(spillway.Discard())); l.Enabled() {
		t.Error("a logger that does nothing is enabled")
	}
}

// TestSlog holds the sink, behind logr's own handler, to what slog asks of handlers.
func TestSlog(t *testing.T) {
	var events *spillway.TestEvents
	slogtest.Run(t, func(*testing.T) slog.Handler {
		var log *spillway.Logger
		log, events = spillway.NewTest(nil)
		return logr.ToSlogHandler(logr.New(NewSink(log)))
	}, func(*testing.T) map[string]any {
		e := events.All()[0]
		if !e.Time.IsZero() && e.Time.Unix() != 0 {
			e.Record["time"] = e.Time
		}
		return e.Record
	})
}
