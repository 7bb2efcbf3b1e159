// SPDX-License-Identifier: Apache-2.0

package mover

import (
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
	return filepath.Join(needs.Shm(t), "rings")
}
