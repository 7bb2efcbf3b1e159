// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReload: a file with a mistake, one that says what takes a restart, and one with an end that
// cannot be opened change nothing and say why, in the answer and in the log; a good one is taken,
// and seen in what is in force and in the figures.
func TestReload(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_SECRET", "HIDDEN-value")
	dir := t.TempDir()
	file := filepath.Join(dir, "spillway.yaml")
	const good = "data: DIR/data\nadmin: 127.0.0.1:0\nmemory: ${SPILLWAY_TEST_MEMORY:-64MiB}\n" +
		"inputs: {in: 'forward://127.0.0.1:0'}\noutputs: {out: 'discard:'}\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", filepath.ToSlash(dir))),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	s := startServe(t, "-c", file, "--log-level", "info")
	address, _ := s.next("telling")["address"].(string)
	inForce := good
	reload := func() (int, string) {
		t.Helper()
		return ask(t, http.MethodPost, "http://"+address+"/reload")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"as it was", good, nil},
		{"the same, written otherwise", strings.Replace(good, "{in: 'forward://127.0.0.1:0'}",
			"\n  in:\n    url: forward://127.0.0.1:0", 1), nil},
		{
			"mistakes", good + "dta: x\nack: maybe\n",
			[]string{"spillway.yaml:6:1: unknown key \"dta\"", ":7:6: ack is one of"},
		},
		{"an output more", good[:len(good)-2] + ", more: 'discard:'}\n", nil},
		{"an input with another name", strings.Replace(good, "in: 'forward", "on: 'forward", 1), nil},
		{"another URL", strings.Replace(good, "discard:", "discard:?max_behind=1GiB", 1) + "removed_drain: 5s\n", nil},
		{
			"an address in use", strings.Replace(good, "127.0.0.1:0'", taken.Addr().String()+"'", 1),
			[]string{"address already in use"},
		},
		{
			"settings", good + "ack: journaled\nmax_event: 1MiB\n",
			[]string{"ack: it changed from synced to journaled", "max event: it changed"},
		},
		{
			"the command's own", good + "status_every: 5s\nlog_format: text\n",
			[]string{"status every: it changed; restart to change it"},
		},
		{
			"a secret", strings.Replace(good, "DIR/data", "DIR/${SPILLWAY_TEST_SECRET}", 1),
			[]string{"dir: it changed from", "***"},
		},
		{"no file", "", nil}, // an empty one says that all is as without: that is not what runs
		{"as it was, again", good, nil},
	} {
		write(tt.text)
		code, body := reload()
		if tt.name == "no file" {
			if code != http.StatusConflict || !strings.Contains(body, "admin: it changed") {
				t.Errorf("%s: %d %s", tt.name, code, body)
			}
			s.next("configuration not reloaded; what was in force before stays so")
			continue
		}
		if len(tt.want) == 0 {
			if code != http.StatusOK || body != "reloaded\n" {
				t.Errorf("%s: %d %s", tt.name, code, body)
			}
			s.next("configuration and credentials reloaded")
			inForce = tt.text
			continue
		}
		line := s.next("configuration not reloaded; what was in force before stays so")
		said, _ := line["error"].(string)
		for _, want := range tt.want {
			if !strings.Contains(body, want) || !strings.Contains(said, want) {
				t.Errorf("%s: no %q in %q and %q", tt.name, want, body, said)
			}
		}
		if _, said := fetch(t, "http://"+address+"/config"); strings.Contains(said,
			"max_behind") != strings.Contains(inForce, "max_behind") {
			t.Errorf("%s: in force is %s", tt.name, said)
		}
		if code != http.StatusConflict || strings.Contains(body+said, "HIDDEN") {
			t.Errorf("%s: %d %s", tt.name, code, body)
		}
	}
	if code, body := fetch(t, "http://"+address+"/config"); code != http.StatusOK ||
		!strings.Contains(body, "in: \"forward://127.0.0.1:0\"") {
		t.Errorf("%d %s", code, body)
	}
	_, figures := fetch(t, "http://"+address+"/metrics")
	for _, want := range []string{
		`spillway_output_removed{output="more"} 1`, `spillway_output_removed{output="out"} 0`,
		`spillway_input_removed{input="on"} 1`, `spillway_input_removed{input="in"} 0`,
		`spillway_output_outside_events_total{output="more"} 0`,
	} {
		if !strings.Contains(figures, want+"\n") {
			t.Errorf("no %s in the figures", want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if code, body := reload(); code != http.StatusConflict || !strings.Contains(body, "no regular file") {
		t.Errorf("of a folder: %d %s", code, body)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if code, body := reload(); code != http.StatusConflict || !strings.Contains(body, "no such file") {
		t.Errorf("without its file: %d %s", code, body)
	}
	s.end()
	if code := <-s.code; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
