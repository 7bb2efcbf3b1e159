// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// fillUp takes all that is left of a file system, and returns what gives it back.
func fillUp(t *testing.T, dir string) (giveBack func()) {
	t.Helper()
	name := filepath.Join(dir, "fill")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{64 << 10, pageSize} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() { remove(t, name) }
}

// appendAll appends until the ring is full, and returns the number of the next record.
func appendAll(t *testing.T, r *Ring, n uint32) uint32 {
	t.Helper()
	var h Hint
	for ; ; n++ {
		switch _, err := r.Append(&h, Now, payload(nil, 0, n, 1000)); {
		case errors.Is(err, ErrFull):
			return n
		case err != nil:
			t.Fatal(err)
		}
	}
}

// TestFullTmpfs: a ring is an error of Open only where there is no memory for its beginning, and leaves
// nothing then. One that cannot have all its memory is full before, and says how much it has; it goes
// on when there is memory again; and what it took is adopted whole.
func TestFullTmpfs(t *testing.T) {
	dir := mountTmpfs(t, "4m")
	rings := filepath.Join(dir, "rings")
	giveBack := fillUp(t, dir)
	if _, err := Open(&Options{Dir: rings, Size: 256 << 10}); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	if left, err := os.ReadDir(rings); err != nil || len(left) != 0 {
		t.Fatal(left, err)
	}
	giveBack()
	r := mustOpen(t, &Options{Dir: rings, Name: "own", Size: 16 << 20})
	whole := r.blocks == nil
	needs.Have(t, !whole, "memory for a ring block by block needs Linux 5.14 or newer")
	n := appendAll(t, r, 0)
	if n < 3000 || r.Size() > 4<<20 || r.Size() < 3<<20 {
		t.Errorf("%d records of 1000 bytes in a file system of 4 MiB; the ring's size is %d", n, r.Size())
	}
	room := r.Space()
	select {
	case <-room:
		t.Error("a ring without memory says that there is room")
	default:
	}
	if got := countAll(t, r); got != int(n) {
		t.Errorf("%d of %d read", got, n)
	}
	r.Cut(r.Horizon())
	<-room
	again := appendAll(t, r, n)
	if again < n+2000 {
		t.Errorf("%d records, and only %d when all were done", n, again-n)
	}
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	fillUp(t, dir)
	adopted := adoptAll(t, rings)
	if len(adopted) != 1 {
		t.Fatal(len(adopted))
	}
	for ; ; n++ {
		rec, ok, err := adopted[0].Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if _, k, err := parsePayload(rec.Data); err != nil || k != n {
			t.Fatal(k, n, err)
		}
	}
	if n != again {
		t.Fatalf("adopted up to %d of %d", n, again)
	}
	if lost := adopted[0].Lost(); lost != (Loss{}) {
		t.Errorf("lost: %+v", lost)
	}
	if err := adopted[0].Close(); err != nil {
		t.Error(err)
	}
}

// TestMemoryAgain: appends that found no memory go on when somebody else gives some back, though
// nothing in the ring is done.
func TestMemoryAgain(t *testing.T) {
	dir := mountTmpfs(t, "4m")
	rings := filepath.Join(dir, "rings")
	r := mustOpen(t, &Options{Dir: rings, Name: "own", Size: 2 << 20})
	needs.Have(t, r.blocks != nil, "memory for a ring block by block needs Linux 5.14 or newer")
	giveBack := fillUp(t, dir)
	n := appendAll(t, r, 0)
	if n > 200 {
		t.Errorf("%d records in 128 KiB", n)
	}
	giveBack()
	deadline := time.Now().Add(5 * time.Minute)
	for r.Used() < 1<<20 {
		n = appendAll(t, r, n)
		if time.Now().After(deadline) {
			t.Fatalf("%d records, used %d", n, r.Used())
		}
	}
	if got := countAll(t, r); got != int(n) {
		t.Errorf("%d of %d read", got, n)
	}
}
