// SPDX-License-Identifier: Apache-2.0

package floors

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how wide prose may be: comments of Go and paragraphs of Markdown. A tab counts as
// 4.
const maxColumns = 100

var (
	// comment is a line of prose alone on its line, or of a list. Indented deeper it is a drawing,
	// a table or code.
	comment = regexp.MustCompile(`^\t*//( |   *(-|\d+\.) )\S`)
	// drawn is what a drawing, or a table without lines, has and prose has not.
	drawn = regexp.MustCompile(`[─│┌┐└┘├┤┬┴┼►◄▲▼]|\S   +\S`)
	// unbroken is a line that cannot be broken: a link or a path of its own, perhaps in a list.
	unbroken = regexp.MustCompile(`^\s*(//|-|\d+\.)?\s*\S+$`)
)

// TestWidth: no comment and no line of a document is wider than maxColumns. Tables, drawings and
// blocks of code are left out, and so is what a test compares with an output.
func TestWidth(t *testing.T) {
	top := repository(t)
	looked := 0
	check := func(name string, n int, line string) {
		looked++
		columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
		if columns > maxColumns && !drawn.MatchString(line) && !unbroken.MatchString(line) {
			t.Errorf("%s:%d has %d columns", name, n+1, columns)
		}
	}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && name != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return skipDir(err)
		}
		ext := filepath.Ext(name)
		if ext != ".go" && ext != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		code, output := false, false
		for n, line := range strings.Split(string(text), "\n") {
			trimmed := strings.TrimSpace(line)
			switch {
			case ext == ".md" && strings.HasPrefix(trimmed, "```"):
				code = !code
			case ext == ".md" && !code && !strings.HasPrefix(trimmed, "|"):
				check(name, n, line)
			case ext == ".go" && comment.MatchString(line):
				output = output || strings.HasPrefix(trimmed, "// Output:") ||
					strings.HasPrefix(trimmed, "// Unordered output:")
				if !output {
					check(name, n, line)
				}
			default:
				output = false
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 1000 {
		t.Errorf("looked at %d lines: the test tests nothing", looked)
	}
}

// maxCode is how wide code may be, and longText the columns of a text by which a line may be
// wider: it cannot be broken.
const (
	maxCode  = 120
	longText = 50
)

// TestCodeWidth: no line of code is wider than maxCode, unless a long text is in it, such as a
// message, a tag of a field or what a linter is told.
func TestCodeWidth(t *testing.T) {
	looked := 0
	err := filepath.WalkDir(repository(t), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return skipDir(err)
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		looked++
		excused := linesWithTexts(src)
		for n, line := range strings.Split(string(src), "\n") {
			columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if columns > maxCode && !excused[n+1] {
				t.Errorf("%s:%d has %d columns", name, n+1, columns)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 500 {
		t.Errorf("looked at %d files: the test tests nothing", looked)
	}
}

// linesWithTexts are the lines, from 1, that have a long text or a part of one, or a comment that
// is alone or for a linter.
func linesWithTexts(src []byte) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	lines := map[int]bool{}
	last := 0
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return lines
		}
		line := file.Line(pos)
		comment := kind == token.COMMENT && (line != last || strings.HasPrefix(text, "//nolint"))
		long := utf8.RuneCountInString(text) >= longText || strings.Contains(text, "\n")
		if comment || long && kind == token.STRING {
			for i := range 1 + strings.Count(text, "\n") {
				lines[line+i] = true
			}
		}
		last = line + strings.Count(text, "\n")
	}
}
