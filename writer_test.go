// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/msgpack"
)

func TestWriter(t *testing.T) {
	l, events := NewTest(nil)
	w := l.Writer()
	for _, tt := range []struct {
		writes string // parts of writes, with | between them
		want   []string
	}{
		{"hello\n", []string{`{"message":"hello"}`}},
		{"hel|lo\nwor|ld|\n", []string{`{"message":"hello"}`, `{"message":"world"}`}},
		{"a\r\nb\r\n\n\r\n  \n", []string{`{"message":"a"}`, `{"message":"b"}`}},
		{"  indented \n", []string{`{"message":"  indented "}`}},
		{
			`{"b":1,"a":{"x":[1,2.5,null]},"n":18446744073709551615}` + "\n",
			[]string{`{"b":1,"a":{"x":[1,2.5,null]},"n":18446744073709551615}`},
		},
		{" {\"a\"|:1} \r\n", []string{`{"a":1}`}},
		{`{"a":1}{"b":2}` + "\n", []string{`{"message":"{\"a\":1}{\"b\":2}"}`}},
		{"{broken}\n", []string{`{"message":"{broken}"}`}},
		{`{"a":1` + "\n", []string{`{"message":"{\"a\":1"}`}},
		{"[1]\n5\n", []string{`{"message":"[1]"}`, `{"message":"5"}`}},
		{"{}\n", []string{`{}`}},
		{"level=5 {\n", []string{`{"message":"level=5 {"}`}},
	} {
		for part := range strings.SplitSeq(tt.writes, "|") {
			p := []byte(part)
			if n, err := w.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			clear(p) // it was copied
		}
		expect(t, events, tt.want...)
	}
	if e := l.With(slog.Int("a", 1)); true {
		w := e.WithGroup("g").Writer()
		fmt.Fprintf(w, "x\n{\"y\":1}\n{}\n")
		expect(t, events, `{"a":1,"g":{"message":"x"}}`, `{"a":1,"g":{"y":1}}`, `{"a":1}`)
	}
}

