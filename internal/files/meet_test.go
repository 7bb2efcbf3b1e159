// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMeet(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"/log/a", "/log/a", true},
		{"/log/a", "/log/../log//a", true},
		{"/log/a", "/log/b", false},
		{"/log/{tag}", "/log/b", true},
		{"/log/{tag}.jsonl", "/log/b", false},
		{"/log/{tag}.jsonl", "/log/{tag}.{date}.jsonl", true}, // a tag may look like that
		{"/log/{tag}.jsonl", "/log/{tag}.text", false},
		{"/log/{date}", "/log/2026-11-21", true},
		{"/log/{date}", "/log/2026-11-2x", false},
		{"/log/{date}", "/log/other", true},
		{"/log/{date}", "/log/{hour}", true}, // both have their rest there
		{"/log/x{date}", "/log/y{hour}", false},
		{"/log/{tag}/a", "/log/b/{tag}", true},
		{"/log/{tag}/a", "/log/b", false},
		{"/log/{tag}", "/log/b/a", false},
		{"/log/a-{tag}", "/log/{tag}-b", true},
		{"/log/a-{tag}", "/log/b-{tag}", false},
		{"/log/{tag}{tag}", "/log/xy", true},
		{"/log/{tag}{tag}", "/log/x", false},
		{"/log/{host}", "/log/{pid}", true},
	} {
		for range 2 {
			if got, err := Meet(tt.a, tt.b); err != nil || got != tt.want {
				t.Errorf("%s, %s: %v, %v", tt.a, tt.b, got, err)
			}
			tt.a, tt.b = tt.b, tt.a
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err == nil {
		if got, err := Meet(filepath.Join(dir, "new", "x"), filepath.Join(dir, "link", "new", "{tag}")); err != nil ||
			!got {
			t.Errorf("behind a link: %v, %v", got, err)
		}
	}
	if _, err := Meet("/x", "/{"); err == nil {
		t.Error("no error")
	}
}
