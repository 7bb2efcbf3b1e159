// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"os"
	"path/filepath"
	"testing"
)

// A spill that is made while those of others leave little room grows once they are gone.
func TestSpillOutgrowsOthers(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.1.0123456789abcdef")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "seg-0"), make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) { c.Dir, c.MaxDisk, c.Overflow, c.MaxWait = dir, 8<<20, Block, patience })
	f.must("a", 1, 0, 1200, 1000)
	eventually(t, "spilled", func() bool { return f.m.Stats().Spilled > 0 })
	if err := os.RemoveAll(other); err != nil {
		t.Fatal(err)
	}
	f.must("a", 1, 1200, 6000, 1000)
	d.open()
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 6000})
}

// The least MaxDisk is of use, too, with a large ring.
func TestLeastDisk(t *testing.T) {
	dir := t.TempDir()
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) { c.Dir, c.MaxDisk, c.RingSize, c.Overflow = dir, MinMaxDisk, 16<<20, Block })
	f.must("a", 1, 0, 10000, 1000)
	eventually(t, "spilled", func() bool { return f.m.Stats().Spilled > 0 })
	d.open()
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 10000})
}
