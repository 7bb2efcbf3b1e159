// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// shmDir is a folder for rings that is removed when the test ends.
func shmDir(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("no shared memory that outlives a process here")
	}
	base, err := os.MkdirTemp("/dev/shm", "mover-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	return filepath.Join(base, "rings")
}
