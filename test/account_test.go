// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// An account is what the collector says it has counted: the numbers of its line "account", by their names, such as "input0.in".
type account map[string]int64

var accountField = regexp.MustCompile(`([a-z_0-9.]+)=(-?[0-9]+)(?: |$)`)

func parseAccount(t testing.TB, text string) account {
	t.Helper()
	a := account{}
	for _, m := range accountField.FindAllStringSubmatch(strings.TrimSpace(text), -1) {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", m[0], err)
		}
		a[m[1]] = n
	}
	if strings.Contains(text, "counting=true") {
		a["counting"] = 1
	}
	if _, ok := a["in"]; !ok {
		t.Fatalf("no account: %q", text)
	}
	return a
}

// check returns an error for the first law of the collector's Stats that does not hold.
func (a account) check() error {
	groups := []string{""}
	for i := 0; a.has(fmt.Sprintf("input%d.in", i)); i++ {
		groups = append(groups, fmt.Sprintf("input%d.", i))
	}
	for _, g := range groups {
		if a[g+"in"] != a[g+"stored"]+a[g+"repeated"]+a[g+"skipped"]+a[g+"invalid"]+a[g+"refused"] {
			return fmt.Errorf("%sin is not stored + repeated + skipped + invalid + refused: %v", g, a)
		}
		if a[g+"chunks"] != a[g+"stored_chunks"]+a[g+"repeated_chunks"]+a[g+"refused_chunks"] {
			return fmt.Errorf("%schunks is not stored + repeated + refused: %v", g, a)
		}
	}
	for i := 0; a.has(fmt.Sprintf("output%d.out", i)); i++ {
		g := fmt.Sprintf("output%d.", i)
		if a[g+"found"]+a["stored"] != a[g+"out"]+a[g+"dropped"]+a[g+"dead_lettered"]+a[g+"buffered"] {
			return fmt.Errorf("%sfound + stored is not out + dropped + dead_lettered + buffered: %v", g, a)
		}
	}
	return nil
}

func (a account) has(name string) bool {
	_, ok := a[name]
	return ok
}

const accountMark = "msg=account"

// lastAccount is the last one that the collector gave: at its end, if it has ended.
func (c *collector) lastAccount() account {
	c.t.Helper()
	text := c.log.String()
	_, line, _ := strings.Cut(text[max(0, strings.LastIndex(text, accountMark)):], accountMark)
	line, _, _ = strings.Cut(line, "\n")
	return parseAccount(c.t, line)
}
