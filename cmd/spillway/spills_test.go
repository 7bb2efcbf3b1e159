// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpills: a logger's Dir shows all its spills, and the dead letters beside them.
func TestSpills(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		url, data, stop := serve(t)
		if got := command(t, fmt.Sprintf("event %d\n", i), "send", "--to", url); got.code != 0 {
			t.Fatalf("%+v", got)
		}
		stop()
		spill := filepath.Join(dir, fmt.Sprintf("app.%d.0123456789abcdef", i+1))
		if err := os.Rename(filepath.Join(data, "journal"), spill); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(spill, "owner.json"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, withLetters := range []int{0, 1} {
		if withLetters > 0 {
			mustCloseStore(t, putLetters(t, dir, deadLetter("web", "400 Bad Request", 1, 7)))
		}
		got := command(t, "", "journal", "ls", dir)
		if got.code != 0 || strings.Count(got.out, "SEGMENT") != 2 ||
			!strings.Contains(got.out, filepath.Join(dir, "app.2.0123456789abcdef")+":\n") ||
			strings.Count(got.out, "400 Bad Request") != 2*withLetters {
			t.Errorf("ls: %+v", got)
		}
		got = command(t, "", "journal", "cat", dir)
		if got.code != 0 || strings.Count(got.out, "\n") != 2+withLetters || !strings.Contains(got.out, `"event 0"`) ||
			!strings.Contains(got.out, `"event 1"`) {
			t.Errorf("cat: %+v", got)
		}
		got = command(t, "", "journal", "verify", dir)
		if got.code != 0 || strings.Count(got.out, "records, ") != 2+withLetters {
			t.Errorf("verify: %+v", got)
		}
		got = command(t, "", "merge", dir)
		if got.code != 0 || strings.Count(got.out, "\n") != 2 || !strings.Contains(got.out, `"event 1"`) {
			t.Errorf("merge: %+v", got)
		}
	}
}
