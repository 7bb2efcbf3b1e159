// SPDX-License-Identifier: Apache-2.0

package floors

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// An arrow is one import in one file.
type arrow struct {
	from string // package, relative to module
	to   string // import path
	test bool   // the file is a _test.go file
}

// verdict says what is wrong with an arrow, or nothing.
func verdict(a arrow) string {
	folder, _, _ := strings.Cut(a.from, "/")
	reach, onTop := top[folder]
	here, known := table[a.from]
	if !known && !onTop {
		return fmt.Sprintf("package %s is not in the table of internal/floors: add it with its floor and the packages it may import", a.from)
	}
	if !within(a.to, module) {
		return foreign(a, onTop)
	}
	to := root
	if a.to != module {
		to = strings.TrimPrefix(a.to, module+"/")
	}
	// An external test imports its own package.
	if to == a.from || (to == needsPath || to == testcert || to == alikePath) && a.test {
		return ""
	}
	if toFolder, _, _ := strings.Cut(to, "/"); onTop && toFolder == folder {
		return ""
	} else if _, toTop := top[toFolder]; toTop {
		return fmt.Sprintf("%s imports %s, which stands on floor 3: nothing may import it", a.from, to)
	}
	there, ok := table[to]
	if !ok {
		return fmt.Sprintf("%s imports %s, which is not in the table of internal/floors", a.from, to)
	}
	allowed := here.down
	if onTop {
		allowed = reach
	}
	if slices.Contains(allowed, to) || a.test && slices.Contains(here.tests, to) {
		return ""
	}
	if onTop {
		return fmt.Sprintf("%s imports %s: the table of internal/floors does not let %s do that", a.from, to, folder)
	}
	if there.floor > here.floor {
		return fmt.Sprintf("%s (floor %d) imports %s (floor %d): arrows point down only", a.from, here.floor, to,
			there.floor)
	}
	return fmt.Sprintf("%s (floor %d) imports %s (floor %d): that arrow is not in the table of internal/floors", a.from,
		here.floor, to, there.floor)
}

// foreign judges an import from outside the repository.
func foreign(a arrow, onTop bool) string {
	if first, _, _ := strings.Cut(a.to, "/"); !strings.Contains(first, ".") || onTop { // no dot: the standard library
		return ""
	}
	if slices.ContainsFunc(thirdParties, func(m string) bool { return within(a.to, m) }) {
		return ""
	}
	return fmt.Sprintf("%s imports %s: the root module imports only the standard library and %s", a.from, a.to,
		strings.Join(thirdParties, ", "))
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		a    arrow
		want string // part of the verdict; empty: allowed
	}{
		{arrow{from: "forward", to: module + "/msgpack"}, ""},
		{arrow{from: "forward", to: "github.com/klauspost/compress/gzip"}, ""},
		{arrow{from: "journal", to: "golang.org/x/sys/unix"}, ""},
		{arrow{from: "journal", to: "golang.org/x/system"}, "imports only the standard library"},
		{arrow{from: "journal", to: module + "/journal", test: true}, ""},
		{arrow{from: "journal", to: module + "/forward"}, "arrows point down only"},
		{arrow{from: "journal", to: module + "/msgpack"}, "that arrow is not in the table"},
		{arrow{from: "forward", to: module + "/journal"}, "that arrow is not in the table"},
		{arrow{from: "collector", to: module}, "that arrow is not in the table"},
		{arrow{from: root, to: module + "/collector"}, "that arrow is not in the table"},
		{arrow{from: root, to: module + "/cmd/spillway"}, "nothing may import it"},
		{arrow{from: "msgpack", to: "github.com/tinylib/msgp/msgp", test: true}, "imports only the standard library"},
		{arrow{from: "test/oracle", to: "github.com/tinylib/msgp/msgp", test: true}, ""},
		{arrow{from: "test", to: module + "/test/oracle"}, ""},
		{arrow{from: "cmd/spillway", to: module + "/collector"}, ""},
		{arrow{from: "cmd/spillway", to: module + "/test"}, "nothing may import it"},
		{arrow{from: "adapter/zap", to: module + "/journal"}, "does not let adapter"},
		{arrow{from: "ring", to: module + "/" + needsPath, test: true}, ""},
		{arrow{from: "compat/fluent/test", to: module + "/" + needsPath, test: true}, ""},
		{arrow{from: "collector", to: module + "/" + testcert, test: true}, ""},
		{arrow{from: "collector", to: module + "/" + testcert}, "that arrow is not in the table"},
		{arrow{from: "ring", to: module + "/" + needsPath}, "that arrow is not in the table"},
		{arrow{from: "compat/fluent/fluent", to: module + "/" + needsPath}, "does not let compat"},
		{arrow{from: "surprise", to: "fmt"}, "package surprise is not in the table"},
		{arrow{from: "forward", to: module + "/surprise"}, "which is not in the table"},
	} {
		got := verdict(tt.a)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %q, want %q in it", tt.a, got, tt.want)
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

// TestFloors reads the imports of all Go files, whatever their build constraints.
func TestFloors(t *testing.T) {
	top := repository(t)
	said := map[string]bool{}
	files := 0
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name != top && (strings.HasPrefix(base, ".") || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if path.Ext(base) != ".go" {
			return nil
		}
		files++
		noun := strings.TrimSuffix(strings.TrimSuffix(base, ".go"), "_test")
		if slices.Contains(barred, noun) {
			t.Errorf("%s: name the file after the one noun it is about", name)
		}
		rel, err := filepath.Rel(top, filepath.Dir(name))
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			v := verdict(arrow{from: filepath.ToSlash(rel), to: to, test: strings.HasSuffix(base, "_test.go")})
			if v != "" && !said[v] {
				said[v] = true
				t.Errorf("%s: %s", name, v)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 2 {
		t.Fatalf("found %d Go files below %s", files, top)
	}
}

// TestTable keeps the table itself in order: arrows down, or between different packages of one
// floor above 0, and no circles.
func TestTable(t *testing.T) {
	for from, p := range table {
		for _, to := range p.down {
			q, ok := table[to]
			if !ok {
				t.Errorf("%s may import %s, which is not in the table", from, to)
			}
			if q.floor > p.floor || p.floor <= 0 && q.floor == p.floor || slices.Contains(q.down, from) {
				t.Errorf("the table lets %s (floor %d) import %s (floor %d)", from, p.floor, to, q.floor)
			}
		}
	}
	for _, pair := range [][2]string{{root, "collector"}, {"collector", root}} {
		if slices.Contains(table[pair[0]].down, pair[1]) {
			t.Errorf("%s and %s must never import each other", pair[0], pair[1])
		}
	}
}
