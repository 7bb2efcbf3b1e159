// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

const rootPath = "github.com/example/log"

// files are a small repository of the same shape as this one.
var files = map[string]string{
	"go.mod":       "module " + rootPath + "\n\ngo 1.25.0\n",
	"log.go":       "package log\n\nconst Text = \"released\"\n",
	"LICENSE":      "a licence\n",
	"CHANGELOG.md": "# Changelog\n\n## v0.1.0-rc.1\n\n## v0.1.0 (today)\n\n## v2.0.0\n",
	"cmd/go.mod": "module " + rootPath + "/cmd\n\ngo 1.25.0\n\nrequire " + rootPath +
		" v0.0.0\n\nreplace " + rootPath + " => ../\n",
	"cmd/go.sum":       "",
	"cmd/tool/main.go": "package main\n\nimport \"" + rootPath + "\"\n\nfunc main() { print(log.Text) }\n",
	"compat/fluent/go.mod": "module " + rootPath + "/compat/fluent\n\ngo 1.25.0\n\nrequire " + rootPath +
		" v0.0.0\n\nreplace " + rootPath + " => ../../\n",
	"compat/fluent/go.sum":     "example.com/z v1.10.0/go.mod h1:x=\n",
	"compat/fluent/fluent.go":  "package fluent\n\nimport _ \"" + rootPath + "\"\n",
	"compat/fluent/new/go.mod": "module " + rootPath + "/compat/fluent/new\n",
	"compat/fluent/new/new.go": "package new\n",
	"go.work":                  "go 1.25.0\n\nuse (\n\t.\n\t./cmd\n\t./compat/fluent\n\t./compat/fluent/new\n)\n",
}

func init() { // adapters are all alike
	for _, dir := range nested {
		if _, ok := files[dir+"/go.mod"]; !ok {
			files[dir+"/go.mod"] = "module " + rootPath + "/" + dir + "\n\ngo 1.25.0\n\nrequire " + rootPath +
				" v0.0.0\n\nreplace " + rootPath + " => ../../\n"
			files[dir+"/go.sum"] = ""
			files[dir+"/adapter.go"] = "package adapter\n\nimport _ \"" + rootPath + "\"\n"
		}
	}
}

// repository commits the files, some of them changed.
func repository(t *testing.T, changed map[string]string) *git {
	t.Helper()
	_, err := exec.LookPath("git")
	needs.Have(t, err == nil, "no git: install it")
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "test")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	g := &git{dir: t.TempDir()}
	for name, text := range files {
		if c, ok := changed[name]; ok {
			text = c
		}
		path := filepath.Join(g.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", "main"},
		{"add", "--all"},
		{"commit", "--quiet", "-m", "begin"},
	} {
		g.must(t, args...)
	}
	return g
}

func (g *git) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := g.run(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// state is what a release that is not made leaves as it was.
func (g *git) state(t *testing.T) string {
	t.Helper()
	return g.must(t, "for-each-ref") + g.must(t, "status", "--porcelain=2", "--branch")
}

func TestRelease(t *testing.T) {
	repo := repository(t, nil)
	before := repo.must(t, "status", "--porcelain=2", "--branch")
	proxy := filepath.Join(t.TempDir(), "proxy")
	var out bytes.Buffer
	if err := release(&options{repository: filepath.Join(repo.dir, "cmd"), version: "v0.1.0", proxy: proxy},
		&out); err != nil {
		t.Fatal(err)
	}
	if after := repo.must(t, "status", "--porcelain=2", "--branch"); after != before {
		t.Errorf("the working tree or the branch changed: %s, was %s", after, before)
	}
	if got, want := repo.must(t, "tag"), strings.Join(nested, "/v0.1.0\n")+"/v0.1.0\nv0.1.0"; got != want {
		t.Errorf("tags %q, want %q", got, want)
	}
	if got, want := repo.must(t, "rev-parse", "v0.1.0^{commit}"), repo.must(t, "rev-parse", "main"); got != want {
		t.Errorf("the root's tag is on %s, want main's %s", got, want)
	}
	var changes []string
	for _, dir := range nested {
		changes = append(changes, dir+"/go.mod", dir+"/go.sum")
	}
	if got, want := repo.must(t, "diff", "--name-only", "v0.1.0", "cmd/v0.1.0"), strings.Join(changes,
		"\n"); got != want {
		t.Errorf("the commit beside the branch changes %q, want %q", got, want)
	}
	if mod := repo.must(t, "show", "cmd/v0.1.0:cmd/go.mod"); strings.Contains(mod, "replace") ||
		!strings.Contains(mod, rootPath+" v0.1.0") {
		t.Errorf("the command's go.mod: %s", mod)
	}
	if !strings.Contains(out.String(), "git push --atomic origin v0.1.0 "+strings.Join(nested, "/v0.1.0 ")+
		"/v0.1.0\n") {
		t.Errorf("it said %s", &out)
	}

	// The go command makes its own modules of the tags, and finds what the proxy has.
	fromProxy := goCommand{"GOPROXY=file://" + proxy, "GOMODCACHE=" + t.TempDir()}
	fromTags := goCommand{
		"GOPROXY=direct", "GOVCS=*:git", "GOMODCACHE=" + t.TempDir(),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + repo.dir + ".insteadOf",
		"GIT_CONFIG_VALUE_0=https://" + rootPath,
	}
	for _, dir := range []string{"", "/cmd", "/compat/fluent", "/adapter/zap"} {
		type download struct{ Version, Sum, GoModSum string }
		var served, tagged download
		for from, to := range map[*goCommand]*download{&fromProxy: &served, &fromTags: &tagged} {
			if err := json.Unmarshal([]byte(from.run(t, "mod", "download", "-json", rootPath+dir+"@v0.1.0")),
				to); err != nil {
				t.Fatal(err)
			}
		}
		if served != tagged {
			t.Errorf("%s: the proxy has %v, the tag %v", dir, served, tagged)
		}
	}
	bin := t.TempDir()
	install := append(goCommand{"GOBIN=" + bin}, fromProxy...)
	install.run(t, "install", rootPath+"/cmd/tool@latest")
	if text, err := exec.Command(filepath.Join(bin, "tool")).CombinedOutput(); err != nil ||
		string(text) != "released" {
		t.Errorf("the installed command: %s, %v", text, err)
	}
}

// goCommand is an environment for the go command.
type goCommand []string

func (g goCommand) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), "GOARCH=", "GOWORK=off", "GOSUMDB=off", "GONOPROXY=", "GOPRIVATE=",
		"GOFLAGS=-modcacherw"), g...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %v: %v: %s%s", args, err, out, &stderr)
	}
	return string(out)
}

