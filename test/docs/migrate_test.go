// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestMigrationCompiles builds each piece of Go in docs/migrate-logger.md, with the modules of the
// workspace.
func TestMigrationCompiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/migrate-logger.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 9 {
		t.Fatalf("%d pieces", len(blocks))
	}
	var body strings.Builder
	for _, block := range blocks[1:] { // the first one makes log
		body.WriteString("\tif log != nil {\n" + block[1] + "\t}\n")
	}
	// What a piece makes is used by the reader's program.
	made := regexp.MustCompile(`(?m)^(\w+) := .*$`)
	lines := made.ReplaceAllString(body.String(), "$0\n_ = $1")
	buildPieces(t, blocks[0][1]+lines+"\treturn err\n")
}

// buildPieces builds a program that runs pieces of Go from documents, with the modules of the
// workspace: they are the body of a function that has a context and returns an error.
func buildPieces(t *testing.T, body string) (path string) {
	t.Helper()
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
	var program strings.Builder
	program.WriteString("package main\n\nimport (\n\t\"context\"\n\t\"os\"\n")
	for _, i := range imports {
		if regexp.MustCompile(`\b` + i.name + `\.`).MatchString(body) {
			program.WriteString("\t" + i.name + " \"" + i.path + "\"\n")
		}
	}
	program.WriteString(")\n\nfunc run(ctx context.Context) error {\n" + body +
		"}\n\nfunc main() {\n\tif err := run(context.Background()); err != nil {\n\t\tprintln(err.Error())\n\t\tos.Exit(1)\n\t}\n}\n")
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	rig.Must(t, os.WriteFile(file, []byte(program.String()), 0o600))
	path = filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-o", path, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, program.String())
	}
	return path
}
