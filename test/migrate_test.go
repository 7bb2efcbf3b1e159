// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMigrationCompiles builds each piece of Go in docs/migrate-logger.md, with the modules of the
// workspace.
func TestMigrationCompiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/migrate-logger.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 9 {
		t.Fatalf("%d pieces", len(blocks))
	}
	const spillway = "github.com/spillwaylog/spillway"
	imports := []struct{ name, path string }{
		{"spillway", spillway},
		{"spillwaylogr", spillway + "/adapter/logr"},
		{"spillwaylogrus", spillway + "/adapter/logrus"},
		{"spillwayzap", spillway + "/adapter/zap"},
		{"spillwayzerolog", spillway + "/adapter/zerolog"},
		{"logrus", "github.com/sirupsen/logrus"},
		{"zap", "go.uber.org/zap"},
		{"zerolog", "github.com/rs/zerolog"},
		{"logr", "github.com/go-logr/logr"},
		{"slog", "log/slog"},
		{"stdlog", "log"},
	}
	dir := t.TempDir()
	var program, body strings.Builder
	program.WriteString("package main\n\nimport (\n\t\"context\"\n")
	for _, block := range blocks[1:] { // the first one makes log
		body.WriteString("\tif log != nil {\n" + block[1] + "\t}\n")
	}
	// What a piece makes is used by the reader's program.
	made := regexp.MustCompile(`(?m)^(\w+) := .*$`)
	lines := made.ReplaceAllString(body.String(), "$0\n_ = $1")
	for _, i := range imports {
		if strings.Contains(blocks[0][1]+lines, i.name+".") {
			program.WriteString("\t" + i.name + " \"" + i.path + "\"\n")
		}
	}
	program.WriteString(")\n\nfunc run(ctx context.Context) error {\n" + blocks[0][1] + lines + "\treturn err\n}\n\nfunc main() { _ = run(context.Background()) }\n")
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "program"), file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, program.String())
	}
}
