// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// The ring's file is cut: events go on, in plain memory; what can be read of the old ring is
// delivered, the rest counted and told.
func TestRingFails(t *testing.T) {
	mem := shmDir(t)
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) { c.Shm, c.Summary = mem, summaryEvent })
	f.must("a", 1, 0, 600, 1000)
	eventually(t, "chunks", func() bool { return f.m.Stats().InFlight > 0 })
	for _, name := range entriesOf(t, mem) {
		if err := os.Truncate(filepath.Join(mem, name, "ring"), 300<<10); err != nil {
			t.Fatal(err)
		}
	}
	f.must("a", 2, 0, 300, 1000)
	eventually(t, "plain memory", func() bool { return f.m.Stats().InMemory })
	d.open()
	f.close()
	s := f.m.Stats()
	if s.Missed[Lost] == 0 || s.Missed[Lost] > 600 || s.Told != s.Missed {
		t.Errorf("%+v", s)
	}
	seen := map[event]bool{}
	for _, c := range d.all() {
		for _, e := range c.events {
			if seen[e] && e.g < 3 {
				t.Errorf("%v came twice", e)
			}
			seen[e] = true
		}
	}
	for n := range uint32(300) {
		if e := (event{"a", 2, n}); !seen[e] && s.Missed[Lost] == 0 {
			t.Errorf("%v is missing", e)
		}
	}
	if uint64(len(seen)) < 900-s.Missed[Lost] {
		t.Errorf("%d events came, %d are lost", len(seen), s.Missed[Lost])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.told) == 0 {
		t.Error("nothing was told")
	}
	if names := entriesOf(t, mem); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}

// Two of one name live side by side; neither takes anything of the other's.
func TestTwoAtOnce(t *testing.T) {
	dir, mem := t.TempDir(), shmDir(t)
	conf := func(c *Config) { c.Dir, c.Shm, c.Overflow, c.MaxWait = dir, mem, Block, time.Minute }
	d, e := &fake{answer: later}, &fake{answer: later}
	f := open(t, d, conf)
	f.must("a", 1, 0, 3000, 1000)
	g := open(t, e, conf)
	g.must("a", 2, 0, 3000, 1000)
	if s := g.m.Stats(); s.Adopted.Events != 0 {
		t.Errorf("%+v", s)
	}
	d.open()
	e.open()
	g.close()
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 3000})
	ordered(t, e.all(), map[uint32]uint32{2: 3000})
}

// What was left for another destination, or by another Dir, is not touched.
func TestOthersAreLeftAlone(t *testing.T) {
	dir, mem := t.TempDir(), shmDir(t)
	conf := func(id, dir string) func(c *Config) {
		return func(c *Config) {
			c.Dir, c.Shm, c.Overflow, c.MaxWait, c.Identity = dir, mem, Block, time.Minute, id
		}
	}
	f := open(t, &fake{answer: later}, conf("one", dir))
	f.must("a", 1, 0, 3000, 1000)
	if err := f.abandon(50 * time.Millisecond); err == nil {
		t.Fatal("all was delivered")
	}
	for _, c := range []func(*Config){conf("two", dir), conf("one", t.TempDir())} {
		d := &fake{}
		g := open(t, d, c)
		g.must("a", 2, 0, 10, 10)
		g.close()
		ordered(t, d.all(), map[uint32]uint32{2: 10})
		if s := g.m.Stats(); s.Adopted.Events != 0 {
			t.Errorf("%+v", s)
		}
	}
	d := &fake{}
	g := open(t, d, conf("one", dir))
	g.close()
	ordered(t, d.all(), map[uint32]uint32{1: 3000})
}

// No shared memory: plain memory, and a word about it.
func TestNoSharedMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := &fake{}
	f := open(t, d, func(c *Config) { c.Shm = filepath.Join(file, "rings") })
	f.must("a", 1, 0, 100, 10)
	if !f.m.Stats().InMemory || len(f.told) == 0 {
		t.Errorf("told %v", f.told)
	}
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 100})
}

// No goroutine outlives Close, whatever it had to do.
func TestNoGoroutineStays(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	for i := range 10 {
		d := &fake{}
		if i%2 == 0 {
			d.answer = later
		}
		f := open(t, d, func(c *Config) { c.Dir = dir })
		for n := range uint32(1500) {
			_ = f.post("a", 1, n, 1000) // it may be full
		}
		_ = f.m.Close(within(t, 100*time.Millisecond)) // it may leave something
		f.law()
	}
	eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}
