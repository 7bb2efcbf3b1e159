// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway/internal/needs"
)

// TestSmallShm: where shared memory ends early the ring is a smaller one. With a destination that
// takes nothing the spill begins earlier; nothing is lost, and it is told, once.
func TestSmallShm(t *testing.T) {
	for _, stalled := range []bool{true, false} {
		mem := t.TempDir()
		err := unix.Mount("tmpfs", mem, "tmpfs", 0, "size=1m")
		needs.Have(t, err == nil, "mounting a tmpfs needs root: %v", err)
		t.Cleanup(func() {
			if err := unix.Unmount(mem, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		d := &fake{}
		dir := ""
		if stalled {
			d.answer, dir = later, t.TempDir()
		}
		f := open(t, d, func(c *Config) {
			c.Shm, c.Dir, c.Overflow, c.MaxWait, c.RingSize = filepath.Join(mem, "rings"), dir, Block, 4*time.Minute, 16<<20
		})
		f.must("a", 1, 0, 10_000, 1000)
		f.must("b", 2, 0, 10, 1000)
		if s := f.m.Stats(); s.InMemory || s.RingSize > 1<<20 || s.Drops != (Drops{}) || stalled && s.Spilled == 0 {
			t.Errorf("%+v", s)
		}
		if err := f.post("c", 3, 0, 3<<20); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "the most is 1048576") {
			t.Error(err) // an event of a megabyte waits for room
		}
		d.open()
		f.close()
		ordered(t, d.all(), map[uint32]uint32{1: 10_000, 2: 10})
		f.mu.Lock()
		if len(f.told) > 1 || stalled && len(f.told) == 0 || len(f.told) == 1 && !strings.Contains(f.told[0].Error(), "room for only") {
			t.Errorf("told %v", f.told)
		}
		f.mu.Unlock()
		if left, err := os.ReadDir(filepath.Join(mem, "rings")); err != nil || len(left) > 0 {
			t.Error(left, err)
		}
	}
}
