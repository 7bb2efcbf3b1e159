// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// mixed writes files of all kinds, and returns a pattern that finds them.
func mixed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.json": `{"time":"2026-11-21T02:03:04.5Z","tag":"web","level":"INFO","msg":"placed","id":42,"deep":{"a":"x y"}}
{"time":1795226586000,"n":1}
`,
		"b.logfmt": `ts=2026-11-21T02:03:05Z level=warn msg="a b" took=3ms tag=db` + "\r\n",
		"c.txt":    "2026-11-21T02:03:07Z panic: \x1b[31mx\n\tat main.go:3\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "*")
}

func TestMergeText(t *testing.T) {
	got := command(t, "", "merge", "--output", "text", mixed(t))
	clock := func(second, micros int) string {
		return time.Date(2026, 11, 21, 2, 3, second, micros*1000, time.UTC).Local().Format("2006/01/02 15:04:05.000000")
	}
	want := clock(4, 500000) + " INFO web placed id=42 deep.a=\"x y\"\n" +
		clock(5, 0) + " warn db a b took=3ms\n" +
		clock(6, 0) + " n=1\n" +
		"2026-11-21T02:03:07Z panic: \\x1b[31mx\n\tat main.go:3\n"
	if got.code != 0 || got.out != want || got.err != "" {
		t.Errorf("%d, %s\n%s, want\n%s", got.code, got.err, got.out, want)
	}
}

// TestMergeTo: each line is an event of its time, under its tag, and acked.
func TestMergeTo(t *testing.T) {
	url, _, stop := serve(t)
	pattern := mixed(t)
	old := filepath.Join(filepath.Dir(pattern), "old.json")
	if err := os.WriteFile(old, []byte(`{"time":"1950-11-21T02:03:04.5Z","x":[]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := command(t, "", "merge", "--to", url, "--else", "other", pattern)
	if got.code != 0 || got.out != "6 acked\n" || got.err != "" {
		t.Errorf("%+v", got)
	}
	want := `{"time":"1950-11-21T02:03:04.500000000Z","tag":"other","x":[]}
{"time":"2026-11-21T02:03:04.500000000Z","tag":"web","level":"INFO","msg":"placed","id":42,"deep":{"a":"x y"}}
{"time":"2026-11-21T02:03:05.000000000Z","tag":"db","level":"warn","msg":"a b","took":"3ms"}
{"time":"2026-11-21T02:03:06.000000000Z","tag":"other","n":1}
{"time":"2026-11-21T02:03:07.000000000Z","tag":"other","message":"2026-11-21T02:03:07Z panic: ` + "\\u001b" + `[31mx"}
{"time":"2026-11-21T02:03:07.000000000Z","tag":"other","message":"\tat main.go:3"}
`
	if out := stop(); out != want {
		t.Errorf("%s, want\n%s", out, want)
	}
}

// TestMergeToLarge: more lines than a batch holds come in order.
func TestMergeToLarge(t *testing.T) {
	url, _, stop := serve(t)
	const count = 15_000
	dir := t.TempDir()
	var files [3]bytes.Buffer
	var want strings.Builder
	pad := strings.Repeat("p", 100)
	for i := range count {
		at := time.Unix(1795226584, int64(i)*1000).UTC().Format("2006-01-02T15:04:05.000000000Z07:00")
		line := fmt.Sprintf(`{"time":%q,"tag":"t%d","n":%d,"pad":%q}`+"\n", at, i%2, i, pad)
		files[i%3].WriteString(line)
		want.WriteString(line)
	}
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), files[i].Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := command(t, "", "merge", "--to", url, filepath.Join(dir, "*")); got.code != 0 ||
		got.out != fmt.Sprintf("%d acked\n", count) || got.err != "" {
		t.Errorf("%+v", got)
	}
	if got := stop(); got != want.String() {
		t.Errorf("%d bytes, want %d", len(got), want.Len())
	}
}

func TestMergeToNobody(t *testing.T) {
	down := "forward+unix://" + filepath.Join(t.TempDir(), "none")
	got := command(t, "", "merge", "--to", down, "--timeout", "50ms", mixed(t))
	if got.code != 1 || got.out != "0 acked\n" || !strings.Contains(got.err, "5 lines not acked") {
		t.Errorf("%+v", got)
	}
	for _, tc := range [][]string{
		{"--to", down, "--output", "text"},
		{"--timeout", "0"},
		{"--to", "stdout:"},
		{"--output", "xml"},
	} {
		if got := command(t, "", append([]string{"merge", "x"}, tc...)...); got.code != 2 {
			t.Errorf("%q: %+v", tc, got)
		}
	}
}

// TestMergeToFollow: what is written while it follows is sent, and what was read when it is
// interrupted.
func TestMergeToFollow(t *testing.T) {
	url, data, stop := serve(t)
	path := filepath.Join(t.TempDir(), "app.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, `{"time":"2026-11-21T02:03:04Z","n":1}`)
	ctx, cancel := context.WithCancel(t.Context())
	out, w := io.Pipe()
	ended := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"merge", "--follow", "--to", url, path}, &streams{nil, w, &errs})
	}()
	for deadline := time.Now().Add(4 * time.Minute); ; <-time.After(5 * time.Millisecond) {
		if b, _ := os.ReadFile(filepath.Join(filepath.Dir(data), "out.jsonl")); len(b) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing came: %s", &errs)
		}
	}
	fmt.Fprintln(f, `{"time":"2026-11-21T02:03:05Z","n":2}`)
	cancel() // at the latest its last look finds that
	said := make([]byte, 100)
	n, _ := out.Read(said)
	if code := <-ended; code != 0 || string(said[:n]) != "2 acked\n" {
		t.Errorf("%d, %s, %s", code, said[:n], &errs)
	}
	if got := stop(); strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}

func FuzzMergeReader(f *testing.F) {
	f.Add([]byte(`{"time":1,"tag":"a","x":{}}`), int64(1))
	f.Add([]byte(`ts=2026-11-21T02:03:05Z a=b`), int64(-1))
	f.Add([]byte("\x1b[2J\ttext\r"), int64(1<<62))
	f.Fuzz(func(t *testing.T, line []byte, ns int64) {
		if bytes.IndexByte(line, '\n') >= 0 || len(line) == 0 {
			return
		}
		reader, err := newMergeReader("time", "tag")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		text := newMergeText(reader, &out)
		if err := text.Line(ns, line); err != nil {
			t.Fatal(err)
		}
		if err := text.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.Bytes(); bytes.Count(got, []byte{'\n'}) != 1 || bytes.ContainsAny(got, "\x1b\r\x00") {
			t.Errorf("%q", got)
		}
		sender := &mergeSender{reader: reader, tag: "t"}
		if err := sender.Line(ns, line); err != nil {
			t.Fatal(err)
		}
		b := &sender.batch
		chunk := forward.Chunk{Tag: b.runs[0].tag, Entries: b.entries}
		n := 0
		for range chunk.All() {
			n++
		}
		if n != 1 || len(b.runs) != 1 {
			t.Errorf("%d events in %x", n, b.entries)
		}
	})
}
