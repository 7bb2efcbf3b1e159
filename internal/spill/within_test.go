// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// TestWithinMaxDisk: a spill of what is written at once takes what others leave, and the own one
// learns of it at once.
func TestWithinMaxDisk(t *testing.T) {
	dir := t.TempDir()
	const most = 4 << 20
	f := New(&Options{
		Name: "test", Dir: dir, MaxDisk: most, BootID: func() string { return "" },
		Report: func(err error) { t.Error(err) },
	})
	own, err := f.Make("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if err := f.Budget(own); err != nil {
		t.Fatal(err)
	}
	other := func(n int64) {
		path := filepath.Join(dir, "other.1.0123456789abcdef")
		if err := errors.Join(os.MkdirAll(path, 0o700),
			os.WriteFile(filepath.Join(path, "seg-0"), make([]byte, n), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	other(most / 4) // and the own one may get two segments, of an eighth each, after it was counted
	sp, err := f.MakeWithin("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer sp.Close()
	c := forward.Chunk{Tag: "a", Entries: make([]byte, 64<<10), Events: 1}
	for err == nil {
		err = sp.Append([]forward.Chunk{c}, make([]journal.Position, 1))
	}
	if sum := most/4 + sp.Bytes() + own.Bytes(); !errors.Is(err, journal.ErrFull) || sum > most+2*f.segment() {
		t.Errorf("all spills together have %d bytes, %v", sum, err)
	}
	other(most)
	if err := f.Budget(own); !errors.Is(err, ErrBudget) {
		t.Errorf("the own spill may grow: %v", err)
	}
	if _, err := f.MakeWithin("", time.Now()); !errors.Is(err, ErrBudget) {
		t.Errorf("another one is made: %v", err)
	}
}
