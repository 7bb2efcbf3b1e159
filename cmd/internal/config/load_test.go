// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/urls"
)

// flags are settings of each type.
type flags struct {
	Data  string `help:"Where."`
	Ack   string `enum:"synced,journaled"`
	Most  amount
	Every time.Duration
	Sure  bool
	Other []string `config:"-"`
	more
}

type more struct {
	LogLevel string `enum:"info,warn"`
}

type amount int64

func (b *amount) UnmarshalText(text []byte) error {
	n, err := urls.ParseSize(string(text))
	*b = amount(n)
	return err
}

// options are those of the collector's own ends.
func options(settings any) *Options {
	var c collector.Config
	return &Options{
		Settings: settings,
		Ends:     map[string]Ends{inputsKey: c.InputParameters(), outputsKey: c.OutputParameters()},
		Check: func(f *File) error {
			return (&collector.Config{Inputs: f.Inputs, Outputs: f.Outputs, Routes: f.Routes}).Check()
		},
	}
}

// write writes files, by their names, and returns the path of the first.
func write(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, files[0])
}

func TestLoad(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_EVERY", "1m30s")
	t.Setenv("SPILLWAY_TEST_KEY", "a b&c@d%e?f#g")
	path := write(t, "a.yaml", "\xef\xbb\xbf# windows\r\ndata: a-${file:name}-$${x}-$y\r\nack: journaled\r\nmost: 64MiB\r\nevery: ${SPILLWAY_TEST_EVERY}\r\n"+
		"sure: ${SPILLWAY_TEST_NONE:-true}\r\nlog_level: warn\r\ninclude: [\"b*.yaml\", none-*.yaml]\r\n"+
		"inputs:\r\n  one: lines://127.0.0.1:1?tag=x\r\n  two: {url: \"lines://127.0.0.1:2?tag=x\", address_key: \"${SPILLWAY_TEST_KEY}\", max_line: 4096}\r\n",
		"name", "x\n", "b1.yaml", "outputs: {out: {url: 'forward://a', host: [b, c], window: 5, ack: false}}",
		"b2.yaml", "", "b3.yaml", "# nothing\n")
	got := flags{Other: []string{"x"}}
	f, err := Load(path, options(&got))
	if err != nil {
		t.Fatal(err)
	}
	want := flags{
		Data: "a-x-${x}-$y", Ack: "journaled", Most: 64 << 20, Every: 90 * time.Second, Sure: true,
		Other: []string{"x"}, more: more{"warn"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	inputs := []collector.End{
		{Name: "one", URL: "lines://127.0.0.1:1?tag=x"},
		{Name: "two", URL: "lines://127.0.0.1:2?tag=x&address_key=a%20b%26c%40d%25e%3Ff%23g&max_line=4096"},
	}
	if !reflect.DeepEqual(f.Inputs, inputs) {
		t.Errorf("inputs %+v", f.Inputs)
	}
	u, err := urls.Parse(f.Inputs[1].URL)
	if err != nil || u.Params().String("address_key", "") != "a b&c@d%e?f#g" {
		t.Error(u, err)
	}
	if want := (collector.End{Name: "out", URL: "forward://a?host=b&host=c&window=5&ack=false"}); len(f.Outputs) != 1 ||
		f.Outputs[0] != want {
		t.Errorf("outputs %+v", f.Outputs)
	}
	if !f.Says("data") || f.Says("other") || (*File)(nil).Says("data") {
		t.Error("what it says")
	}
	if got := f.Hide("1m30s, xx x a%20b%26c%40d%25e%3Ff%23g axb"); got != "***, xx *** *** axb" {
		t.Error(got)
	}
	kept := flags{Data: "flag", more: more{"info"}}
	Override(&got, &kept, []string{"log-level", "to"})
	if got.LogLevel != "info" || got.Data != "a-x-${x}-$y" {
		t.Errorf("%+v", got)
	}
	if keys := Differences(&got, &want); !reflect.DeepEqual(keys, []string{"log_level"}) {
		t.Error(keys)
	}
}

// TestLoadBounds: what is too large, or multiplies, is refused, and costs little before it is.
func TestLoadBounds(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	for _, tt := range []struct{ name, text, want string }{
		{"laughs", laughs, "anchors"},
		{"brackets", strings.Repeat("[", 20_000), "too deep"},
		{"braces", strings.Repeat("{a: ", 10_000), "too deep"},
		{"dashes", strings.Repeat("- ", 10_000), "too deep"},
		{"questions", strings.Repeat("? ", 10_000), "not taken"},
		{"tags", strings.Repeat("!a ", 10_000), "not taken"},
		{"anchors", strings.Repeat("&a ", 10_000), "not taken"},
		{"keys", strings.Repeat("a: x\n", 10_000), "tokens"},
		{"commas", "[" + strings.Repeat(",", 25_000), "tokens"},
		{"comments", strings.Repeat("#\n", 25_000), "tokens"},
		{"documents", strings.Repeat("---\n", 10_000), "second document"},
		{"indents", func() string {
			var b strings.Builder
			for i := range 200 {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(), "too deep"},
		{"long", "data: " + strings.Repeat("x", 260_000) + "${NONE", "brace"},
		{"references", "data: '" + strings.Repeat("${A:-x}", 5_000) + "${'", "brace"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "a.yaml", tt.text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Load(path, options(&flags{}))
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%.300v", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 { // in passing, not at once
				t.Errorf("%d MiB were made", n>>20)
			}
			if n := len(err.Error()); n > 100_000 {
				t.Errorf("%d bytes of mistakes", n)
			}
		})
	}
	huge := write(t, "a.yaml", "")
	if err := os.Truncate(huge, 100<<20); err != nil {
		t.Fatal(err)
	}
	many := write(t, "a.yaml", "include: [b.yaml, c.yaml, d.yaml, e.yaml, f.yaml]\n", "b.yaml", "#", "c.yaml", "#",
		"d.yaml", "#", "e.yaml", "#", "f.yaml", "#")
	for _, name := range "bcdef" {
		if err := os.WriteFile(filepath.Join(filepath.Dir(many), string(name)+".yaml"),
			[]byte("#"+strings.Repeat("x", 250_000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		huge: "larger than 256 KiB", many: "larger than 1024 KiB", filepath.Dir(many): "no regular file",
		filepath.Join(filepath.Dir(many), "none"):                               "no such file",
		write(t, "a.yaml", "data: ${file:b}", "b", strings.Repeat("x", 70_000)): "larger than 64 KiB",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Load(path, options(&flags{}))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %.300v", want, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%q: %d MiB were made", want, n>>20)
		}
	}
}

// FuzzLoad: no text ends the process, each mistake has a place in the text, no secret is in one,
// and what is printed reads as the same again.
func FuzzLoad(f *testing.F) {
	const secret = "HIDDEN-7.secret"
	f.Setenv("SPILLWAY_FUZZ", secret)
	for _, pattern := range []string{"../../spillway/testdata/config/*.yaml", "../../../examples/config/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Add("data: ${SPILLWAY_FUZZ}\ninputs: {a: ${SPILLWAY_FUZZ}}\nmost: ${SPILLWAY_FUZZ}\n")
	path := filepath.Join(f.TempDir(), "fuzz.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "include") || strings.Contains(text, "file:/") { // files of this machine
			return
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var settings flags
		file, err := Load(path, options(&settings))
		if err != nil {
			var mistakes Mistakes
			if !errors.As(err, &mistakes) || len(mistakes) == 0 {
				t.Fatalf("%v", err)
			}
			for _, m := range mistakes {
				if m.Text == "" || m.Line < 0 || m.Line > strings.Count(text, "\n")+1 {
					t.Fatalf("%+v", m)
				}
			}
			if strings.Contains(err.Error(), "HIDDEN-7") && !strings.Contains(text, "HIDDEN-7") {
				t.Fatal(err)
			}
			return
		}
		if err := file.RunTests(nil); err != nil && strings.Contains(err.Error(), "HIDDEN-7") &&
			!strings.Contains(text, "HIDDEN-7") {
			t.Fatal(err)
		}
		printed := file.Print(&settings, file.Inputs, file.Outputs)
		if strings.Contains(printed, "HIDDEN-7") && !strings.Contains(text, "HIDDEN-7") {
			t.Fatal(printed)
		}
		if len(file.given) > 0 || strings.Contains(printed, hidden) {
			return
		}
		if err := os.WriteFile(path, []byte(printed), 0o600); err != nil {
			t.Fatal(err)
		}
		var again flags
		second, err := Load(path, options(&again))
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if !reflect.DeepEqual(settings, again) || !reflect.DeepEqual(file.Inputs, second.Inputs) ||
			!reflect.DeepEqual(file.Outputs, second.Outputs) ||
			!reflect.DeepEqual(file.Routes, second.Routes) {
			t.Fatalf("%s\nreads as %+v, was %+v; %+v, was %+v", printed, again, settings, second, file)
		}
	})
}
