// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestDirectoryThatMayNotBeRead: who may make files in a directory need not be allowed to list it.
func TestDirectoryThatMayNotBeRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dropbox")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // to root all is allowed: this thread becomes somebody else, as far as files go
		const nobody = 65534
		for p := dir; p != filepath.Dir(os.TempDir()) && p != filepath.Dir(p); p = filepath.Dir(p) {
			info, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			if p != os.TempDir() {
				if err := os.Chmod(p, info.Mode().Perm()|0o011); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread() // for good: the thread ends with the test
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(0)
	}
	if err := os.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	set, err := Open(filepath.Join(dir, "out.jsonl"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if err := extend(set, "t", 0, "line\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Sync(); err != nil {
		t.Errorf("sync: %v", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
