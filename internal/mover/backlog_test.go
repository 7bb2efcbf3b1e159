// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

// later is a destination's answer while it is down.
func later(*job1) string { return "later" }

func entriesOf(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func TestHealthyTouchesNoDisk(t *testing.T) {
	dir := t.TempDir()
	d := &fake{}
	f := open(t, d, func(c *Config) { c.Dir, c.RingSize = dir, 16<<20 })
	f.must("a", 1, 0, 5000, 500)
	if names := entriesOf(t, dir); len(names) > 0 {
		t.Errorf("made %q", names)
	}
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 5000})
	if names := entriesOf(t, dir); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}

// A destination that takes nothing: what does not fit into the ring goes to the disk, and comes
// from there in order.
func TestSpills(t *testing.T) {
	for _, shm := range []bool{false, true} {
		dir := t.TempDir()
		d := &fake{answer: later}
		f := open(t, d, func(c *Config) {
			c.Dir = dir
			c.Overflow, c.MaxWait = Block, time.Minute
			if shm {
				c.Shm = shmDir(t)
			}
		})
		f.must("a", 1, 0, 10000, 1000)
		f.law() // so that nothing is between two counts
		if s := f.m.Stats(); s.Spilled == 0 || !s.Spilling || s.DiskUsed == 0 || s.Delivered != 0 {
			t.Errorf("%+v", s)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if err := f.m.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: %v", err)
		}
		cancel()
		d.open()
		f.must("a", 1, 10000, 11000, 1000)
		if err := f.m.Flush(within(t, patience)); err != nil {
			t.Error(err)
		}
		if s := f.m.Stats(); s.Spilling {
			t.Errorf("%+v", s)
		}
		f.must("a", 1, 11000, 12000, 1000)
		f.close()
		if s := f.m.Stats(); s.Spilling || s.DiskUsed != 0 {
			t.Errorf("%+v", s)
		}
		ordered(t, d.all(), map[uint32]uint32{1: 12000})
		if names := entriesOf(t, dir); len(names) > 0 {
			t.Errorf("left %q", names)
		}
	}
}

// Spilling, draining, spilling again.
func TestSpillsAgain(t *testing.T) {
	dir := t.TempDir()
	d := &fake{}
	f := open(t, d, func(c *Config) {
		c.Dir, c.Overflow, c.MaxWait = dir, Block, time.Minute
	})
	var n uint32
	for range 5 {
		d.mu.Lock()
		d.answer = later
		d.mu.Unlock()
		f.must("a", 1, n, n+3000, 1000)
		n += 3000
		d.open()
		f.must("a", 1, n, n+1500, 1000)
		n += 1500
		if err := f.m.Flush(within(t, patience)); err != nil {
			t.Fatal(err)
		}
	}
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: n})
}

// What Close could not deliver is delivered by the next one: from the ring and the spill in shared
// memory, from the spill alone otherwise.
func TestLeftForTheNext(t *testing.T) {
	for _, shm := range []bool{false, true} {
		for _, n := range []uint32{10, 400, 10000} {
			dir, mem := t.TempDir(), ""
			if shm {
				mem = shmDir(t)
			}
			conf := func(c *Config) {
				c.Dir, c.Shm, c.Overflow, c.MaxWait = dir, mem, Block, time.Minute
			}
			d := &fake{answer: later}
			f := open(t, d, conf)
			f.must("a", 1, 0, n, 1000)
			limit := 2 * time.Second // of which a quarter is for writing
			if shm {
				limit = 50 * time.Millisecond
			}
			err := f.abandon(limit)
			var left *UndeliveredError
			if !errors.As(err, &left) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("shm %v, %d events: Close: %v", shm, n, err)
			}
			if !shm && strings.Contains(err.Error(), "left behind") {
				// The disk was too slow for what Close has left, and the rest is lost, counted. The
				// next process has the others.
				t.Logf("a slow disk: %v", err)
				if left.Events+left.Lost != uint64(n) {
					t.Errorf("%d events: %+v", n, left)
				}
				continue
			}
			if left.Events != uint64(n) || len(left.Where) == 0 {
				t.Errorf("shm %v, %d events: Close: %v", shm, n, err)
			}
			f.law()
			e := &fake{}
			g := open(t, e, conf)
			if err := g.m.Flush(within(t, patience)); err != nil {
				t.Error(err)
			}
			if s := g.m.Stats(); s.Adopted.Events != uint64(n) {
				t.Errorf("%+v", s)
			}
			g.must("a", 2, 0, 10, 10)
			g.close()
			ordered(t, e.all(), map[uint32]uint32{1: n, 2: 10})
			if names := entriesOf(t, dir); len(names) > 0 {
				t.Errorf("left %q", names)
			}
			if mem != "" {
				if names := entriesOf(t, mem); len(names) > 0 {
					t.Errorf("left %q", names)
				}
			}
		}
	}
}

