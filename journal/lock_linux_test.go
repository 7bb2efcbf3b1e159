// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestClosedWhileAChildStarts: between its fork and its exec a child has all files of its parent
// open, the locked one too. A journal that is closed meanwhile can be opened again all the same.
func TestClosedWhileAChildStarts(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := unix.Dup(int(j.lock.(lockHolder).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err = Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
