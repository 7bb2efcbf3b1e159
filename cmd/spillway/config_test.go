// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillwaylog/spillway/internal/needs"
)

var update = flag.Bool("update", false, "write the golden files of TestConfigMistakes anew")

// mistakenFiles are files with mistakes; beside each stands what check says of it.
func mistakenFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "config", "*.yaml"))
	if err != nil || len(paths) < 60 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	return paths
}

// TestConfigMistakes: what check says of each mistake, to the letter. Nothing that a variable or a
// file gave is in it, nor what stands where a secret may.
func TestConfigMistakes(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_SECRET", "HIDDEN/value")
	t.Setenv("SPILLWAY_TEST_EMPTY", "")
	folder, err := filepath.Abs(filepath.Join("testdata", "config"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range mistakenFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			got := command(t, "", "check", "-c", path)
			said := filepath.ToSlash(strings.ReplaceAll(got.err, folder+string(filepath.Separator), ""))
			golden := strings.TrimSuffix(path, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(said), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if said != string(want) || got.code != exitFailed || got.out != "" {
				t.Errorf("exit code %d, said\n%swant\n%s", got.code, said, want)
			}
			if strings.Contains(said, "HIDDEN") {
				t.Errorf("a secret is in it:\n%s", said)
			}
			if strings.HasPrefix(filepath.Base(path), "tests_") {
				return // which serve does not run
			}
			if serve := command(t, "", "serve", "-c", path); serve.err != got.err || serve.code != got.code {
				t.Errorf("serve says otherwise: %+v", serve)
			}
		})
	}
}

// schema compiles what check --schema prints.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	got := command(t, "", "check", "--schema")
	if got.code != 0 || got.err != "" {
		t.Fatalf("%+v", got)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(got.out))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("spillway.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("spillway.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is a file as an editor gives it to the schema; nil: the file is no YAML.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestConfigSchema: the schema refuses the mistakes that it can see; the others say why it cannot.
func TestConfigSchema(t *testing.T) {
	s := schema(t)
	for _, path := range mistakenFiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		v := instance(t, text)
		if v == nil {
			continue
		}
		err = s.Validate(v)
		if blind := bytes.HasPrefix(text, []byte("# schema: ")); blind && err != nil {
			t.Errorf("%s: it can be seen after all: %v", path, err)
		} else if !blind && err == nil {
			t.Errorf("%s: the schema takes it", path)
		}
	}
}

// TestConfigExamples: check takes the examples, and so does the schema; together they have every
// scheme and every key.
func TestConfigExamples(t *testing.T) {
	s := schema(t)
	said := ""
	for _, path := range exampleFiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		said += string(text)
		if got := command(t, "", "check", "-c", path); got.code != 0 || got.out+got.err != "" {
			t.Errorf("%+v", got)
		}
		if err := s.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		got := command(t, "", "config", "-c", path)
		if got.code != 0 || got.err != "" {
			t.Errorf("%+v", got)
		}
		again := filepath.Join(t.TempDir(), "again.yaml")
		if err := os.WriteFile(again, []byte(got.out), 0o600); err != nil {
			t.Fatal(err)
		}
		if second := command(t, "", "config", "-c", again); second != got {
			t.Errorf("%s: what is in force reads as %+v, not as %+v", path, second, got)
		}
	}
	for key, ends := range endTables() {
		for scheme := range ends {
			if scheme != "" && !strings.Contains(said, scheme+":") {
				t.Errorf("%s: no example has %s:", key, scheme)
			}
		}
	}
	for key := range schemaKeys(t) {
		if !strings.Contains(said, "\n"+key+":") {
			t.Errorf("no example has %s:", key)
		}
	}
}

func exampleFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.yaml", filepath.Join("conf.d", "*.yaml")} {
		paths, err := filepath.Glob(filepath.Join("..", "..", "examples", "config", pattern))
		needs.Have(t, err == nil && len(paths) > 0, "the repository, not the module alone")
		all = append(all, paths...)
	}
	return all
}

// schemaKeys are the keys of a file's top.
func schemaKeys(t *testing.T) map[string]any {
	t.Helper()
	var s struct{ Properties map[string]any }
	if err := json.Unmarshal([]byte(command(t, "", "check", "--schema").out), &s); err != nil ||
		len(s.Properties) < 10 {
		t.Fatal(err, s)
	}
	return s.Properties
}

// TestConfigDocuments: check takes each block of YAML in the documents that is a configuration.
func TestConfigDocuments(t *testing.T) {
	top := filepath.Join("..", "..")
	paths, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	needs.Have(t, err == nil && len(paths) > 0, "the repository, not the module alone")
	s := schema(t)
	blocks := 0
	for _, path := range append(paths, filepath.Join(top, "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n```yaml\n")[1:] {
			block, _, _ := strings.Cut(part, "\n```")
			if strings.HasPrefix(block, "containers:") { // of another program
				continue
			}
			blocks++
			file := filepath.Join(t.TempDir(), "block.yaml")
			if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("SITE", "berlin")
			if got := command(t, "", "check", "-c", file); got.code != 0 {
				t.Errorf("%s: %s\n%s", path, block, got.err)
			}
			if err := s.Validate(instance(t, []byte(block))); err != nil {
				t.Errorf("%s: %s\n%v", path, block, err)
			}
		}
	}
	if blocks < 2 {
		t.Errorf("only %d blocks were found", blocks)
	}
}

