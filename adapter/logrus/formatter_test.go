// SPDX-License-Identifier: Apache-2.0

package spillwaylogrus

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/spillwaylog/spillway/internal/alike"
	"github.com/spillwaylog/spillway/internal/needs"
)

// TestFormatterAsLogrus compares random entries with what logrus's own formatter writes.
func TestFormatterAsLogrus(t *testing.T) {
	t.Parallel()
	r := alike.Random(t)
	short := func(f *runtime.Frame) (string, string) { return "f", "x.go" }
	for _, c := range []struct {
		theirs *logrus.JSONFormatter
		ours   *Formatter
	}{
		{&logrus.JSONFormatter{}, &Formatter{}},
		{
			&logrus.JSONFormatter{DisableHTMLEscape: true, TimestampFormat: time.RFC3339Nano},
			&Formatter{DisableHTMLEscape: true, TimestampFormat: time.RFC3339Nano},
		},
		{
			&logrus.JSONFormatter{DisableTimestamp: true, CallerPrettyfier: short},
			&Formatter{DisableTimestamp: true, CallerPrettyfier: short},
		},
		{
			&logrus.JSONFormatter{DataKey: "data", TimestampFormat: time.StampMicro},
			&Formatter{DataKey: "data", TimestampFormat: time.StampMicro},
		},
		{
			&logrus.JSONFormatter{FieldMap: logrus.FieldMap{
				logrus.FieldKeyTime: "@t", logrus.FieldKeyMsg: "user",
				logrus.FieldKeyFile: "k1", logrus.FieldKeyLogrusError: "k2",
			}},
			&Formatter{FieldMap: logrus.FieldMap{
				logrus.FieldKeyTime: "@t", logrus.FieldKeyMsg: "user",
				logrus.FieldKeyFile: "k1", logrus.FieldKeyLogrusError: "k2",
			}},
		},
	} {
		var line []byte
		l := logrus.New()
		l.SetOutput(io.Discard)
		l.SetLevel(logrus.TraceLevel)
		l.SetFormatter(formatterFunc(func(e *logrus.Entry) ([]byte, error) {
			if r.IntN(2) == 0 {
				e.Buffer = nil
			}
			out, err := c.ours.Format(e)
			line = bytes.Clone(out)
			return out, err
		}))
		l.AddHook(hookFunc(func(e *logrus.Entry) error {
			if r.IntN(5) == 0 {
				e.Caller = &runtime.Frame{Function: "pack.Func", File: "/a/b.go", Line: r.IntN(1000)}
			}
			return nil
		}))
		both := bytes.Buffer{}
		l.AddHook(hookFunc(func(e *logrus.Entry) error {
			out, err := c.theirs.Format(e)
			both.Reset()
			both.Write(out)
			return err
		}))
		for range needs.Rounds(t, "SPILLWAY_CALLS", 400, 2000) {
			data := randomData(r)
			l.WithFields(data).WithTime(time.Unix(r.Int64N(1<<33), r.Int64N(1e9))).Log(logrus.Level(r.IntN(7)),
				alike.Text(r))
			alike.Check(t, alike.Line(t, line), alike.Line(t, both.Bytes()), data)
		}
	}
}

type formatterFunc func(*logrus.Entry) ([]byte, error)

func (f formatterFunc) Format(e *logrus.Entry) ([]byte, error) { return f(e) }

type hookFunc func(*logrus.Entry) error

func (hookFunc) Levels() []logrus.Level       { return logrus.AllLevels }
func (f hookFunc) Fire(e *logrus.Entry) error { return f(e) }

type panics struct{}

func (*panics) Error() string { panic("no") }

func TestFormatterSchema(t *testing.T) {
	t.Parallel()
	when := time.Date(2018, 3, 27, 18, 35, 0, 0, time.FixedZone("", 8*3600))
	entry := func(data logrus.Fields) *logrus.Entry {
		return &logrus.Entry{Time: when, Level: logrus.InfoLevel, Message: "m", Data: data}
	}
	everything := []Field{
		Level("severity"), Data("id", "task_id"), Const("v", map[string]int{"major": 1}), Time(""),
		Message(""),
	}
	for _, c := range []struct {
		name  string
		f     *Formatter
		entry *logrus.Entry
		want  string
	}{
		{
			"article", NewServiceFormatter("shop"), entry(logrus.Fields{"task_id": "t1", "dropped": 1}),
			`{"service":"shop","msg":"m","task_id":"t1","log_date":"2018-03-27T18:35:00+08:00"}`,
		},
		{
			"article without task", NewServiceFormatter("shop"), &logrus.Entry{Time: when.UTC()},
			`{"service":"shop","msg":"","task_id":"","log_date":"2018-03-27T10:35:00+00:00"}`,
		},
		{
			"article, task that is no string", NewServiceFormatter(`"`), entry(logrus.Fields{"task_id": 7}),
			`{"service":"\"","msg":"m","task_id":7,"log_date":"2018-03-27T18:35:00+08:00"}`,
		},
		{
			"order", &Formatter{Schema: everything}, entry(logrus.Fields{"task_id": 7, "b": true, "a": nil}),
			`{"severity":"info","id":7,"v":{"major":1},"time":"2018-03-27T18:35:00+08:00","msg":"m","a":null,"b":true}`,
		},
		{
			"missing, clash", &Formatter{Schema: everything}, entry(logrus.Fields{"severity": 1, "fields.severity": 2}),
			`{"severity":"info","v":{"major":1},"time":"2018-03-27T18:35:00+08:00","msg":"m","fields.severity":`,
		},
		{
			"no time, data key", &Formatter{Schema: everything, DisableTimestamp: true, DataKey: "d"},
			entry(logrus.Fields{"msg": 1, "x": 2}),
			`{"severity":"info","v":{"major":1},"msg":"m","d":{"msg":1,"x":2}}`,
		},
		{"dropped", &Formatter{Schema: []Field{}, DropRest: true}, entry(logrus.Fields{"x": 1}), `{}`},
		{"nothing but the rest", &Formatter{Schema: []Field{}}, entry(logrus.Fields{"x": 1}), `{"x":1}`},
		{
			"what cannot be written", &Formatter{Schema: []Field{Message("")}},
			entry(logrus.Fields{
				"chan": make(chan int), "nan": math.NaN(), "panic": (*panics)(nil),
				"z": []any{errors.New("e")},
			}),
			`{"msg":"m","chan":"!ERROR: json: unsupported type: chan int","nan":"!ERROR: json: unsupported value: NaN","panic":"!PANIC: no","z":[{}]}`,
		},
		{
			"caller", &Formatter{Schema: []Field{Message("")}, DropRest: true},
			&logrus.Entry{Caller: &runtime.Frame{Function: "f", File: "x.go", Line: 3}},
			`{"msg":"","func":"f","file":"x.go:3"}`,
		},
	} {
		line, err := c.f.Format(c.entry)
		if err != nil || !bytes.HasPrefix(line, []byte(c.want)) || !json.Valid(line) ||
			bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%s: %v\n%swant\n%s", c.name, err, line, c.want)
		}
	}
}

// TestFormatterShared has many goroutines begin with one formatter.
func TestFormatterShared(t *testing.T) {
	t.Parallel()
	f := NewServiceFormatter("s")
	e := &logrus.Entry{Message: "m", Time: time.Unix(0, 0)}
	want, err := NewServiceFormatter("s").Format(e)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got, err := f.Format(e); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}
