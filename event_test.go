// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

func TestLogEvent(t *testing.T) {
	fields := msgpack.AppendUint(msgpack.AppendString(msgpack.AppendMapHeader(nil, 1), "f"), 1)
	when := time.Date(2020, 1, 2, 3, 4, 5, 6, time.UTC)
	l, events := NewTest(&Options{Service: "s"})
	log := func(ev Event) {
		t.Helper()
		if err := l.LogEvent(context.Background(), &ev); err != nil {
			t.Error(err)
		}
	}
	log(Event{Time: when, Level: slog.LevelInfo, Message: "m", Attrs: []slog.Attr{slog.Int("a", 1)}, Fields: fields})
	if got := events.All()[0].Time; !got.Equal(when) {
		t.Errorf("time %v, want %v", got, when)
	}
	log(Event{Level: slog.LevelInfo + 1, Message: "place", File: "/x/y.go", Line: 7})
	if got := events.All()[1].Time; time.Since(got).Abs() > time.Hour {
		t.Errorf("time %v, want now", got)
	}
	log(Event{Level: slog.LevelDebug, Message: "below"})
	log(Event{Message: "gives way", Attrs: []slog.Attr{slog.String("service", "x")}})
	l = l.With(slog.Int("w", 1)).WithGroup("g")
	log(Event{Message: "group", Fields: fields})
	log(Event{Message: "nothing", Fields: []byte{0x80}})
	log(Event{Message: "no", Text: []byte("text")})
	log(Event{Message: "no", Text: []byte{}})
	expect(
		t, events,
		`{"level":"INFO","msg":"m","service":"s","a":1,"f":1}`,
		`{"level":"INFO+1","msg":"place","source":"y.go:7","service":"s"}`,
		`{"level":"INFO","msg":"gives way","service":"x"}`,
		`{"level":"INFO","msg":"group","service":"s","w":1,"g":{"f":1}}`,
		`{"level":"INFO","msg":"nothing","service":"s","w":1}`,
		`{"level":"INFO","msg":"text","service":"s","w":1}`,
		`{"level":"INFO","msg":"","service":"s","w":1}`,
	)
	for _, bad := range []string{"\xc1", "\x81", "\x80\x80", "\x90", "\x81\xa1a"} {
		if err := l.LogEvent(nil, &Event{Fields: []byte(bad)}); !errors.Is(err, ErrNotRecord) { //nolint:staticcheck // nil is survived
			t.Errorf("fields %x: %v", bad, err)
		}
	}
	if err := Discard().LogEvent(context.Background(), &Event{Level: LevelFatal}); err != nil || events.Len() != 0 {
		t.Errorf("%v, %d events", err, events.Len())
	}
}

// TestLogEventOptions has what takes a detour: sources, replaced attributes, sampling.
func TestLogEventOptions(t *testing.T) {
	l, events := NewTest(&Options{Source: LongSource})
	_, file, line, _ := runtime.Caller(0)
	_ = l.LogEvent(context.Background(), &Event{Depth: 1})
	_ = l.LogEvent(context.Background(), &Event{Depth: 1, File: "/x/y.go", Line: 7})
	if got := events.All()[0].Record["source"]; got != fmt.Sprint(file, ":", line+1) {
		t.Errorf("source %v", got)
	}
	if got := events.All()[1].Record["source"]; got != "/x/y.go:7" {
		t.Errorf("source %v", got)
	}

	l, events = NewTest(&Options{
		Sample: map[slog.Level]Sampling{slog.LevelError: {First: 1}},
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.SourceKey {
				return slog.Attr{}
			}
			a.Key += "!"
			return a
		},
	})
	text := []byte("m")
	_ = l.LogEvent(context.Background(), &Event{
		Text: text, File: "/x/y.go", Line: 7,
		Attrs: []slog.Attr{slog.Int("a", 1)},
	})
	for range 3 {
		_ = l.LogEvent(context.Background(), &Event{Level: slog.LevelError})
	}
	expect(t, events, `{"level!":"INFO","msg!":"m","a!":1}`, `{"level!":"ERROR","msg!":""}`)
}

func TestAppendValue(t *testing.T) {
	got := AppendValue([]byte{0xc0}, map[string]int{"a": 1})
	if want := "\xc0\x81\xa1a\x01"; string(got) != want && string(got) != "\xc0\xde\x00\x01\xa1a\x01" {
		t.Errorf("%x, want %x", got, want)
	}
}
