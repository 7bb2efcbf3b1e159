// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"os"
	"testing"
	"time"
)

// Dir makes a folder that is gone when the test has ended, as t.TempDir does, but waits for what
// may still write there: what a Close that was bounded left behind, a process just killed.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		t.Fatal(err)
	}
	removeAfter(t, dir)
	return dir
}

// Shm is Dir in memory, as rings have it in production, where there is a file system for that.
func Shm(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", prefix)
	if err != nil {
		return Dir(t)
	}
	removeAfter(t, dir)
	return dir
}

const (
	prefix     = "spillway-test-"
	removeTime = time.Minute // as long as a disk may hang, and longer
)

func removeAfter(t testing.TB, dir string) {
	t.Cleanup(func() {
		t.Helper()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(removeTime); ; <-tick.C {
			err := os.RemoveAll(dir)
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Error(err)
				return
			}
		}
	})
}
