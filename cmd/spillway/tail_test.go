// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/internal/lines"
)

// TestTailCommand: matching events come as text and as JSON, with nothing that does something to a
// terminal, and an interrupt is a good end.
func TestTailCommand(t *testing.T) {
	t.Parallel()
	admin, input := serveTelling(t)
	ctx, cancel := context.WithCancel(t.Context())
	type tailing struct {
		lines *bufio.Scanner
		code  chan int
	}
	begin := func(args ...string) tailing {
		r, w := io.Pipe()
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, append([]string{"tail", "--admin", admin, "--tag", "app.*"}, args...),
				&streams{strings.NewReader(""), w, w})
			_ = w.Close()
		}()
		return tailing{bufio.NewScanner(r), code}
	}
	text, jsons := begin("--where", "n == 2"), begin("--format", "json")
	// They are attached when they show something: so the same is sent until they do.
	const events = `{"level":"INFO","msg":"no","n":1}` + "\n" +
		`{"level":"ERROR","msg":"yes \u001b[2J\u009b\u202e","n":2}` + "\n"
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for ctx.Err() == nil {
			command(t, events, "send", "--to", input, "--tag", "sys.x")
			command(t, events, "send", "--to", input, "--tag", "app.web")
		}
	}()
	if !text.lines.Scan() || !strings.HasSuffix(text.lines.Text(), ` ERROR app.web yes \x1b[2J\u009b\u202e n=2`) {
		t.Errorf("as text: %q", text.lines.Text())
	}
	for n := range 4 {
		var got struct {
			Tag, Msg string
			N        int
		}
		if !jsons.lines.Scan() || json.Unmarshal(jsons.lines.Bytes(), &got) != nil || got.Tag != "app.web" ||
			got.N != n%2+1 ||
			strings.ContainsAny(jsons.lines.Text(), "\x1b\u009b\u202e") || got.N == 2 &&
			got.Msg != "yes \x1b[2J\u009b\u202e" {
			t.Errorf("as JSON: %q", jsons.lines.Text())
		}
	}
	cancel()
	<-sent
	for _, x := range []tailing{text, jsons} {
		for x.lines.Scan() {
		}
		if code := <-x.code; code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// TestTailEnds: what was skipped is told, and the end of a collector is an error that names its
// address.
func TestTailEnds(t *testing.T) {
	t.Parallel()
	const event = `{"time":"2026-11-21T02:03:04.000000000Z","tag":"a","msg":"x"}` + "\n"
	answer := ""
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, answer)
	}))
	defer other.Close()
	for _, tt := range []struct{ format, answer, out, err string }{
		{
			"text", `{"skipped":0}` + "\n" + event + `{"skipped":48211}` + "\n", " a x\n",
			"spillway: 48,211 events skipped\nspillway: " + other.URL + ": the collector shows no more",
		},
		{
			"json", event + `{"skipped":5}` + "\n", event + `{"skipped":5}` + "\n",
			"spillway: " + other.URL + ": the collector shows no more",
		},
		{"json", event + `{"skipped":` + "\n", event, "a line is not understood"},
		{"text", event[:20], "", "the collector shows no more"},
		{"text", strings.Repeat("a", 100_000) + "\n" + event, "aaa\n", "the collector shows no more"},
		{"text", strings.Repeat("a", maxTailLine+100_000), "", "a line is longer than 16 MiB"},
	} {
		answer = tt.answer
		got := command(t, "", "tail", "--admin", other.URL, "--format", tt.format)
		if got.code != 1 || !strings.Contains(got.out, tt.out) || tt.out == "" && got.out != "" ||
			!strings.Contains(got.err, tt.err) {
			t.Errorf("%.60q: %d %.200q %q", tt.answer, got.code, got.out, got.err)
		}
	}
}

// FuzzTailLine: whatever a collector sends, one line comes of a line, with nothing in it that does
// something to a terminal; JSON stays what it was.
func FuzzTailLine(f *testing.F) {
	f.Add([]byte(`{"time":"2026-11-21T02:03:04.000000000Z","tag":"a","msg":"x\u001b\u009b"}`))
	f.Add([]byte(`{"skipped":1}`))
	f.Add([]byte("{\"a\":\"\u009b\u202e\xff\x7f\"}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			w := bufio.NewWriter(&out)
			text := newText(&out, lines.StdFlags|lines.Tag)
			reader, err := lines.NewReader(&lines.ReadOptions{Time: "time", Tag: "tag"})
			if err != nil {
				t.Fatal(err)
			}
			tail := &tailText{json: asJSON, reader: reader, text: text, told: io.Discard}
			if tail.line(w, line) != nil || w.Flush() != nil || out.Len() == 0 {
				return
			}
			got, ended := strings.CutSuffix(out.String(), "\n")
			if !ended || !utf8.ValidString(got) || strings.IndexFunc(got, lines.IsHidden) >= 0 {
				t.Fatalf("%q", got)
			}
			var before, after any
			if asJSON && utf8.Valid(line) && json.Unmarshal(line, &before) == nil {
				if err := json.Unmarshal([]byte(got), &after); err != nil {
					t.Fatalf("%q: %v", got, err)
				}
				a, _ := json.Marshal(before)
				if b, _ := json.Marshal(after); !bytes.Equal(a, b) {
					t.Fatalf("%s became %s", a, b)
				}
			}
		}
	})
}
