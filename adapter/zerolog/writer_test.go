// SPDX-License-Identifier: Apache-2.0

package spillwayzerolog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
	"github.com/spillwaylog/spillway/internal/needs"
)

// keys are of fields. Those that zerolog uses itself are left to it.
var keys = []string{"user", "ü", "a\"b", "<", "k1", "k2", "k3", "error", "stack", ""}

func randomFields(r *rand.Rand, e *zerolog.Event, depth int) *zerolog.Event {
	for range r.IntN(9) {
		key, n, f, text := keys[r.IntN(len(keys))], r.Uint64(), r.NormFloat64(), alike.Text(r)
		switch r.IntN(26) {
		case 0:
			e.Bool(key, n%2 == 0)
		case 1:
			e.Bytes(key, []byte(text))
		case 2:
			e.Hex(key, []byte(text))
		case 3:
			e.RawJSON(key, []byte(`{"a": [1, "\u00e9", null] , "b":-0.5e3}`))
		case 4:
			e.Dur(key, time.Duration(n))
		case 5:
			e.Float64(key, f*math.Pow(10, float64(r.IntN(60)-30)))
		case 6:
			e.Float32(key, float32(f))
		case 7:
			e.Int(key, int(n))
		case 8:
			e.Int64(key, int64(n))
		case 9:
			e.Int8(key, int8(n))
		case 10:
			e.Uint64(key, n)
		case 11:
			e.Uint16(key, uint16(n))
		case 12:
			e.Time(key, time.Unix(int64(n>>31), 0))
		case 13:
			e.Err(errors.New(text))
		case 14:
			e.Errs(key, []error{errors.New(text), nil})
		case 15:
			e.Strs(key, []string{text, ""})
		case 16:
			e.Ints(key, []int{int(n), 0, -1})
		case 17:
			e.Interface(key, map[string]any{"a": text, "b": []any{f, nil}})
		case 18:
			e.IPAddr(key, net.IPv4(1, 2, 3, byte(n)))
		case 19:
			e.Stringer(key, time.Duration(n))
		case 20:
			e.Floats64(key, []float64{f, math.NaN(), math.Inf(1)})
		case 21:
			if depth < 3 {
				e.Dict(key, randomFields(r, zerolog.Dict(), depth+1))
			}
		case 22:
			e.Array(key, zerolog.Arr().Str(text).Int(int(n)).Dict(zerolog.Dict().Str(key, text)))
		case 23:
			e.Fields(map[string]any{"f" + key: text})
		default:
			e.Str(key, text)
		}
	}
	return e
}

var levels = map[zerolog.Level]string{
	zerolog.TraceLevel: "TRACE", zerolog.DebugLevel: "DEBUG", zerolog.InfoLevel: "INFO", zerolog.WarnLevel: "WARN",
	zerolog.ErrorLevel: "ERROR",
	zerolog.FatalLevel: "FATAL", zerolog.PanicLevel: "ERROR+2", zerolog.NoLevel: "INFO",
}

