// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
)

// table reads the codes, by their names.
func table(t *testing.T) map[string]string {
	t.Helper()
	codes := map[string]string{}
	f, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes[spec.Names[0].Name] = text
		}
		return true
	})
	return codes
}

// TestTable: each code is one of its kind, and each kind of peer error has one.
func TestTable(t *testing.T) {
	codes := table(t)
	shape := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	named := map[string]string{}
	for name, code := range codes {
		if !shape.MatchString(code) {
			t.Errorf("%s: %q is not words with dashes", name, code)
		}
		if named[code] != "" {
			t.Errorf("%s and %s are both %q", name, named[code], code)
		}
		named[code] = name
	}
	for _, kind := range forward.PeerErrorKinds() {
		if named[string(Peer(kind))] == "" {
			t.Errorf("%s is not in the table, though it is a kind of peer error", Peer(kind))
		}
	}
}

// repository is its top folder.
func repository(t *testing.T) string {
	t.Helper()
	top := filepath.Join("..", "..")
	_, err := os.Stat(filepath.Join(top, "go.work"))
	needs.Have(t, err == nil, "the repository, not the module alone: %v", err)
	return top
}

// entry is a row of docs/messages.md: a code, what happened, what to do.
var entry = regexp.MustCompile("(?m)^\\| (?:<a id=\"([a-z-]+)\"></a>)?`([a-z-]+)` \\| ([^|]+) \\| ([^|]+) \\|$")

// TestDocument: docs/messages.md has an entry for each code, and none besides.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository(t), "docs", "messages.md"))
	if err != nil {
		t.Fatal(err)
	}
	codes := slices.Collect(maps.Values(table(t)))
	told := map[string]bool{}
	for _, e := range entry.FindAllStringSubmatch(string(text), -1) {
		anchor, code, happened, do := e[1], e[2], e[3], e[4]
		if !slices.Contains(codes, code) {
			t.Errorf("docs/messages.md: no message has the code %s", code)
		}
		if told[code] || anchor != "" && anchor != code || len(happened) < 20 || len(do) < 5 {
			t.Errorf("docs/messages.md: %s is there twice, has another's anchor, or says nothing", code)
		}
		told[code] = true
	}
	for _, code := range codes {
		if !told[code] {
			t.Errorf("docs/messages.md says nothing of %s", code)
		}
	}
}

// collectors are the folders whose messages are those of a collector.
var collectors = []string{
	"collector", "cmd/spillway", "cmd/internal/admin", "cmd/internal/kafka",
	"cmd/internal/syslog",
}

// TestEachMessage: whatever a collector logs has a code, and each code is used.
func TestEachMessage(t *testing.T) {
	top := repository(t)
	used := map[string]bool{}
	for _, kind := range forward.PeerErrorKinds() {
		used[string(Peer(kind))] = true
	}
	codes := table(t)
	folders := append([]string{
		"internal/files", "internal/follow", "internal/successor", "internal/letters",
		"internal/output",
	}, collectors...)
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(top, folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && named(s.X) == "codes" {
					used[codes[s.Sel.Name]] = true
				}
				if call, ok := n.(*ast.CallExpr); ok && plain(call) {
					t.Errorf("%v: a message without a code: let package codes say it", set.Position(call.Pos()))
				}
				return true
			})
		}
	}
	for _, code := range codes {
		if !used[code] {
			t.Errorf("no message has the code %s", code)
		}
	}
}

// loggers are the methods of slog.Logger that log.
var loggers = []string{
	"Debug", "Info", "Warn", "Error", "DebugContext", "InfoContext", "WarnContext", "ErrorContext",
	"Log", "LogAttrs",
}

// plain says whether a call logs by a logger itself, not by a code: one of the table, or what a
// variable "code" has. What http.Error writes is an answer.
func plain(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 || !slices.Contains(loggers, method.Sel.Name) {
		return false
	}
	switch by := method.X.(type) {
	case *ast.SelectorExpr:
		return named(by.X) != "codes"
	case *ast.CallExpr: // codes.Of(err, …)
		of, ok := by.Fun.(*ast.SelectorExpr)
		return !ok || named(of.X) != "codes"
	default:
		return named(by) != "code" && named(by) != "http"
	}
}

func named(e ast.Expr) string {
	if i, ok := e.(*ast.Ident); ok {
		return i.Name
	}
	return ""
}
