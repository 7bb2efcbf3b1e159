// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMerge(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "app.1.jsonl")
	b := filepath.Join(dir, "app.2.jsonl")
	for path, text := range map[string]string{
		a: `{"time":"2026-11-21T02:03:04Z","tag":"a",  "n":1}` + "\n" +
			`{"time":"2026-11-21T02:03:06Z","tag":"b","n":3}` + "\n",
		b: `{"time":"2026-11-21T11:03:05+09:00","tag":"a","n":2}` + "\nbroken\n" +
			`{"time":"2026-11-21T02:03:07Z","tag":"a","n":4}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, []byte(strings.Repeat("\x00\x01\n", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	first := `{"time":"2026-11-21T02:03:04Z","tag":"a",  "n":1}` + "\n"
	second := `{"time":"2026-11-21T11:03:05+09:00","tag":"a","n":2}` + "\n"
	third := `{"time":"2026-11-21T02:03:06Z","tag":"b","n":3}` + "\n"
	fourth := `{"time":"2026-11-21T02:03:07Z","tag":"a","n":4}` + "\n"
	for _, c := range []struct {
		args []string
		code int
		out  string
		err  string // what standard error contains
	}{
		{
			[]string{filepath.Join(dir, "app.*.jsonl")},
			1, first + second + third + fourth,
			`app.2.jsonl", line 2: the line is torn`,
		},
		{[]string{a}, 0, first + third, ""},
		{[]string{a, "--tag", "b"}, 0, third, ""},
		{[]string{a, "--since", "2026-11-21T02:03:05Z"}, 0, third, ""},
		{[]string{a, "--until", "2026-11-21T02:03:06Z"}, 0, first, ""},
		{[]string{a, "--since", "soon"}, 2, "", `--since: "soon" is neither`},
		{
			[]string{filepath.Join(dir, "none*")},
			1, "",
			fmt.Sprintf("spillway: %q: no such file", filepath.Join(dir, "none*")),
		},
		{[]string{filepath.Join(dir, "app.1*"), a, dir + "/./app.1.jsonl"}, 0, first + third, ""},
		{[]string{a, "--slack=-1s"}, 2, "", "--slack: -1s is"},
		{[]string{binary}, 1, "", fmt.Sprintf("%q: 20 more lines like these\nspillway: 30 lines", binary)},
	} {
		got := command(t, "", append([]string{"merge"}, c.args...)...)
		if got.code != c.code || got.out != c.out || !strings.Contains(got.err, c.err) || c.code == 0 && got.err != "" {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}

// failing is a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// TestMergeTold: nothing says that all the others are there when the output fails, and each message
// has a line.
func TestMergeTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	if err := os.WriteFile(path, []byte("{\"time\":1}\nbroken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	if code := run(t.Context(), []string{"merge", path},
		&streams{strings.NewReader(""), failing{}, &told}); code != 1 ||
		!strings.HasSuffix(told.String(), "spillway: disk full\n") {
		t.Errorf("exit code %d, it says %q", code, told.String())
	}
	told.Reset()
	m := mergeWarnings{&told, map[string]int{}}
	m.tell("a", 0, errors.Join(errors.New("first"), errors.New("second")))
	if want := "spillway: \"a\": first\nspillway: \"a\": second\n"; told.String() != want {
		t.Errorf("it says %q", told.String())
	}
}

// TestMergeFormats: text with what continues its lines, logfmt and JSON go together.
func TestMergeFormats(t *testing.T) {
	dir := t.TempDir()
	stamp := func(second int) string { // as syslog writes it, local
		return time.Date(2026, 11, 21, 2, 3, second, 0, time.UTC).Local().Format(time.Stamp)
	}
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		written := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
		return path
	}
	js := put("app.jsonl", `{"time":"2026-11-21T02:03:05Z","n":1}`+"\n"+`{"time":"2026-11-21T02:03:08.5Z","n":2}`+"\n")
	text := put("app.log", "rotated\n2026-11-21T02:03:06Z panic: x\n\n\tat main.go:3\n2026-11-21T02:03:08Z end\n")
	logfmt := put("app.logfmt", `ts=2026-11-21T02:03:07Z msg="a b" tag=web`+"\n")
	syslog := put("syslog", stamp(4)+" host app[1]: first\n"+stamp(8)+" host app[1]: last")
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{js, text, logfmt, syslog}, stamp(4) + ` host app[1]: first
{"time":"2026-11-21T02:03:05Z","n":1}
rotated
2026-11-21T02:03:06Z panic: x

	at main.go:3
ts=2026-11-21T02:03:07Z msg="a b" tag=web
2026-11-21T02:03:08Z end
` + stamp(8) + ` host app[1]: last
{"time":"2026-11-21T02:03:08.5Z","n":2}
`, 0},
		{[]string{js, text, logfmt, "--tag", "web"}, `ts=2026-11-21T02:03:07Z msg="a b" tag=web` + "\n", 0},
		{
			[]string{text, syslog, "--since", "2026-11-21T02:03:05Z", "--until", "2026-11-21T02:03:07Z"},
			"rotated\n2026-11-21T02:03:06Z panic: x\n\n\tat main.go:3\n", 0,
		},
		{[]string{logfmt, "--format", "logfmt"}, `ts=2026-11-21T02:03:07Z msg="a b" tag=web` + "\n", 0},
		{[]string{logfmt, "--format", "json"}, "", 1},
		{[]string{logfmt, "--time-key", "at"}, "", 1},
		{[]string{logfmt, "--format", "xml"}, "", 2},
		{[]string{logfmt, "--memory", "1KiB"}, "", 2},
	} {
		if got := command(t, "", append([]string{"merge"}, c.args...)...); got.code != c.code || c.code < 2 &&
			got.out != c.want {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}

func TestMergeBar(t *testing.T) {
	for _, c := range []struct {
		done, all int64
		want      string
	}{
		{1 << 20, 4 << 20, "[=====>              ] 25% 1.0 MiB of 4.0 MiB, 6s left"},
		{5 << 20, 4 << 20, "[====================] 100% 4.0 MiB of 4.0 MiB, 0s left"},
		{0, 0, "[>                   ] 0% 0 B of 1 B"},
	} {
		if got := mergeBar(c.done, c.all, 2*time.Second); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestMergeFollow: it goes on as files grow, and ends in good order when it is interrupted.
func TestMergeFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	first, second := "2026-11-21T02:03:04Z a\n", "2026-11-21T02:03:05Z b\n\tand more\n"
	if err := os.WriteFile(path, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	var told bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"merge", "--follow", path}, &streams{strings.NewReader(""), w, &told})
		w.Close()
	}()
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %q; %s", got, err, want, told.String())
		}
	}
	read(first)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(second); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	read(second)
	cancel()
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 || <-code != 0 || told.Len() > 0 {
		t.Errorf("%q, %v; it says %q", rest, err, told.String())
	}
}
