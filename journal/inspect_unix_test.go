// SPDX-License-Identifier: Apache-2.0

//go:build unix

package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestInspectHostile: a pipe in place of a file is not waited for, and a file that says it is long
// takes no memory.
func TestInspectHostile(t *testing.T) {
	dir := t.TempDir()
	must(t, mustOpen(t, dir, nil).Close())
	for _, name := range []string{identityFile, segmentName(77), cursorPrefix + "pipe"} {
		path := filepath.Join(dir, name)
		_ = os.Remove(path)
		must(t, unix.Mkfifo(path, 0o600))
	}
	long := filepath.Join(dir, cursorPrefix+"long")
	must(t, os.WriteFile(long, nil, 0o600))
	must(t, os.Truncate(long, maxCursor+1))
	done := make(chan *Inspection)
	go func() {
		i, err := Inspect(dir)
		if err != nil {
			t.Error(err)
		}
		done <- i
	}()
	select {
	case i := <-done:
		if !errors.Is(i.IdentityErr, errIdentity) || len(i.Cursors) != 1 || !errors.Is(i.Cursors[0].Err, errCursor) {
			t.Errorf("%+v", i)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it waits for a pipe")
	}
}