// TestWriterAsJSON compares random events with the JSON that zerolog writes of them.
func TestWriterAsJSON(t *testing.T) {
	t.Parallel()
	r := alike.Random(t)
	log, events := spillway.NewTest(&spillway.Options{Level: spillway.LevelTrace, Source: spillway.LongSource})
	var lines bytes.Buffer
	l := zerolog.New(zerolog.MultiLevelWriter(&lines, NewWriter(log))).Level(zerolog.TraceLevel)
	for range needs.Rounds(t, "SPILLWAY_CALLS", 2000, 10_000) {
		level := zerolog.Level(r.IntN(8) - 1)
		own := l
		if r.IntN(2) == 0 {
			own = l.With().Str("w", alike.Text(r)).Dict("d", zerolog.Dict().Int("n", 1)).Logger()
		}
		e := randomFields(r, own.WithLevel(level), 0)
		when := time.Unix(1+r.Int64N(1<<32-1), 0)
		if r.IntN(2) == 0 {
			e.Time(zerolog.TimestampFieldName, when)
		}
		line := r.IntN(100)
		placed := r.IntN(3) == 0
		if placed {
			e.Str(zerolog.CallerFieldName, fmt.Sprint("/a/ü.go:", line))
		}
		e.Msg(alike.Text(r))

		event := events.All()[0]
		events.Reset()
		want := alike.Line(t, lines.Bytes())
		if _, ok := want["time"]; ok && !event.Time.Equal(when) {
			t.Fatalf("time %v, want %v", event.Time, when)
		}
		delete(want, "time")
		want["level"] = levels[level]
		if _, ok := want["msg"]; !ok {
			want["msg"] = ""
		}
		if text, ok := want["message"]; ok {
			want["msg"] = text
			delete(want, "message")
		}
		if placed {
			want["source"] = fmt.Sprint("/a/ü.go:", line)
			delete(want, "caller")
		}
		alike.Check(t, alike.Record(t, event.Raw), want, lines.String())
		lines.Reset()
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	log, events := spillway.NewTest(nil)
	l := zerolog.New(NewWriter(log)).With().Timestamp().Caller().Logger()
	_, _, here, _ := runtime.Caller(0)
	l.Warn().Err(io.EOF).Dict("d", zerolog.Dict().Str("a", "b")).Msg("m")
	l.Debug().Msg("below")
	l.Log().Send()
	func() {
		defer func() { _ = recover() }()
		l.Panic().Msg("p")
	}()
	var got []string
	for _, e := range events.All() {
		if time.Since(e.Time).Abs() > time.Hour {
			t.Errorf("time %v", e.Time)
		}
		got = append(got, fmt.Sprint(e.Record["level"], " ", e.Record["msg"], " ", e.Record["source"], " ",
			e.Record["error"], " ", e.Record["d"]))
	}
	want := []string{
		fmt.Sprintf("WARN m writer_test.go:%d EOF map[a:b]", here+1),
		fmt.Sprintf("INFO  writer_test.go:%d <nil> <nil>", here+3),
		fmt.Sprintf("ERROR+2 p writer_test.go:%d <nil> <nil>", here+6),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestWriterLines has lines that zerolog writes only if it is asked to.
func TestWriterLines(t *testing.T) {
	t.Parallel()
	log, events := spillway.NewTest(nil)
	w := NewWriter(log)
	deep := `{"a":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + "}" // one level more than a record may have
	for line, want := range map[string]string{
		`{"a":1}`:   `map[a:1 level:INFO msg:]`,
		`{}` + "\n": `map[level:INFO msg:]`,
		``:          `map[level:INFO msg:]`,
		`{"level":"warn","message":7,"time":"x"}`: `map[level:warn message:7 msg: time:x]`,
		`{"time":true,"caller":"x"}`:              `map[caller:x level:INFO msg: time:true]`,
		`{"caller":"x:y","message":"m"}`:          `map[caller:x:y level:INFO msg:m]`,
		`{"a":{}`:                                 `map[level:INFO msg:{"a":{}]`,
		`{"a":nope}` + "\n":                       `map[level:INFO msg:{"a":nope}]`,
		`{"a":1}{}`:                               `map[level:INFO msg:{"a":1}{}]`,
		`{"a":1,}`:                                `map[level:INFO msg:{"a":1,}]`,
		`{"message":"m"`:                          `map[level:INFO msg:{"message":"m"]`,
		deep:                                      `map[level:INFO msg:` + deep + `]`,
		"a text":                                  `map[level:INFO msg:a text]`,
	} {
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%s: %d, %v", line, n, err)
		}
		if got := fmt.Sprint(events.All()[0].Record); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
		events.Reset()
	}
}

// TestTimeFormats has those that are numbers.
func TestTimeFormats(t *testing.T) {
	t.Parallel()
	when := time.Unix(1_700_000_000, 123_456_789)
	for format, precision := range map[string]time.Duration{
		zerolog.TimeFormatUnix: time.Second, zerolog.TimeFormatUnixMs: time.Millisecond,
		zerolog.TimeFormatUnixMicro: time.Microsecond,
		zerolog.TimeFormatUnixNano:  1, time.RFC3339: time.Second, time.RFC3339Nano: 1,
	} {
		log, events := spillway.NewTest(nil)
		w := NewWriter(log)
		w.format = format
		text := fmt.Sprint(when.UnixNano() / int64(precision))
		if strings.Contains(format, "T") && !strings.HasPrefix(format, "UNIX") {
			text = `"` + when.Format(format) + `"`
		}
		_, _ = w.WriteLevel(zerolog.InfoLevel, []byte(`{"level":"info","time":`+text+`}`+"\n"))
		if got := events.All()[0].Time; !got.Equal(when.Truncate(precision)) {
			t.Errorf("%q: %v", format, got)
		}
	}
}

// TestFatalIsDelivered has an event on its way when zerolog would end the process.
func TestFatalIsDelivered(t *testing.T) {
	t.Parallel()
	log := alike.Open(t, "file://"+t.TempDir()+"/log", &spillway.Options{Shm: "none", FlushInterval: time.Hour})
	l := zerolog.New(NewWriter(log))
	l.WithLevel(zerolog.FatalLevel).Msg("last words")
	if s := log.Stats(); s.Delivered != 1 {
		t.Errorf("%+v", s)
	}
	l.Info().Msg("one more")
	if err := NewWriter(log).Close(); err != nil || log.Stats().Delivered != 2 {
		t.Errorf("%v, %+v", err, log.Stats())
	}
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte(`{"level":"info","a":[1,{"b":null}],"time":"2026-01-02T03:04:05Z","caller":"x.go:1","message":"m"}`))
	f.Add([]byte(`{"level":"info","message":`))
	f.Fuzz(func(t *testing.T, line []byte) {
		log, events := spillway.NewTest(nil)
		if n, err := NewWriter(log).WriteLevel(zerolog.InfoLevel, line); n != len(line) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if events.Len() != 1 {
			t.Fatalf("%d events", events.Len())
		}
		alike.Record(t, events.All()[0].Raw)
	})
}
