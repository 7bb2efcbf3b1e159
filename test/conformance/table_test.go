// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	forwardPage = filepath.Join("..", "..", "docs", "forward.md")
	forwardDir  = filepath.Join("..", "..", "forward")
)

const (
	tableBegin = "<!-- conformance: begin -->"
	tableEnd   = "<!-- conformance: end -->"
)

// ruleTests are the tests of package forward that name a rule.
func ruleTests(t *testing.T) map[int][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(forwardDir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", forwardDir, err)
	}
	tests := map[int][]string{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (TestRule(\d\d)\w*)\(t \*testing\.T\)`).FindAllSubmatch(b, -1) {
			n, _ := strconv.Atoi(string(m[2])) // two digits
			tests[n] = append(tests[n], string(m[1]))
		}
	}
	for _, list := range tests {
		slices.Sort(list)
	}
	return tests
}

// TestEachRuleIsHeld wants a test of package forward for each rule, and that what cannot be seen
// from outside is held by one.
func TestEachRuleIsHeld(t *testing.T) {
	tests := ruleTests(t)
	page, err := os.ReadFile(forwardPage)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rules {
		r := &rules[i]
		if r.number != i+1 {
			t.Fatalf("rule %d stands in the place of %d", r.number, i+1)
		}
		if len(tests[r.number]) == 0 {
			t.Errorf("no test of package forward is named TestRule%02d…", r.number)
		}
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^%d\. `, r.number)).Match(page) {
			t.Errorf("rule %d does not stand in %s", r.number, forwardPage)
		}
		for _, h := range r.held {
			if !slices.Contains(tests[r.number], h.Test) {
				t.Errorf("rule %d: %s: there is no test %s", r.number, h.What, h.Test)
			}
		}
	}
	if n := len(rules); n != 46 || len(tests) > n {
		t.Errorf("%d rules, tests of %d", n, len(tests))
	}
}

// markdown writes results as a table.
func markdown(list []result, tests map[int][]string) string {
	var subjects []string
	cells := map[string]result{}
	for _, r := range list {
		if !slices.Contains(subjects, r.Subject) {
			subjects = append(subjects, r.Subject)
		}
		cells[fmt.Sprint(r.Rule, r.Subject)] = r
	}
	var b strings.Builder
	row := func(columns ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(columns, " | ")) }
	head := append([]string{"rule", ""}, subjects...)
	if tests != nil {
		head = append(head, "in package `forward`", "seen only there")
	}
	row(head...)
	row(slices.Repeat([]string{"---"}, len(head))...)
	for i := range rules {
		r := &rules[i]
		columns := []string{strconv.Itoa(r.number), r.words}
		for _, s := range subjects {
			cell := "–"
			if have, ok := cells[fmt.Sprint(r.number, s)]; ok {
				if cell = have.State; have.Note != "" && tests == nil {
					cell += ": " + strings.ReplaceAll(have.Note, "|", "\\|")
				}
			}
			columns = append(columns, cell)
		}
		if tests != nil {
			var held []string
			for _, h := range r.held {
				held = append(held, h.What)
			}
			columns = append(columns, "`"+strings.Join(tests[r.number], "`, `")+"`", strings.Join(held, "; "))
		}
		row(columns...)
	}
	return b.String()
}

// conclude writes the report and the table, and holds those of this repository's own ends against
// docs/forward.md.
func conclude(t *testing.T, list []result) {
	if *report != "" {
		b, err := json.MarshalIndent(list, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*report, append(b, '\n'), 0o600); err != nil {
			t.Error(err)
		}
	}
	if *table != "" {
		if err := os.WriteFile(*table, []byte(markdown(list, nil)), 0o600); err != nil {
			t.Error(err)
		}
	}
	if foreign() {
		counts := map[string]int{}
		for _, r := range list {
			counts[r.Subject+": "+r.State]++
		}
		for _, k := range slices.Sorted(maps.Keys(counts)) {
			t.Logf("%s: %d rules", k, counts[k])
		}
		return
	}
	tried := 0
	for i := range rules {
		if rules[i].server != nil {
			tried++
		}
		if rules[i].client != nil {
			tried += 2
		}
	}
	if len(list) != tried {
		t.Logf("%d of %d rules and ends were tried: there is nothing to compare", len(list), tried)
		return
	}
	page, err := os.ReadFile(forwardPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin+"\n")
	old, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s lacks %s or %s", forwardPage, tableBegin, tableEnd)
	}
	tests := ruleTests(t)
	text := markdown(list, tests)
	switch {
	case sameTable(text, old, tests):
	case *update:
		if err := os.WriteFile(forwardPage, []byte(before+tableBegin+"\n"+text+tableEnd+after), 0o644); err != nil { //nolint:gosec // a page that all may read
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is not what this run found; \"go test ./test/conformance -update\" writes it again:\n%s", forwardPage, text)
	}
}

var testNames = regexp.MustCompile("`TestRule[^|]*`")

// sameTable compares two tables but for the tests of package forward that they name: those of the
// old one must exist, and there may be new ones.
func sameTable(text, old string, tests map[int][]string) bool {
	var have []string
	for _, list := range tests {
		have = append(have, list...)
	}
	for _, name := range regexp.MustCompile(`TestRule\w+`).FindAllString(old, -1) {
		if !slices.Contains(have, name) {
			return false
		}
	}
	return testNames.ReplaceAllString(text, "") == testNames.ReplaceAllString(old, "")
}
