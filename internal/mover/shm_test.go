// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// shmDir is a folder for rings that is removed when the test ends.
func shmDir(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		needs.Skip(t, "no shared memory that outlives a process here")
	}
	base, err := os.MkdirTemp("/dev/shm", "mover-test-")
	needs.Have(t, err == nil, "a tmpfs at /dev/shm: %v", err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	return filepath.Join(base, "rings")
}
