// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

const sweptName = "app.77.0123456789abcdef"

// sweptFolder tells nothing: a journal that is opened to be swept may find that its folder has
// gone.
func sweptFolder(dir string) *Folder {
	return New(&Options{
		Name: "app", Identity: []byte("same"), Dir: dir, MaxDisk: 1 << 20,
		BootID: func() string { return "boot" },
		Report: func(error) {},
	})
}

// TestSweepLeavesTheNewOne has two processes look for what dead ones left while a third one makes a
// spill, again and again under one name: each that was made stays whole.
func TestSweepLeavesTheNewOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, sweptName)
	stop := make(chan struct{})
	var sweepers sync.WaitGroup
	for range 2 {
		sweepers.Go(func() {
			f := sweptFolder(dir)
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
				}
				if _, err := (reach{}).readOwner(path); errors.Is(err, fs.ErrNotExist) { // as Discover does
					f.sweep(path)
				}
			}
		})
	}
	defer sweepers.Wait()
	defer close(stop)
	for i := range 100 {
		sp, err := sweptFolder(dir).Make(path, time.Unix(int64(i), 0))
		if err != nil {
			t.Fatal(err)
		}
		end, err := sp.j.Append([]byte("event"))
		if err == nil {
			err = sp.j.Sync(t.Context(), end)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := sp.Close(); err != nil {
			t.Fatal(err)
		}
		if who, err := (reach{}).readOwner(sp.Dir); err != nil || !who.Made.Equal(sp.Made) {
			t.Fatalf("spill %d, %s: the owner is %v, %v", i, sp.Dir, who, err)
		}
		in, err := journal.Inspect(sp.Dir)
		if err != nil || in.Segments[0].Records != 1 {
			t.Fatalf("spill %d, %s: %+v, %v; want the record that was written", i, sp.Dir, in, err)
		}
		if sp.Dir != path { // the sweepers had the other name each time; nobody sweeps this one
			if err := os.RemoveAll(sp.Dir); err != nil {
				t.Fatal(err)
			}
			continue
		}
		// As if its process had died while it removed it.
		if err := os.Rename(filepath.Join(sp.Dir, ownerFile), filepath.Join(sp.Dir, emptyFile)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSweepCutShort has a sweep killed between the new name and the removal: the next one goes on.
func TestSweepCutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{sweptName, sweptName + goneSuffix} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(dir, "other"+goneSuffix)
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if left := filepath.Join(dir, sweptName+goneSuffix, "seg-1"); os.WriteFile(left, []byte("x"), 0o600) != nil {
		t.Fatal("not written")
	}
	if found := sweptFolder(dir).Discover(nil); len(found) != 0 {
		t.Errorf("found %d spills", len(found))
	}
	for _, name := range []string{sweptName, sweptName + goneSuffix} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	if _, err := os.Lstat(other); err != nil {
		t.Errorf("what is somebody else's went: %v", err)
	}
}
