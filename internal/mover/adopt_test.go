// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// Processes that start and die again and again while the destination is down: what they leave in
// memory goes to the disk.
func TestCrashLoop(t *testing.T) {
	dir, mem := t.TempDir(), shmDir(t)
	conf := func(c *Config) {
		c.Dir, c.Shm, c.Overflow, c.MaxWait, c.quiet = dir, mem, Block, time.Minute, 20*time.Millisecond
	}
	want := map[uint32]uint32{}
	for i := range uint32(6) {
		f := open(t, &fake{answer: later}, conf)
		f.must("a", i, 0, 300, 1000)
		want[i] = 300
		eventually(t, "at most two rings", func() bool { return len(entriesOf(t, mem)) <= 2 })
		var left *UndeliveredError
		if err := f.abandon(10 * time.Millisecond); errors.As(err, &left) {
			if n := len(left.Where); n != len(slices.Compact(slices.Sorted(slices.Values(left.Where)))) {
				t.Errorf("a folder is named twice in %q", left.Where)
			}
		}
		f.law()
	}
	d := &fake{}
	f := open(t, d, conf)
	f.close()
	ordered(t, d.all(), want)
	for _, where := range []string{dir, mem} {
		if names := entriesOf(t, where); len(names) > 0 {
			t.Errorf("left %q", names)
		}
	}
}

// A process that runs takes over what another one leaves.
func TestAdoptsLater(t *testing.T) {
	dir, mem := t.TempDir(), shmDir(t)
	conf := func(c *Config) {
		c.Dir, c.Shm, c.Overflow, c.MaxWait, c.adoptEvery = dir, mem, Block, time.Minute, 5*time.Millisecond
	}
	d := &fake{}
	f := open(t, d, conf)
	f.must("a", 1, 0, 100, 10)
	for g := range uint32(3) {
		o := open(t, &fake{answer: later}, func(c *Config) { conf(c); c.adoptEvery = time.Hour })
		o.must("a", 2+g, 0, 3000, 1000)
		_ = o.abandon(20 * time.Millisecond) // leaves everything
		f.must("a", 1, 100+g*100, 200+g*100, 10)
		eventually(t, "all is adopted", func() bool { return f.m.Stats().Delivered >= uint64(3000*(g+1)) })
	}
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 400, 2: 3000, 3: 3000, 4: 3000})
	for _, where := range []string{dir, mem} {
		if names := entriesOf(t, where); len(names) > 0 {
			t.Errorf("left %q", names)
		}
	}
}

// A spill belongs to the processes of its name, also when no ring goes with it.
func TestOtherNamesSpill(t *testing.T) {
	dir := t.TempDir()
	conf := func(name string) func(c *Config) {
		return func(c *Config) { c.Dir, c.Name, c.Overflow, c.MaxWait = dir, name, Block, time.Minute }
	}
	f := open(t, &fake{answer: later}, conf("one"))
	f.must("a", 1, 0, 3000, 1000)
	_ = f.abandon(time.Second) // leaves everything
	held := f.m.Stats().Held
	other := open(t, &fake{}, conf("two"))
	other.must("a", 2, 0, 10, 10)
	other.close()
	if s := other.m.Stats(); s.Adopted.Spills != 0 || s.Delivered != 10 {
		t.Errorf("another name's spill was adopted: %+v", s)
	}
	g := open(t, &fake{}, conf("one"))
	g.close()
	if s := g.m.Stats(); s.Adopted.Spills == 0 || s.Delivered != held || held == 0 {
		t.Errorf("of %d events: %+v", held, s)
	}
}

// Flush waits for what was adopted also when it has been spilled into the own spill.
func TestFlushAwaitsWhatWasAdopted(t *testing.T) {
	dir, mem := t.TempDir(), shmDir(t)
	conf := func(c *Config) {
		c.Dir, c.Shm, c.Overflow, c.MaxWait, c.quiet = dir, mem, Block, time.Minute, time.Millisecond
	}
	f := open(t, &fake{answer: later}, func(c *Config) { conf(c); c.Dir = dir; c.quiet = time.Hour })
	f.must("a", 1, 0, 400, 1000)
	_ = f.abandon(10 * time.Millisecond) // leaves everything
	d := &fake{answer: later}
	g := open(t, d, conf)
	eventually(t, "spilled", func() bool { return g.m.Stats().Spilled > 0 })
	for range 20 { // what went to the destination from the adopted ring, not what comes from the spill
		d.mu.Lock()
		pending := slices.Clone(d.pending)
		d.mu.Unlock()
		if len(entriesOf(t, mem)) == 1 {
			break
		}
		for _, j := range pending {
			d.finish(j, "ok")
		}
		<-time.After(5 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err, s := g.m.Flush(ctx), g.m.Stats(); err == nil && s.Held > 0 {
		t.Errorf("flushed: %+v", s)
	}
	d.open()
	g.close()
	ordered(t, d.all(), map[uint32]uint32{1: 400})
}

// What was adopted for files of each process stays in its ring while they take nothing: the lines
// in it and in the own spill, of a process that is killed meanwhile, could be written twice.
func TestAdoptedForFilesStays(t *testing.T) {
	dir, mem := t.TempDir(), shmDir(t)
	start := func(d *fake) *fixture {
		return open(t, d, func(c *Config) {
			c.Destination, c.quiet = keeping{d}, time.Millisecond
			c.Dir, c.Shm, c.Overflow, c.MaxWait = dir, mem, Block, time.Minute
		})
	}
	f := start(&fake{answer: later})
	f.must("a", 1, 0, 3000, 1000)
	_ = f.abandon(10 * time.Millisecond) // leaves everything
	rings := entriesOf(t, mem)
	d := &fake{answer: later}
	g := start(d)
	eventually(t, "the destination has something", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.pending) > 0
	})
	<-time.After(100 * g.m.cfg.quiet)
	if s := g.m.Stats(); s.Spilled != 0 || len(rings) != 1 || !slices.Contains(entriesOf(t, mem), rings[0]) {
		t.Errorf("of %q is left %q: %+v", rings, entriesOf(t, mem), s)
	}
	d.open()
	g.close()
	ordered(t, d.all(), map[uint32]uint32{1: 3000})
}