// TestLost: what only memory had is lost, and Close says how much, also where the mover's goroutine
// has given it up and has not ended when the time is over.
func TestLost(t *testing.T) {
	d := &fake{answer: later}
	f := open(t, d, nil)
	f.must("a", 1, 0, 300, 1000)
	err := f.abandon(10 * time.Millisecond)
	for _, err := range []error{err, f.m.closer.hung(context.DeadlineExceeded)} {
		var left *UndeliveredError
		if !errors.As(err, &left) || left.Events != 300 || left.Bytes < 300 || len(left.Where) != 0 || left.Lost != 0 {
			t.Errorf("Close: %v", err)
		}
	}
	if s := f.m.Stats(); s.Missed[GivenUp] != 300 || s.Held != 0 {
		t.Errorf("%+v", s)
	}
	f.law()
}

// When the disk spoils chunks, these are lost and counted, and no others.
func TestSpoiledSpill(t *testing.T) {
	for _, spoiled := range []int{1, 3, 4, 5, 8} {
		dir := t.TempDir()
		d := &fake{answer: later}
		f := open(t, d, func(c *Config) { c.Dir, c.Overflow, c.MaxWait = dir, Block, time.Minute })
		f.must("a", 1, 0, 3000, 1000)
		eventually(t, "spilled", func() bool { return f.m.Stats().Spilled > 20*60 })
		lost := uint64(0)
		var begin, end journal.Position
		eventually(t, "written", func() bool {
			writing := 0
			if err := f.m.mail.ask(t.Context(), func() { writing = f.m.loop.spiller.writing }); err != nil {
				t.Fatal(err)
			}
			return writing == 0
		})
		if err := f.m.mail.ask(t.Context(), func() {
			begin = f.m.loop.spiller.own.entries.At(minAhead - 1).Pos // what is before it may have been read already
			for i := range spoiled {
				e := f.m.loop.spiller.own.entries.At(minAhead + i)
				end, lost = e.Pos, lost+uint64(e.Events)
			}
		}); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*", "seg-*1.log"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		file, err := os.OpenFile(files[0], os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		// Both are in the first segment; the lower half of a position is the offset there.
		if _, err := file.WriteAt(make([]byte, end-begin), int64(uint32(begin))); err != nil {
			t.Fatal(err)
		}
		file.Close()
		d.open()
		if err := f.m.Close(within(t, patience)); err != nil {
			t.Error(err)
		}
		f.law()
		if s := f.m.Stats(); s.Missed[Lost] != lost || s.Delivered != 3000-lost {
			t.Errorf("%d chunks spoiled: lost %d, not %d; delivered %d", spoiled, s.Missed[Lost], lost, s.Delivered)
		}
	}
}

// That nothing can be spilled is told when the Mover is opened, not when it is too late.
func TestUnusableDir(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shut := filepath.Join(dir, "shut")
	if err := os.Mkdir(shut, 0o500); err != nil {
		t.Fatal(err)
	}
	usable := os.Getuid() == 0 || runtime.GOOS == "windows" // modes stop neither
	for path, want := range map[string]bool{
		filepath.Join(dir, "a", "b"):  true,
		dir:                           true,
		file:                          false,
		filepath.Join(file, "a"):      false,
		filepath.Join(shut, "a", "b"): usable,
	} {
		f := open(t, &fake{}, func(c *Config) { c.Dir = path })
		f.close()
		<-f.m.disk.rest()
		f.mu.Lock()
		if told := strings.Contains(fmt.Sprint(f.told), "nothing can flow over to "+path); told == want {
			t.Errorf("%s: told %v", path, f.told)
		}
		f.mu.Unlock()
	}
	if names := entriesOf(t, dir); len(names) != 2 {
		t.Errorf("made %q", names)
	}
}
