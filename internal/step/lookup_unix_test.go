// SPDX-License-Identifier: Apache-2.0

//go:build unix

package step

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestTablePipe: a pipe that takes the place of a file when that was looked at already holds up
// nobody.
func TestTablePipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	table := &table{of: tableOf{path: path}}
	if _, err := table.read(); err == nil || err.Error() != "it is no regular file" {
		t.Error(err)
	}
}
