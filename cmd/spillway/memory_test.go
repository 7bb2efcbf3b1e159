// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// Memory goes back once after each time of work.
func TestQuiet(t *testing.T) {
	var q quiet
	for i, look := range []struct {
		u    usage
		want bool
	}{
		{usage{5, 300 << 20}, false}, // at work
		{usage{9, 300 << 20}, false},
		{usage{9, 300 << 20}, true}, // quiet: one more cycle
		{usage{10, 30 << 20}, false},
		{usage{10, 40 << 20}, false},
		{usage{12, 300 << 20}, false}, // at work again
		{usage{12, 300 << 20}, true},
		{usage{13, 300 << 20}, false}, // what is in use does not go
		{usage{13, 300 << 20}, false},
		{usage{14, 10 << 20}, false},
		{usage{14, 10 << 20}, false}, // little
	} {
		if got := q.look(look.u); got != look.want {
			t.Errorf("look %d: %t, want %t", i, got, look.want)
		}
	}
}
