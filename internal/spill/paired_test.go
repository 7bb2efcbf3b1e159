// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"path/filepath"
	"testing"
	"time"
)

// TestNameOfTheRing: the own spill has the ring's name, also when one without was made before it.
func TestNameOfTheRing(t *testing.T) {
	f := New(&Options{
		Name: "test", Dir: t.TempDir(), MaxDisk: 1 << 20, BootID: func() string { return "" },
		Report: func(err error) { t.Error(err) },
	})
	const ring = "test.1.0123456789abcdef"
	for i, path := range []string{"", filepath.Join("shm", ring), filepath.Join("shm", ring)} {
		sp, err := f.Make(path, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		defer sp.Close()
		if paired := filepath.Base(sp.Dir) == ring; paired != (i == 1) {
			t.Errorf("spill %d is %s", i, sp.Dir)
		}
	}
}