// shownURL finds URLs with parameters in the text of a document.
var shownURL = regexp.MustCompile("\\b[a-z][a-z+]*:[^\\s`'\"]*\\?[a-z_]+=[^\\s`'\"]*")

// TestDocumentURLs: each URL with parameters in the documents is one of an input or of an output;
// or it is abridged, a link, or shared, as files of loggers alone are.
func TestDocumentURLs(t *testing.T) {
	top := filepath.Join("..", "..")
	paths, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	needs.Have(t, err == nil && len(paths) > 0, "the repository, not the module alone")
	file := filepath.Join(t.TempDir(), "url.yaml")
	found := 0
	for _, path := range append(paths, filepath.Join(top, "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, url := range shownURL.FindAllString(string(text), -1) {
			if strings.HasPrefix(url, "http") || strings.Contains(url, "…") || strings.Contains(url, "shared=") {
				continue
			}
			found++
			url = strings.Replace(url, "file://DIR", "file:///DIR", 1)
			said := ""
			for _, side := range []string{"inputs", "outputs"} {
				if err := os.WriteFile(file, fmt.Appendf(nil, "%s: {x: %q}\n", side, url), 0o600); err != nil {
					t.Fatal(err)
				}
				got := command(t, "", "check", "-c", file)
				if got.code == 0 {
					said = ""
					break
				}
				said += got.err
			}
			if said != "" {
				t.Errorf("%s: %s\n%s", path, url, said)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d URLs were found", found)
	}
}

// TestConfigFlags: what a flag says holds, whatever the file says, default or not.
func TestConfigFlags(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "spillway.yaml")
	if err := os.WriteFile(file, []byte("data: "+filepath.ToSlash(dir)+
		"/file\nack: journaled\nmax_event: 1MiB\nstatus_every: 0\nlog_level: debug\n"+
		"inputs: {in: 'forward://127.0.0.1:0'}\noutputs: {a: 'discard:', b: 'discard:'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "-c", file, "--ack", "synced", "--data", filepath.Join(dir, "flag"), "--to", "c=discard:")
	if line := s.next("keeping"); line["data"] != filepath.Join(dir, "flag") {
		t.Error(line)
	}
	if line := s.next("writing"); line["output"] != "c" {
		t.Error(line)
	}
	if line := s.next("acking"); line["ack"] != "synced" {
		t.Error(line)
	}
	if line := s.next("listening"); line["input"] != "in" {
		t.Error(line)
	}
	s.end()
	if code := <-s.code; code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err == nil {
		t.Error("the file's data directory was made")
	}
}

// TestConfigShown: what variables and files gave is not printed.
func TestConfigShown(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_SECRET", "HIDDEN ${value}&more")
	dir := t.TempDir()
	file := filepath.Join(dir, "spillway.yaml")
	for name, text := range map[string]string{
		"secret":        "HIDDEN\r\n",
		"spillway.yaml": "data: /tmp/${file:secret}\nack: ${SPILLWAY_TEST_ACK:-delivered}\noutputs:\n  a: {url: 'file:///x/y', tag_key: '$${y', time_key: '${SPILLWAY_TEST_SECRET}'}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := command(t, "", "config", "-c", file)
	for _, want := range []string{
		"\ndata: \"/tmp/***\"\n", "\nack: delivered\n",
		"\n# inputs, without a name: \"forward://127.0.0.1:24224\"\n", "  a: \"file:///x/y?tag_key=$${y&time_key=***\"\n",
	} {
		if !strings.Contains("\n"+got.out, want) {
			t.Errorf("no %q in\n%s", want, got.out)
		}
	}
	if got.code != 0 || strings.Contains(got.out+got.err, "HIDDEN") {
		t.Errorf("%+v", got)
	}
}

// TestConfigZeros: a size of 0 is the default, in what is printed and in what the process takes.
func TestConfigZeros(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spillway.yaml")
	zeros := "data: /d\n"
	for _, key := range []string{
		"journal_size", "letters_size", "max_chunk", "max_unpacked", "max_event", "memory", "removed_drain",
	} {
		zeros += key + ": 0\n"
	}
	var got [2]string
	for i, text := range []string{"data: /d\n", zeros} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got[i] = command(t, "", "config", "-c", file).out
	}
	if got[0] != got[1] || !strings.Contains(got[0], "\nmemory: 64MiB\n") {
		t.Errorf("zeros print as\n%sdefaults as\n%s", got[1], got[0])
	}
	set, err := (&serveCmd{}).setUp(nil)
	if err != nil || set.collector.Memory != 64<<20 {
		t.Errorf("%d bytes, %v", set.collector.Memory, err)
	}
}

// TestCheckOpensNothing: nothing that a file names is made, opened, or listened at.
func TestCheckOpensNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "spillway.yaml")
	text := "data: DIR/data\ninputs:\n  a: forward+unix:DIR/a.sock\n  b: {url: 'forward+tls://127.0.0.1:1', cert: none, key: none}\n" +
		"outputs:\n  c: file:DIR/none/x.jsonl\n  d: kafka://127.0.0.1:1/t?tls=true&ca=/none\n"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", filepath.ToSlash(dir))), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := command(t, "", "check", "-c", file); got.code != 0 || got.out+got.err != "" {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
	if got := command(t, "", "check"); got.code != exitUsage || !strings.Contains(got.err, "check -c FILE") {
		t.Errorf("%+v", got)
	}
}
