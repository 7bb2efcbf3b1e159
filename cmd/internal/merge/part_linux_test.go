// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipe: a pipe that has taken the place of a file is not waited for.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, 0, []byte("{}\n"))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &part{path: path, same: info, size: info.Size(), spool: &spool{}}
	if err := errors.Join(os.Rename(path, filepath.Join(dir, "old")), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(make([]byte, 3)); !errors.Is(err, errKind) {
		t.Error(err)
	}
}
