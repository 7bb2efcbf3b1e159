// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

// Folders in Dir that no logger made are left as they are, whatever they are called.
func TestForeignFolders(t *testing.T) {
	dir := t.TempDir()
	const id = "0123456789abcdef"
	foreign := []string{"test.data", "test.1.2", "test." + id, "test.1." + id + ".old", "test.2." + id}
	for _, name := range foreign {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "precious"), make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"test.3." + id, "test.4." + id} { // their makers died at once
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "test.4."+id, "owner.json"+".new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, &fake{}, func(c *Config) { c.Dir = dir })
	f.must("a", 1, 0, 10, 10)
	f.close()
	for _, name := range foreign {
		if names := entriesOf(t, filepath.Join(dir, name)); len(names) != 1 || names[0] != "precious" {
			t.Errorf("%s now holds %q", name, names)
		}
	}
	if names := entriesOf(t, dir); len(names) != len(foreign) {
		t.Errorf("left %q", names)
	}
}

// TestHalfRemovedSpill: a spill whose process died while it removed it goes with the next one,
// whatever of it is left.
func TestHalfRemovedSpill(t *testing.T) {
	const name = "test.5.0123456789abcdef"
	for mask := range 1 << 4 {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		j, err := journal.Open(path, &journal.Options{MaxBytes: 4 << 20, SegmentBytes: 256 << 10})
		if err != nil {
			t.Fatal(err)
		}
		rd, err := j.Reader("mover")
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			p, err := j.Append(make([]byte, 100<<10))
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Sync(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(rd.Close(), j.Close()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "empty"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		segments, err := filepath.Glob(filepath.Join(path, "seg-*"))
		if err != nil || len(segments) < 3 {
			t.Fatal(segments, err)
		}
		for i, gone := range []string{
			filepath.Join(path, "cursor-mover"), filepath.Join(path, "identity"), segments[0],
			segments[2],
		} {
			if mask>>i&1 == 1 {
				if err := os.Remove(gone); err != nil {
					t.Fatal(err)
				}
			}
		}
		f := open(t, &fake{}, func(c *Config) { c.Dir = dir })
		f.must("a", 1, 0, 10, 10)
		f.close()
		if names := entriesOf(t, dir); len(names) > 0 {
			t.Errorf("%04b: left %q", mask, names)
		}
	}
}

// Nor does what they hold count as ours.
func TestForeignBytes(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "much"), make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) { c.Dir, c.MaxDisk, c.Overflow, c.MaxWait = dir, 8<<20, Block, time.Minute })
	f.must("a", 1, 0, 3000, 1000)
	d.open()
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 3000})
}

// A spill whose ring can never be adopted is adopted without it.
func TestSpillOfASpoiledRing(t *testing.T) {
	dir, mem := t.TempDir(), shmDir(t)
	conf := func(c *Config) { c.Dir, c.Shm, c.Overflow, c.MaxWait = dir, mem, Block, time.Minute }
	f := open(t, &fake{answer: later}, conf)
	f.must("a", 1, 0, 3000, 1000)
	_ = f.abandon(10 * time.Millisecond) // leaves everything
	spilled := f.m.Stats().Spilled
	if names := entriesOf(t, mem); len(names) != 1 || spilled == 0 {
		t.Fatal(names, spilled)
	}
	file, err := os.OpenFile(filepath.Join(mem, entriesOf(t, mem)[0], "ring"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("garbage"), 33); err != nil {
		t.Fatal(err)
	}
	file.Close()
	d := &fake{}
	g := open(t, d, conf)
	g.close()
	// What was on its way into the spill when Close gave up may have got there.
	if s := g.m.Stats(); s.Adopted.Spills != 1 || s.Delivered < spilled || s.Delivered > 3000 {
		t.Errorf("of %d events: %+v", spilled, s)
	}
	if names := entriesOf(t, dir); len(names) != 0 {
		t.Errorf("left %q", names)
	}
}
