// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// meant is a sentence about which of some words was probably meant; empty if none is near.
func meant(word string, known []string) string {
	best, least := "", len(word)/3+1
	if len(word) > 64 { // no key is so long
		return ""
	}
	for _, k := range known {
		d := distance(strings.ToLower(word), k)
		if len(word) > 2 && strings.HasPrefix(k, word) {
			d = 1
		}
		if d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is how many letters have to be added, removed, changed or swapped with the next one.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
