// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// An Account is what the collector says it has counted: the numbers of its account, by their names,
// such as "input0.in" and "journal.used"; without a number, the sums over all inputs.
type Account map[string]int64

func parseAccount(t testing.TB, text string) Account {
	t.Helper()
	var line struct {
		Inputs, Outputs    []map[string]any
		Journal, Repeats   map[string]any
		Counting           bool
		Memory, Goroutines int64
	}
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		t.Fatalf("no account: %v: %q", err, text)
	}
	a := Account{"memory": line.Memory, "goroutines": line.Goroutines}
	add := func(prefix string, values map[string]any) {
		for name, v := range values {
			if n, ok := v.(float64); ok {
				a[prefix+name] += int64(n)
			}
		}
	}
	for i, in := range line.Inputs {
		add(fmt.Sprintf("input%d.", i), in)
		add("", in)
	}
	for i, out := range line.Outputs {
		prefix := fmt.Sprintf("output%d.", i)
		add(prefix, out)
		dropped, _ := out["dropped"].(map[string]any)
		for _, v := range dropped {
			add(prefix, map[string]any{"dropped": v})
		}
	}
	add("journal.", line.Journal)
	add("repeats.", line.Repeats)
	if line.Counting {
		a["counting"] = 1
	}
	return a
}

// Check returns an error for the first law of the collector's Stats that does not hold.
func (a Account) Check() error {
	groups := []string{""}
	for i := 0; a.Has(fmt.Sprintf("input%d.in", i)); i++ {
		groups = append(groups, fmt.Sprintf("input%d.", i))
	}
	for _, g := range groups {
		if a[g+"in"] != a[g+"stored"]+a[g+"repeated"]+a[g+"skipped"]+a[g+"invalid"]+a[g+"oversize"]+a[g+"refused"] {
			return fmt.Errorf("%sin is not stored + repeated + skipped + invalid + oversize + refused: %v", g, a)
		}
		if a[g+"chunks"] != a[g+"stored_chunks"]+a[g+"repeated_chunks"]+a[g+"refused_chunks"] {
			return fmt.Errorf("%schunks is not stored + repeated + refused: %v", g, a)
		}
	}
	for i := 0; a.Has(fmt.Sprintf("output%d.out", i)); i++ {
		g := fmt.Sprintf("output%d.", i)
		if a["counting"] == 1 { // what it has found is not counted to the end
			break
		}
		if a[g+"found"]+a["stored"] != a[g+"out"]+a[g+"filtered"]+a[g+"dropped"]+a[g+"dead_lettered"]+a[g+"behind"] {
			return fmt.Errorf("%sfound + stored is not out + filtered + dropped + dead_lettered + behind: %v", g, a)
		}
	}
	return nil
}

// Has tells whether the account has a number of that name.
func (a Account) Has(name string) bool {
	_, ok := a[name]
	return ok
}

const accountMark = `"msg":"account"`

// LastAccount is the last one that the collector gave: at its end, if it has ended.
func (c *Collector) LastAccount() Account {
	c.T.Helper()
	text := c.Log.String()
	at := max(0, strings.LastIndex(text, accountMark))
	line, _, _ := strings.Cut(text[strings.LastIndexByte(text[:at], '\n')+1:], "\n")
	return parseAccount(c.T, line)
}
