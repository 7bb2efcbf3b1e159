// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
)

// TestPusher: with NoSync the disk is set to work while lines come, by one goroutine at a time,
// which nobody waits for before Close. Without it Sync does that.
func TestPusher(t *testing.T) {
	line := append(bytes.Repeat([]byte{'x'}, 1<<20-1), '\n')
	for _, noSync := range []bool{true, false} {
		var asked, asking atomic.Int32
		hang := make(chan struct{})
		k := &kernel{
			sync: func(*os.File) error { return nil }, syncDir: func(string) error { return nil },
			push: func(f *os.File) {
				if asking.Add(1) > 1 {
					t.Error("two ask at once")
				}
				if asked.Add(1) == 1 {
					<-hang
				}
				pushData(f)
				asking.Add(-1)
			},
		}
		s, err := Open(filepath.Join(t.TempDir(), "log"), nil, &Options{NoSync: noSync, kernel: k})
		must(t, err)
		write := func() {
			_, err := s.Extend("", 0, func(dst []byte) []byte { return append(dst, line...) })
			must(t, err)
			must(t, s.Write())
		}
		for range 2*pushBytes/len(line) + 1 {
			write()
		}
		close(hang)
		for asking.Load() > 0 || s.handles.pusher.busy.Load() { // else the next write would ask for nothing
			runtime.Gosched()
		}
		write()
		must(t, s.Close())
		want := int32(0)
		if noSync {
			want = 2
		}
		if asked.Load() != want || asking.Load() != 0 {
			t.Errorf("NoSync %v: asked %d times, %d are asking", noSync, asked.Load(), asking.Load())
		}
	}
}
