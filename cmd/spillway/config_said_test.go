// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unsaid are texts that no golden file has, by why that is so.
var unsaid = map[string][]string{
	"an event makes it fail, not the configuration": {
		"%s: panic: %v", "a value breaks off at element %d", "the tag would be empty",
		"the tag would have %d bytes; it may have %d", "the tag has no such part",
		"lookup: %s: %w; what was read before stays in force",
		"%s has no use for %s", "%s has no use for %s and %s", "[] has no use for a map and %s",
		"[] has no use for %s and a number", "index %d of %d is out of range", ".. has no use for %d",
	},
	"a program says it that uses package spillway or collector; files are read by types, or with expressions": {
		"Options.TLS and Login belong to Forward servers", "parameter \"tls\": %q is not dial",
		"tls=dial says that Options.Dial makes the connections TLS, and there is none",
		"tls=dial says that Options.Dial makes the connections TLS, so nothing else can say how",
		"shared=%s is about a file that several processes write, and with {pid} in its path each has its own",
		"shared=lock: there are no such locks on this system", "a %T is no constant",
		"this is no name of a column", "lookup has a file", "the name of a field is empty",
		"on_error is %s or %s, not %q", "a comparison begins with a field; the constant stands behind it",
		"%s is a field; a field is compared with a constant, such as \"%s\"", "an expression is more than a field",
		"this is no UTF-8", "parameter %q: its value is not %s",
	},
	"an input says it when it is opened": {"syslog: %w"},
	"tail says it of its flags":          {"%s, at byte %d: %s", "it has %d bytes; it may have %d"},
	"it is too large for a golden file: TestLoadBounds, TestTableMistakes, TestTableRewritten": {
		"include: these are more than %d files", "all files together are larger than %d KiB",
		"it is larger than %d KiB", "the value is larger than %d KiB", "it is larger than %d MiB",
		"it has more than %d rows", "it takes too much memory: its columns have long names",
		"an expression has at most 4 KiB", "it changes while it is read",
	},
	"a slip of ours, or of a library": {
		"a setting of type %v", "this cannot be read as YAML", "this is not understood",
	},
}

// TestConfigSaid: each text with which the configuration's readers refuse something is in a golden
// file, or says why it is in none.
func TestConfigSaid(t *testing.T) {
	var said strings.Builder
	for _, path := range mistakenFiles(t) {
		b, err := os.ReadFile(strings.TrimSuffix(path, ".yaml") + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		said.Write(b)
	}
	excuses := map[string]string{}
	for why, texts := range unsaid {
		for _, text := range texts {
			excuses[text] = why
		}
	}
	left := maps.Clone(excuses)
	for _, pattern := range []string{
		"../internal/config/*.go", "../internal/expression/*.go", "../../internal/step/*.go",
		"../../internal/urls/*.go",
		"../../internal/output/plan.go", "../../collector/routes.go", "../internal/admin/plan.go",
		"../internal/kafka/settings.go", "../internal/kafka/template.go", "../internal/syslog/syslog.go",
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for at, text := range refusals(f) {
				inGolden := patternOf(text).MatchString(said.String())
				if why := excuses[text]; inGolden == (why != "") {
					t.Errorf("%s: %q is in a golden file: %t; excused: %q", fset.Position(at), text, inGolden, why)
				}
				delete(left, text)
			}
		}
	}
	for text, why := range left {
		t.Errorf("nobody says %q any more, of which: %s", text, why)
	}
}

var verb = regexp.MustCompile(`%[+#]?[a-z]`)

// patternOf matches what a format makes, over lines.
func patternOf(format string) *regexp.Regexp {
	parts := verb.Split(format, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(strings.ReplaceAll(parts[i], "%%", "%"))
	}
	return regexp.MustCompile(strings.Join(parts, `.*`))
}

// refusals returns the constant texts that a file makes errors of, and where they stand. Errors
// that are variables of the package are left out: they are of events, or wrapped.
func refusals(f *ast.File) map[token.Pos]string {
	all := map[token.Pos]string{}
	note := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			if len(regexp.MustCompile(`[a-z]`).FindAllString(verb.ReplaceAllString(text, ""), -1)) > 3 {
				all[lit.Pos()] = text
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.VAR
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			switch name {
			case "New", "Errorf", "ErrorAbout", "Sprintf", "wrong", "mistake", "refuse", "fail":
				for _, a := range n.Args {
					note(a)
				}
			}
		case *ast.KeyValueExpr:
			if k, ok := n.Key.(*ast.Ident); ok && k.Name == "Text" {
				note(n.Value)
			}
		}
		return true
	})
	return all
}
