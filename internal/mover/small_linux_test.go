// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway/internal/needs"
)

// smallShm is a file system in memory for rings, of a size as mount takes it.
func smallShm(t *testing.T, size string) string {
	t.Helper()
	mem := t.TempDir()
	err := unix.Mount("tmpfs", mem, "tmpfs", 0, "size="+size)
	needs.Have(t, err == nil, "mounting a tmpfs needs root: %v", err)
	t.Cleanup(func() {
		if err := unix.Unmount(mem, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return mem
}

// fill takes all free space of a file system, down to the last page.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, n := range []int{1 << 20, 4096} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, n))
		}
	}
}

// TestSmallShm: where shared memory ends early the ring is a smaller one. With a destination that
// takes nothing the spill begins earlier; nothing is lost, and it is told, once.
func TestSmallShm(t *testing.T) {
	for _, stalled := range []bool{true, false} {
		mem := smallShm(t, "1m")
		d := &fake{}
		dir := ""
		if stalled {
			d.answer, dir = later, t.TempDir()
		}
		f := open(t, d, func(c *Config) {
			c.Shm, c.Dir, c.Overflow, c.MaxWait, c.RingSize = filepath.Join(mem,
				"rings"), dir, Block, 4*time.Minute, 16<<20
		})
		f.must("a", 1, 0, 10_000, 1000)
		f.must("b", 2, 0, 10, 1000)
		if s := f.m.Stats(); s.InMemory || s.RingSize > 1<<20 || s.Missed != (Missed{}) || stalled && s.Spilled == 0 {
			t.Errorf("%+v", s)
		}
		if err := f.post("c", 3, 0, 3<<20); !errors.Is(err, ErrTooLarge) ||
			!strings.Contains(err.Error(), "the limit is 1048576") {
			t.Error(err) // an event of a megabyte waits for room
		}
		d.open()
		f.close()
		ordered(t, d.all(), map[uint32]uint32{1: 10_000, 2: 10})
		f.mu.Lock()
		if len(f.told) > 1 || stalled && len(f.told) == 0 || len(f.told) == 1 &&
			!strings.Contains(f.told[0].Error(), "room for only") {
			t.Errorf("told %v", f.told)
		}
		f.mu.Unlock()
		if left, err := os.ReadDir(filepath.Join(mem, "rings")); err != nil || len(left) > 0 {
			t.Error(left, err)
		}
	}
}

// TestShmFillsUp has others take all of the shared memory while everything in the ring is with a
// destination that does not answer. What is on its way goes to the spill as well, so calls find
// room; the destination's answer counts all the same, and what it gives up the next process takes
// from the spill.
func TestShmFillsUp(t *testing.T) {
	for _, runs := range []bool{false, true} {
		for _, answers := range []bool{true, false} {
			mem, dir := smallShm(t, "16m"), t.TempDir()
			d := &fake{answer: later}
			conf := func(c *Config) {
				c.Shm, c.Dir, c.Ordered, c.Overflow, c.MaxWait = filepath.Join(mem, "rings"), dir, runs, Block, patience
				c.RingSize, c.BatchBytes, c.FlushInterval, c.Window = 8<<20, 64<<10, time.Millisecond, MaxWindow
			}
			f := open(t, d, conf)
			fill(t, mem)
			const n = 5000 // more than the ring is
			for n := range uint32(n) {
				f.must("t"+strconv.Itoa(int(n/100%2)), 1, n, n+1, 1000)
			}
			f.law() // so that nothing is between two counts
			if s := f.m.Stats(); s.Delivered != 0 || s.Missed != (Missed{}) {
				t.Errorf("runs %t: %+v", runs, s)
			}
			took := d.all()
			if answers {
				d.open()
				f.close()
			} else {
				_ = f.abandon(10 * time.Millisecond) // gives up what is on its way
				f.law()
				d = &fake{}
				f = open(t, d, conf)
				f.close()
			}
			ordered(t, append(took, d.all()...), map[uint32]uint32{1: n})
			for _, where := range []string{filepath.Join(mem, "rings"), dir} {
				if left := entriesOf(t, where); len(left) > 0 {
					t.Errorf("runs %t: left %q", runs, left)
				}
			}
		}
	}
}
