// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway/internal/needs"
)

// mountTmpfs mounts a tmpfs of so many bytes.
func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
	needs.Have(t, err == nil, "mounting a tmpfs needs root: %v", err)
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFullTmpfs: a ring that does not fit is an error of Open and leaves nothing; one that fits
// keeps working when the file system is full.
func TestFullTmpfs(t *testing.T) {
	dir := mountTmpfs(t, "4m")
	rings := filepath.Join(dir, "rings")
	if _, err := Open(&Options{Dir: rings, Size: 16 << 20}); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(rings); err != nil || len(left) != 0 {
		t.Fatal(left, err)
	}
	r := mustOpen(t, &Options{Dir: rings, Name: "own", Size: 1 << 20})
	fill, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer fill.Close()
	for err == nil {
		_, err = fill.Write(make([]byte, 64<<10))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if _, err := Open(&Options{Dir: rings, Size: 256 << 10}); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	var h Hint
	n := uint32(0)
	for ; ; n++ {
		if _, err := r.Append(&h, Now, payload(nil, 0, n, 1000)); errors.Is(err, ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n < 700 {
		t.Errorf("only %d records", n)
	}
	if got := countAll(t, r); got != int(n) {
		t.Errorf("%d of %d read", got, n)
	}
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	adopted := adoptAll(t, rings)
	if len(adopted) != 1 || countAll(t, adopted[0]) != int(n) {
		t.Fatal("not adopted whole")
	}
	if err := adopted[0].Close(); err != nil {
		t.Error(err)
	}
}
