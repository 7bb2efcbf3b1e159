// SPDX-License-Identifier: Apache-2.0

package floors

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// mapLine is a folder's heading in the file map, or a row with its files.
var mapLine = regexp.MustCompile("(?m)^(?:### `([^`]+)`|\\| (`[^|]*`) \\|)")

// unmapped are the folders and files that the map leaves out.
var unmapped = regexp.MustCompile(`^(test|bench|examples|compat)$|(^|/)(\.[^/]+|testdata|doc\.go|[^/]+_test\.go)$`)

// TestFileMap: the file map of DESIGN.md names files that are there, once, and all of 100
// lines or more.
func TestFileMap(t *testing.T) {
	files := os.DirFS(repository(t))
	design, err := fs.ReadFile(files, "DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(design), "\n## File map\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named, folder := map[string]bool{}, ""
	for _, m := range mapLine.FindAllStringSubmatch(section, -1) {
		folder = cmp.Or(m[1], folder)
		for name := range strings.SplitSeq(strings.ReplaceAll(m[2], "`", ""), ", ") {
			name = path.Join(folder, name) // of a heading: the folder
			if _, err := fs.Stat(files, name); err != nil || named[name] {
				t.Errorf("%s is not there, or is named twice: correct its row in the file map of DESIGN.md", name)
			}
			named[name] = true
		}
	}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && unmapped.MatchString(name) {
			return skipDir(err)
		}
		if path.Ext(name) != ".go" || unmapped.MatchString(name) || named[name] {
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if bytes.Count(text, []byte("\n")) >= 100 {
			t.Errorf("%s: add a row to the file map of DESIGN.md, below the heading of its folder", name)
		}
		return err
	})
	if err != nil || len(named) == 0 {
		t.Errorf("%d files are named, %v", len(named), err)
	}
}
