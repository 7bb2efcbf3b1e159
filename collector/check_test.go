// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCheck: all ends that are wrong are told, and nothing is made.
func TestCheck(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	c := &Config{
		Dir:     dir,
		Inputs:  []End{{"a", "forward://127.0.0.1:0?tagg=x"}, {"b", "lines://127.0.0.1:5170"}, {"c", "kafka://h"}},
		Outputs: []End{{"x", "file:x.jsonl?max_size=1M"}, {"y", "file:y.jsonl"}, {"z", "file:./y.jsonl"}},
	}
	err := c.Check()
	text := err.Error()
	for _, want := range []string{
		`unknown parameter "tagg"`, "no scheme \"kafka\"", `"1M" is not a size`,
		"given twice",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if len(strings.Split(text, "\n")) != 4 {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory is there: %v", err)
	}
	c.Inputs, c.Outputs = c.Inputs[1:2], c.Outputs[1:2]
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if err := (&Config{Ack: "maybe"}).Check(); err == nil {
		t.Error("an ack that is none")
	}
}

// TestParameters: what URLs take is told as what it is.
func TestParameters(t *testing.T) {
	c := &Config{OutputKinds: map[string]OutputKind{"x": func(_ *URL, p *Params) (*OutputPlan, error) {
		if p.Choice("mode", "plain", "deep") == "deep" {
			p.Int("depth", 1, 0, 9)
		}
		return nil, nil
	}}}
	names := func(list []Parameter) (names []string) {
		for _, p := range list {
			names = append(names, p.Name)
		}
		return names
	}
	if got := names(c.OutputParameters()["x"]); !slices.Equal(got,
		[]string{"depth", "max_behind", "mode", "when_behind"}) {
		t.Errorf("got %q", got)
	}
	for scheme, some := range map[string]string{
		"forward": "users_file", "forward+tls": "client_ca", "lines": "parse",
		"stdin": "max_line",
	} {
		if list := c.InputParameters()[scheme]; !slices.Contains(names(list), some) {
			t.Errorf("%s: %v", scheme, list)
		}
	}
	for scheme, some := range map[string]string{
		"file": "max_size", "stdout": "color", "forward+tls": "insecure",
		"discard": "max_behind",
	} {
		if list := c.OutputParameters()[scheme]; !slices.Contains(names(list), some) {
			t.Errorf("%s: %v", scheme, list)
		}
	}
	if c.OutputParameters()["stderr"] != nil {
		t.Error("stderr: is no output of a collector")
	}
}