// TestLineWriter: the time and the tag of a line are its event's. What cannot be read stays in the
// record.
func TestLineWriter(t *testing.T) {
	told := make(chan error, 10)
	l, events := NewTest(&Options{Tag: "shop", Diagnostics: func(err error) { told <- err }})
	w, err := l.With(slog.Int("a", 1)).LineWriter(&LineOptions{TimeKey: "ts", TimeFormat: "unix", TagKey: "logger"})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1795226584, 123456700).UTC()
	for _, tt := range []struct {
		line, tag, record string
		at                time.Time // zero: that of the Write
	}{
		{
			`{"level":"info","ts":1795226584.1234567,"logger":"shop.web","msg":"x"}`, "shop.web",
			`{"a":1,"level":"info","msg":"x"}`, at,
		},
		{`{"ts":"1795226584.1234567"}`, "shop", `{"a":1}`, at},
		{`{"logger":""}`, "", `{"a":1}`, time.Time{}},
		{`text`, "shop", `{"a":1,"message":"text"}`, time.Time{}},
		{`{"ts":"now","logger":5}`, "shop", `{"a":1,"ts":"now","logger":5}`, time.Time{}},
		{`{"ts":-1}`, "shop", `{"a":1,"ts":-1}`, time.Time{}}, // before 1970
		{`{"ts":0}`, "shop", `{"a":1,"ts":0}`, time.Time{}},   // which would mean the receiver's now
	} {
		events.Reset()
		before := time.Now()
		if _, err := io.WriteString(w, tt.line+"\n"); err != nil {
			t.Fatal(err)
		}
		e := events.All()[0]
		if e.Tag != tt.tag || (tt.at.IsZero() && e.Time.Before(before.Round(0)) || !tt.at.IsZero() &&
			!e.Time.Equal(tt.at)) {
			t.Errorf("%s: tag %q, time %v", tt.line, e.Tag, e.Time)
		}
		expect(t, events, tt.record)
	}
	if err := <-told; !strings.Contains(err.Error(), "the time of a line cannot be read") {
		t.Error(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(told) > 0 {
		t.Errorf("told again: %v", <-told)
	}
	for _, l := range []*Logger{l, Discard(), nil} {
		if _, err := l.LineWriter(&LineOptions{TimeFormat: "iso"}); err == nil ||
			!strings.Contains(err.Error(), `"iso" is none of`) {
			t.Error(err)
		}
		if w, err := l.LineWriter(nil); err != nil || w == nil {
			t.Error(w, err)
		}
	}
}

// BenchmarkWriter has nobody to deliver to, so that what is measured is the Write.
func BenchmarkWriter(b *testing.B) {
	for _, bb := range []struct {
		name, line string
		o          *LineOptions
	}{
		{
			"object", `{"level":"info","msg":"order placed","id":184467,"path":"/api/v1/orders/184467/items","took":0.25}`,
			nil,
		},
		{"text", "192.0.2.1 - - GET /api/v1/orders/184467/items HTTP/1.1 200 5316", nil},
		{
			"time and tag", `{"time":"2026-11-21T02:03:04Z","tag":"shop","msg":"order placed","id":184467}`,
			&LineOptions{TimeKey: "time", TagKey: "tag"},
		},
	} {
		b.Run(strings.ReplaceAll(bb.name, " ", "-"), func(b *testing.B) {
			l, err := Open("discard:", &Options{Shm: noShm, Overflow: OverflowBlock})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close(b.Context())
			w, err := l.LineWriter(bb.o)
			if err != nil {
				b.Fatal(err)
			}
			line := []byte(bb.line + "\n")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Write(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestWriterClose(t *testing.T) {
	l, events := NewTest(nil)
	a, b := l.Writer(), l.Writer()
	io.WriteString(a, "one\ntwo")
	io.WriteString(b, `{"three":3}`)
	expect(t, events, `{"message":"one"}`)
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := text(t, events); !strings.Contains(got, `{"message":"two"}`) || !strings.Contains(got, `{"three":3}`) {
		t.Error(got)
	}
	// The rest of a line would never be posted either.
	for _, late := range []string{"four\n", "five", "six", " seven\n"} {
		if n, err := io.WriteString(a, late); n != len(late) || !errors.Is(err, ErrClosed) {
			t.Error(late, n, err)
		}
	}
	if n := l.Stats().RefusedBy["closed"]; n != 4 {
		t.Errorf("%d lines are counted, want 4", n)
	}
}

// TestWriterDeepLines: a receiver can read whatever somebody prints, also in groups.
func TestWriterDeepLines(t *testing.T) {
	l, events := NewTest(nil)
	line := func(depth int) string {
		return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + "}"
	}
	for groups := range maxGroups + 1 {
		w := l.Writer()
		for _, depth := range []int{msgpack.DefaultDepth - groups, msgpack.DefaultDepth - groups + 1} {
			io.WriteString(w, line(depth)+"\n")
		}
		all := events.All()
		for _, e := range all {
			if n, err := msgpack.Skip(e.Raw); err != nil || n != len(e.Raw) {
				t.Errorf("%d groups: %v", groups, err)
			}
		}
		first, second := text(t, events), `{"message":`
		if len(all) != 2 || !strings.Contains(first, line(msgpack.DefaultDepth-groups)) ||
			!strings.Contains(first, second) {
			t.Errorf("%d groups: %s", groups, first)
		}
		events.Reset()
		l = l.WithGroup("g")
	}
}

func TestWriterLongLines(t *testing.T) {
	l, events := NewTest(&Options{MaxEvent: 40}) // lines of 20
	line := strings.Repeat("0123456789", 5) + "€€€€€€€€€€{}"
	io.WriteString(l.Writer(), line+"\nshort\n")
	var joined string
	all := events.All()
	for _, e := range all[:len(all)-1] {
		if len(e.Message) > 20 || !utf8.ValidString(e.Message) {
			t.Errorf("%q", e.Message)
		}
		joined += e.Message
	}
	if joined != line || all[len(all)-1].Message != "short" {
		t.Errorf("%q %q", joined, all[len(all)-1].Message)
	}
}

// TestWriterLongBlanks: only the end of a line loses its carriage return, and only a line that is
// blank altogether is left out.
func TestWriterLongBlanks(t *testing.T) {
	for _, line := range []string{
		strings.Repeat("x", 19) + "\rEND",
		strings.Repeat(" ", 20) + "END",
		"A" + strings.Repeat(" ", 70) + "B",
		strings.Repeat("é\r", 30) + ".",
		strings.Repeat("x", 20) + " ",
	} {
		l, events := NewTest(&Options{MaxEvent: 40}) // lines of 20
		io.WriteString(l.Writer(), line+"\r\n \r\n")
		var joined string
		for _, e := range events.All() {
			joined += e.Message
		}
		if joined != line {
			t.Errorf("%q, want %q", joined, line)
		}
	}
}

// FuzzWriter cuts lines into writes in two ways: the events are the same.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("one\ntwo\r\n{\"a\":1}\nrest"), uint8(3))
	f.Add([]byte("€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€\n"), uint8(1))
	f.Add([]byte(strings.Repeat("\xff", 99)), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		write := func(step int) string {
			l, events := NewTest(&Options{MaxEvent: 64, Tag: "t"})
			w := l.Writer()
			for p := data; len(p) > 0; {
				n := min(max(step, 1), len(p))
				if m, err := w.Write(bytes.Clone(p[:n])); m != n || err != nil && !errors.Is(err, ErrTooLarge) {
					t.Fatal(m, err)
				}
				p = p[n:]
			}
			if err := l.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			return text(t, events)
		}
		if a, b := write(len(data)), write(int(step)); a != b {
			t.Errorf("at once\n%s\nin steps of %d\n%s", a, step, b)
		}
	})
}

// TestWriterCloseBounded would not end if Close waited for the beginning of a line, or for a Write,
// that waits for a destination that never comes.
func TestWriterCloseBounded(t *testing.T) {
	for _, busy := range []bool{false, true} {
		l := nobodyThere(t, Options{})
		w := l.Writer()
		io.WriteString(w, "beginning")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if busy {
				io.WriteString(w, " and end\n")
			}
		}()
		for deadline := time.Now().Add(4 * time.Minute); busy && l.Stats().Accepted == 0; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("nothing was accepted")
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		var left *UndeliveredError
		if err := l.Close(ctx); !errors.As(err, &left) || left.Events != 1 {
			t.Errorf("busy %v: %v", busy, err)
		}
		cancel()
		<-ended
	}
}
