// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGroup(t *testing.T) {
	if text := group([]notes{{Package: "a"}}); text != "" {
		t.Errorf("%q of nothing", text)
	}
	got := group([]notes{
		{Package: "b", Skips: []skip{
			{"TestD", "no\nroot"},
			{"TestA/x", "no\nroot"},
			{"TestC", "no\nroot"},
			{"TestB", "no\nroot"},
			{"TestB", "no\nroot"},
		}},
		{Package: "a", Skips: []skip{{"TestE", strings.Repeat("ü", 400)}}},
	})
	want := "6 tests were skipped:\n  a: TestE: " + strings.Repeat("ü", 300) +
		"…\n  b: TestA/x, TestB, TestC and 1 more: no root\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestKept keeps notes of a folder, and forgets them with it.
func TestKept(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("LocalAppData", cache)
	root := t.TempDir()
	dir := filepath.Join(root, "a")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Run("keep", func(t *testing.T) {
		t.Chdir(dir)
		if err := write("a"); err != nil {
			t.Fatal(err)
		}
	})
	count := func(root string, want int) {
		t.Helper()
		if all, err := kept(root); err != nil || len(all) != want {
			t.Errorf("%v, %v: want %d", all, err, want)
		}
	}
	count(root, 1)
	count(t.TempDir(), 0)
	path := os.Getenv("PATH")
	t.Setenv("PATH", path+"x")
	count(root, 0)
	t.Setenv("PATH", path)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	count(root, 0)
	dirs, err := notesDir()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dirs); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
