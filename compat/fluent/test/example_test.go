// SPDX-License-Identifier: Apache-2.0

package test_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

const (
	theirPath = "github.com/fluent/fluent-logger-golang"
	ourPath   = "github.com/spillwaylog/spillway/compat/fluent"

	// releaseEnv names the version that the programs are built with, in place of this checkout.
	releaseEnv = "SPILLWAY_RELEASE"
)

// TestDocumentedExamples runs the programs that the original documents, as they are in its module,
// against a server at the default address: once with the import path changed and nothing else, once
// as they are, with a replace directive in go.mod.
func TestDocumentedExamples(t *testing.T) {
	needs.Time(t, "builds programs")
	run(t, ".", "mod", "download", theirPath)
	original := strings.TrimSpace(string(run(t, ".", "list", "-m", "-f", "{{.Dir}}", theirPath)))
	programs := map[string]string{}
	readme, err := os.ReadFile(filepath.Join(original, "README.md"))
	must(t, err)
	for block := range strings.SplitSeq(string(readme), "```") {
		if code, ok := strings.CutPrefix(block, "go\n"); ok && strings.HasPrefix(code, "package main") {
			programs["README"] = code
		}
	}
	example, err := os.ReadFile(filepath.Join(original, "_examples", "main.go"))
	must(t, err)
	programs["_examples"] = string(example)
	if len(programs) != 2 {
		t.Fatal("the README has no program")
	}
	for name, code := range programs {
		for _, way := range []string{"import", "replace"} {
			t.Run(name+", "+way, func(t *testing.T) {
				if !strings.Contains(code, theirPath+"/fluent") {
					t.Fatal("it does not import the original")
				}
				ours := code
				if way == "import" {
					ours = strings.ReplaceAll(code, theirPath+"/fluent", ourPath+"/fluent")
				}
				runDocumented(t, build(t, ours, way), name == "_examples")
			})
		}
	}
}

// build compiles a program in a module of its own.
func build(t *testing.T, code, way string) string {
	t.Helper()
	dir := t.TempDir()
	path, version := ourPath, cmp.Or(os.Getenv(releaseEnv), "v0.0.0")
	if way == "replace" {
		path, version = theirPath, "v1.10.2"
	}
	mod := fmt.Sprintf("module example.com/program\n\ngo 1.25.0\n\nrequire %s %s\n", path, version)
	if release := os.Getenv(releaseEnv); release == "" {
		compat, err := filepath.Abs("..")
		must(t, err)
		mod += fmt.Sprintf("\nreplace (\n\t%s => %s\n\tgithub.com/spillwaylog/spillway => %s\n)\n", path, compat,
			filepath.Join(compat, "..", ".."))
		sums, err := os.ReadFile(filepath.Join(compat, "go.sum"))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600))
	} else if way == "replace" {
		mod += fmt.Sprintf("\nreplace %s => %s %s\n", path, ourPath, release)
	}
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(code), 0o600))
	run(t, dir, "mod", "tidy") // what a user would do
	if way == "replace" {
		if tidy, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil ||
			!bytes.Contains(tidy, []byte("require "+theirPath)) {
			t.Fatalf("%s: %v", tidy, err)
		}
	}
	program := filepath.Join(dir, "program.exe")
	run(t, dir, "build", "-o", program, ".")
	return program
}

// run runs the go command.
func run(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if dir != "." {
		cmd.Env = append(cmd.Env, "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

// runDocumented runs a program and waits for two of its events. One that would go on for minutes is
// ended then.
func runDocumented(t *testing.T, program string, endless bool) {
	t.Helper()
	var l net.Listener
	for until := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:24224"); err == nil {
			break
		}
		if time.Now().After(until) { // other tests use the default address too, for a moment
			t.Fatal(err)
		}
	}
	s := serve(t, l)
	cmd := exec.Command(program)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	events := s.wait(2)
	if endless {
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	} else if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	for _, e := range events[:2] {
		equal(t, e.Tag, "myapp.access")
		equal(t, e.Record, any(map[string]any{"foo": "bar", "hoge": "hoge"}))
		if ago := time.Since(e.Time); ago < -time.Minute || ago > time.Hour {
			t.Errorf("time %v", e.Time)
		}
	}
}
