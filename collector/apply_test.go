// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestApplySettings: what cannot change is refused, each by its name; zero values are defaults.
func TestApplySettings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	base := func() *Config {
		return &Config{
			Dir: dir, Inputs: Ends("forward://127.0.0.1:0"), Log: logTo(testWriter{t}),
			Outputs: []End{
				{Name: "a", URL: "discard:"},
				{Name: "b", URL: "stdout:"},
				{URL: "file:" + filepath.ToSlash(filepath.Join(dir, "x")) + "?tag_key=t"},
			},
		}
	}
	c, err := Open(base())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for want, change := range map[string]func(*Config){
		"": func(*Config) {},
		"\x00order and kinds": func(
			o *Config,
		) {
			slices.Reverse(o.Outputs)
			o.OutputKinds = map[string]OutputKind{"x": nil}
		},
		"\x00defaults": func(o *Config) {
			o.Ack, o.Memory, o.Drain, o.Log = AckSynced, 64<<20,
				10*time.Second, nil
		},
		"memory: it changed from 6": func(o *Config) { o.Memory = 1 << 20 },
		"ack: it changed from sync": func(o *Config) { o.Ack = AckDelivered },
		"drain: it changed from 10": func(o *Config) { o.Drain = time.Second },
		"dir: it changed from ":     func(o *Config) { o.Dir += "2" },
		`ack "maybe": it is `:       func(o *Config) { o.Ack = "maybe" },
	} {
		o := base()
		change(o)
		err := c.Apply(o)
		if none := want == "" || want[0] == 0; none != (err == nil) || !none && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		if err != nil && strings.Contains(err.Error(), "?") {
			t.Errorf("%v tells settings", err)
		}
	}
	o := base()
	o.Memory, o.RefuseInvalid = 1<<20, true
	if err := c.Apply(o); err == nil || strings.Count(err.Error(), "restart to change it") != 2 {
		t.Errorf("%v does not tell both", err)
	}
}

// TestApplyLooksAtAll: each setting is compared, or known to be none, or one that can change.
func TestApplyLooksAtAll(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if slices.Contains([]string{
			"Expressions", "InputKinds", "OutputKinds", "Log", "Synced", "Stdin", "Stdout", "Inputs",
			"Outputs", "Routes", "RemovedDrain",
		}, f.Name) {
			continue
		}
		var a, b Config
		v := reflect.ValueOf(&b).Elem().FieldByIndex(f.Index)
		switch v.Kind() {
		case reflect.Int64:
			v.SetInt(7)
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		default:
			t.Errorf("%s is of a kind that this test does not know", f.Name)
		}
		if a.differs(&b) == nil {
			t.Errorf("Apply does not look at %s", f.Name)
		}
	}
	if (&Config{Log: slog.Default()}).differs(&Config{Stdin: strings.NewReader(""), Stdout: io.Discard}) != nil {
		t.Error("what is no setting was compared")
	}
}

// TestOutputEnds: the file of an earlier version is read, and that of this one has names.
func TestOutputEnds(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]map[string]End{
		`{"stdout-12": "stdout:"}`:                               {"stdout-12": {URL: "stdout:"}},
		`{"out.a": {"name": "a", "url": "u:"}, "x": {"url":""}}`: {"out.a": {Name: "a", URL: "u:"}, "x": {}},
		`{"a": 1}`: nil,
		`{"a": `:   nil,
	} {
		if err := os.WriteFile(filepath.Join(dir, namesFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := OutputEnds(dir); !reflect.DeepEqual(got, want) || (want == nil) != (err != nil) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if err := writeNames(dir, []plannedOutput{
		{cursor: "out.a", name: "a", url: "stdout:"},
		{cursor: "b", name: "stdout:?x", url: "stdout:?x"},
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := OutputEnds(dir); err != nil || got["out.a"].String() != "a=stdout:" ||
		got["b"].String() != "stdout:?x" {
		t.Errorf("%v, %v", got, err)
	}
}
