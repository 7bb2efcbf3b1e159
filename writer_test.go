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
		{`{"b":1,"a":{"x":[1,2.5,null]},"n":18446744073709551615}` + "\n", []string{`{"b":1,"a":{"x":[1,2.5,null]},"n":18446744073709551615}`}},
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
	for _, late := range []string{"four\n", "five", "six", " seven\n"} { // the rest of a line would never be posted either
		if n, err := io.WriteString(a, late); n != len(late) || !errors.Is(err, ErrClosed) {
			t.Error(late, n, err)
		}
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
		if len(all) != 2 || !strings.Contains(first, line(msgpack.DefaultDepth-groups)) || !strings.Contains(first, second) {
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

// TestWriterCloseBounded would not end if Close waited for the beginning of a line, or for a Write, that waits for a destination that never comes.
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
		for deadline := time.Now().Add(time.Minute); busy && l.Stats().Accepted == 0; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("nothing was accepted")
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		var left *LeftError
		if err := l.Close(ctx); !errors.As(err, &left) || left.Events != 1 {
			t.Errorf("busy %v: %v", busy, err)
		}
		cancel()
		<-ended
	}
}