// TestDryRun runs in a second working tree of a repository.
func TestDryRun(t *testing.T) {
	repo := &git{dir: filepath.Join(t.TempDir(), "second")}
	repository(t, nil).must(t, "worktree", "add", "--quiet", "--detach", repo.dir)
	state := func() string { return repo.state(t) + repo.must(t, "count-objects", "-v") }
	before := state()
	proxy := filepath.Join(t.TempDir(), "proxy")
	if err := release(&options{repository: repo.dir, version: "v0.1.0-rc.1", proxy: proxy, dryRun: true},
		t.Output()); err != nil {
		t.Fatal(err)
	}
	if after := state(); after != before {
		t.Errorf("the repository changed: %s, was %s", after, before)
	}
	if list, err := os.ReadFile(filepath.Join(proxy, rootPath, "cmd", "@v", "list")); string(list) != "v0.1.0-rc.1\n" {
		t.Errorf("the proxy lists %q, %v", list, err)
	}
}

func TestRefused(t *testing.T) {
	replaced := files["go.mod"] + "\nreplace example.com/a => ../a\n"
	for _, c := range []struct {
		name, version string
		changed       map[string]string
		prepare       func(t *testing.T, repo *git, proxy string)
		want          string
	}{
		{name: "no version", version: "0.1.0", want: "no version"},
		{name: "short version", version: "v0.1", want: "no version"},
		{name: "build metadata", version: "v0.1.0+a", want: "no version"},
		{name: "empty version", version: "", want: "no version"},
		{name: "pseudo-version", version: "v0.0.0-20261122030301-742528f1b2c3", want: "no version"},
		{name: "another major version", version: "v2.0.0", want: "should be v0 or v1"},
		{name: "changelog", version: "v0.2.0", want: `no heading "## v0.2.0"`},
		{name: "half of a heading", version: "v0.1.0-rc", want: `no heading "## v0.1.0-rc"`},
		{
			name: "root replaces", version: "v0.1.0", changed: map[string]string{"go.mod": replaced},
			want: "go.mod replaces example.com/a",
		},
		{
			name: "root excludes", version: "v0.1.0",
			changed: map[string]string{"go.mod": files["go.mod"] + "exclude example.com/a v1.0.0\n"},
			want:    "go.mod excludes example.com/a",
		},
		{
			name: "command replaces", version: "v0.1.0",
			changed: map[string]string{"cmd/go.mod": files["cmd/go.mod"] + "\nreplace example.com/a => ../a\n"},
			want:    "cmd/go.mod replaces example.com/a",
		},
		{
			name: "command without root", version: "v0.1.0",
			changed: map[string]string{"cmd/go.mod": "module " + rootPath + "/cmd\n"},
			want:    "cmd/go.mod does not require",
		},
		{
			name: "broken go.sum", version: "v0.1.0", changed: map[string]string{"cmd/go.sum": "a line\n"},
			want: "cmd/go.sum",
		},
		{
			name: "untracked file", version: "v0.1.0", want: "?? new.txt",
			prepare: func(t *testing.T, repo *git, _ string) {
				if err := os.WriteFile(filepath.Join(repo.dir, "new.txt"), nil, 0o666); err != nil {
					t.Fatal(err)
				}
			},
		},
		{name: "changed file", version: "v0.1.0", want: "M log.go", prepare: func(t *testing.T, repo *git, _ string) {
			if err := os.WriteFile(filepath.Join(repo.dir, "log.go"), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}},
		{
			name: "tag", version: "v0.1.0", want: "tag compat/fluent/v0.1.0 exists",
			prepare: func(t *testing.T, repo *git, _ string) {
				repo.must(t, "tag", "compat/fluent/v0.1.0")
			},
		},
		{
			name: "a ref in the way of a tag", version: "v0.1.0", want: "cmd/v0.1.0",
			prepare: func(t *testing.T, repo *git, _ string) {
				repo.must(t, "tag", "cmd/v0.1.0/x") // seen only when all else is made
			},
		},
		{
			name: "proxy", version: "v0.1.0", want: "a new folder is needed",
			prepare: func(t *testing.T, _ *git, proxy string) {
				if err := os.Mkdir(proxy, 0o777); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			repo := repository(t, c.changed)
			beside := t.TempDir()
			proxy := filepath.Join(beside, "proxy")
			if c.prepare != nil {
				c.prepare(t, repo, proxy)
			}
			state := func() string { return repo.state(t) + tree(t, beside) }
			before := state()
			err := release(&options{repository: repo.dir, version: c.version, proxy: proxy}, t.Output())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := state(); after != before {
				t.Errorf("something is left: %s, was %s", after, before)
			}
		})
	}
}

// tree lists all that is in a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(names)
}
