// SPDX-License-Identifier: Apache-2.0

package main

import (
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
		a: `{"time":"2026-11-21T02:03:04Z","tag":"a",  "n":1}` + "\n" + `{"time":"2026-11-21T02:03:06Z","tag":"b","n":3}` + "\n",
		b: `{"time":"2026-11-21T11:03:05+09:00","tag":"a","n":2}` + "\nbroken\n" + `{"time":"2026-11-21T02:03:07Z","tag":"a","n":4}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
		{[]string{filepath.Join(dir, "app.*.jsonl")}, 1, first + second + third + fourth, `app.2.jsonl", line 2: the line is torn`},
		{[]string{a}, 0, first + third, ""},
		{[]string{a, "--tag", "b"}, 0, third, ""},
		{[]string{a, "--since", "2026-11-21T02:03:05Z"}, 0, third, ""},
		{[]string{a, "--until", "2026-11-21T02:03:06Z"}, 0, first, ""},
		{[]string{a, "--since", "soon"}, 1, "", `--since: "soon" is neither`},
		{[]string{filepath.Join(dir, "none*")}, 1, "", "none*"},
	} {
		got := command(t, "", append([]string{"merge"}, c.args...)...)
		if got.code != c.code || got.out != c.out || !strings.Contains(got.err, c.err) || c.code == 0 && got.err != "" {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}

func TestMergeBar(t *testing.T) {
	if got, want := mergeBar(1<<20, 4<<20, 2*time.Second), "25% 1.0 MiB of 4.0 MiB, 6s left"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := mergeBar(5<<20, 4<<20, 2*time.Second), "5.0 MiB"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
