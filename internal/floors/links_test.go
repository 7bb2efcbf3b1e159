// SPDX-License-Identifier: Apache-2.0

package floors

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	anchor  = regexp.MustCompile(`<a id="([^"]+)">`)
	promise = regexp.MustCompile(`(?m)^\| [A-Z].*\|$`)
)

// slug is the anchor of a heading, as code hosts make it.
func slug(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// TestDocumentLinks: each relative link of the documents leads to a file, an anchor, and, where its
// text is the name of a test, to that test.
func TestDocumentLinks(t *testing.T) {
	top := repository(t)
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	seen := 0
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && name != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return skipDir(err)
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		for _, m := range link.FindAllStringSubmatch(read(name), -1) {
			u, err := url.Parse(m[2])
			if err != nil || u.Scheme != "" {
				continue
			}
			seen++
			target := name
			if u.Path != "" {
				target = filepath.Join(filepath.Dir(name), filepath.FromSlash(u.Path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: [%s](%s): %v", name, m[1], m[2], err)
				continue
			}
			if u.Fragment != "" && !hasAnchor(read(target), u.Fragment) {
				t.Errorf("%s: [%s](%s): there is no such anchor", name, m[1], m[2])
			}
			if strings.HasPrefix(m[1], "Test") && !strings.Contains(read(target), "\nfunc "+m[1]+"(t *testing.T)") {
				t.Errorf("%s: there is no %s in %s", name, m[1], target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("no link was found")
	}
}

func skipDir(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

func hasAnchor(text, id string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		if slug(m[1]) == id {
			return true
		}
	}
	for _, m := range anchor.FindAllStringSubmatch(text, -1) {
		if m[1] == id {
			return true
		}
	}
	return false
}

// TestPromisesAreHeld: each promise names a test.
func TestPromisesAreHeld(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(repository(t), "docs", "promises.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := promise.FindAllString(string(b), -1)
	for _, row := range rows {
		if !strings.Contains(row, "[Test") {
			t.Errorf("no test holds this: %s", row)
		}
	}
	if len(rows) < 10 {
		t.Errorf("%d promises were found", len(rows))
	}
}

// placeOf is a function in a file, as DESIGN.md names the steps of its walks; the function may be
// left out.
var placeOf = regexp.MustCompile("`((?:[a-z0-9_]+/)*[a-z0-9_]+\\.go)(?::(\\w+))?`")

// TestWalks: each file and function that DESIGN.md names is there.
func TestWalks(t *testing.T) {
	top := repository(t)
	b, err := os.ReadFile(filepath.Join(top, "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range placeOf.FindAllStringSubmatch(string(b), -1) {
		file, function := m[1], m[2]
		if function == "" {
			continue
		}
		named++
		text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(file)))
		if err != nil {
			t.Errorf("%s: %v", m[0], err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?` + function + `[(\[]`).Match(text) {
			t.Errorf("%s: no such function", m[0])
		}
	}
	if named < 20 {
		t.Errorf("only %d functions are named; is the pattern right?", named)
	}
}
