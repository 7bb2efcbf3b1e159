// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

var (
	promiseLink = regexp.MustCompile(`\[(Test\w+)\]\(([^)#]+)\)`)
	anyLink     = regexp.MustCompile(`\]\((\.{0,2}[^):]*?)(?:#[^)]*)?\)`)
)

// TestEachPromiseIsHeld wants that each test that the documents name is where they say, that each
// promise of the tables names one, and that what they link to is there.
func TestEachPromiseIsHeld(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	named := 0
	for _, page := range []string{
		filepath.Join(docs, "promises.md"), filepath.Join(docs, "losses.md"),
		filepath.Join(docs, "serve.md"), filepath.Join("..", "..", "README.md"),
	} {
		text, err := os.ReadFile(page)
		rig.Must(t, err)
		for _, m := range promiseLink.FindAllStringSubmatch(string(text), -1) {
			named++
			file := filepath.Join(filepath.Dir(page), filepath.FromSlash(m[2]))
			code, err := os.ReadFile(file)
			if err != nil || !regexp.MustCompile(`(?m)^func `+m[1]+`\(t \*testing\.T\)`).Match(code) {
				t.Errorf("%s names %s, which is not in %s: %v", page, m[1], file, err)
			}
		}
		for _, m := range anyLink.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "" { // within the page
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
		if !strings.HasSuffix(page, "promises.md") {
			continue
		}
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(line, "|")
			if len(cells) == 4 && !strings.HasPrefix(cells[1], "---") && !strings.Contains(line, "held by") &&
				!promiseLink.MatchString(cells[2]) {
				t.Errorf("no test holds this: %s", line)
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d tests are named: the pages look different from what this test reads", named)
	}
}
