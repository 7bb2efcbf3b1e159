// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// TestCheckConnect: a line an output says whether it works now, and the exit code whether all do.
// Nothing is left behind, and what a variable gave is not shown.
func TestCheckConnect(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "spillway.yaml")
	t.Setenv("SPILLWAY_TEST_NOBODY", needs.Address())
	text := "data: DIR/data\noutputs:\n  archive: file:DIR/a/b/{tag}.jsonl\n  screen: \"stdout:\"\n"
	for _, tt := range []struct {
		more, want, err string
		code            int
	}{
		{"", "archive: ok\nscreen: ok\n", "", 0},
		{
			"  next: forward://${SPILLWAY_TEST_NOBODY}\n", "archive: ok\nscreen: ok\nnext: ",
			"1 of 3 outputs do not work now", exitFailed,
		},
		{"  next: forwards://x\n", "", "forwards", exitFailed},
	} {
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", filepath.ToSlash(dir))+tt.more),
			0o600); err != nil {
			t.Fatal(err)
		}
		got := command(t, "", "check", "-c", file, "--connect")
		if got.code != tt.code || !strings.HasPrefix(got.out, tt.want) || tt.want == "" && got.out != "" ||
			!strings.Contains(got.err, tt.err) {
			t.Errorf("%+v, want %+v", got, tt)
		}
		if strings.Contains(got.out+got.err, os.Getenv("SPILLWAY_TEST_NOBODY")) {
			t.Errorf("a variable's value is shown: %+v", got)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}
