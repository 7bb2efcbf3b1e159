// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// TestDirIsGone: a folder is gone when its test has ended, though something wrote there for longer.
func TestDirIsGone(t *testing.T) {
	for name, folder := range map[string]func(testing.TB) string{"disk": Dir, "memory": Shm} {
		t.Run(name, func(t *testing.T) {
			var dir string
			var writers sync.WaitGroup
			t.Run("writes", func(t *testing.T) {
				dir = folder(t)
				for w := range 4 {
					writers.Go(func() {
						for n := range 2000 {
							_ = os.Mkdir(filepath.Join(dir, strconv.Itoa(n%8)), 0o700)
							_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(n%8), strconv.Itoa(w)), nil, 0o600)
						}
					})
				}
			})
			writers.Wait()
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("%s: %v", dir, err)
			}
		})
	}
}
