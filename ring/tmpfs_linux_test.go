// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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

// fillUp takes all that a file system has.
func fillUp(t *testing.T, dir string) (file string) {
	t.Helper()
	f, err := os.CreateTemp(dir, "fill")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := 1 << 20; n >= pageSize; {
		if _, err = f.Write(make([]byte, n)); err != nil {
			n /= 2
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return f.Name()
}

// TestFullTmpfs: a ring for which there is no room at all is an error of Open and leaves nothing;
// one that can grow only so far is a smaller ring, and grows when there is room again. What it
// leaves is read without more memory.
func TestFullTmpfs(t *testing.T) {
	dir := mountTmpfs(t, "4m")
	rings := filepath.Join(dir, "rings")
	r := mustOpen(t, &Options{Dir: rings, Name: "own", Size: 16 << 20})
	woken := make(chan struct{}, 100)
	r.SetWake(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	fill := fillUp(t, dir)
	if _, err := Open(&Options{Dir: rings, Size: 256 << 10}); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	if left, err := os.ReadDir(rings); err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	var h, other Hint
	n := uint32(0)
	append1 := func(h *Hint) (full bool) {
		t.Helper()
		_, err := r.Append(h, Now, payload(nil, 0, n, 1000))
		if errors.Is(err, ErrFull) {
			return true
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		return false
	}
	for full := false; !full; {
		full = append1(&h)
	}
	if n < 60 || n > 70 || r.Size() != r.head.unit || r.Used() != r.Size() {
		t.Errorf("%d records, %d of %d in use", n, r.Used(), r.Size())
	}
	<-woken
	if err := r.Short(); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	var a tally
	r.Cut(readAll(t, r, &a))
	poll(t, "the lane's room", func() bool {
		if _, _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		return r.Used() == 0
	})
	before := n
	for full := false; !full; {
		full = append1(&h) && append1(&other) // the other lane has no segment, and finds none
	}
	if n-before < 60 {
		t.Errorf("only %d records", n-before)
	}
	remove(t, fill)
	poll(t, "more memory", func() bool { return !r.backing.isShort() })
	before = n
	for full := false; n < before+2000 && !full; {
		full = append1(&h)
	}
	if n < before+2000 {
		t.Errorf("only %d records", n-before)
	}
	fillUp(t, dir)
	rest := tally{next: map[uint32]uint32{0: uint32(a.count)}}
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	adopted := adoptAll(t, rings)
	if len(adopted) != 1 {
		t.Fatal(len(adopted))
	}
	if readAll(t, adopted[0], &rest); rest.count != int(n)-a.count || adopted[0].Lost() != (Loss{}) {
		t.Errorf("%d of %d adopted, lost %+v", rest.count, int(n)-a.count, adopted[0].Lost())
	}
	if err := adopted[0].SetState([]byte("a state")); err != nil {
		t.Error(err)
	}
	if err := adopted[0].SetState(make([]byte, MaxState)); !errors.Is(err, ErrFull) ||
		string(adopted[0].State()) != "a state" {
		t.Error(err)
	}
	if err := adopted[0].Close(); err != nil {
		t.Error(err)
	}
}

// TestManyOnTmpfs has as many rings as a container's memory takes, and more. All work at once, to
// the last byte; each record that was taken is read by the successor.
func TestManyOnTmpfs(t *testing.T) {
	for _, size := range []struct {
		name  string
		rings int
		least int
	}{{"1m", 20, 6}, {"64m", 200, 200}} {
		t.Run(size.name, func(t *testing.T) {
			dir := filepath.Join(mountTmpfs(t, size.name), "rings")
			var rings []*Ring
			for range size.rings {
				r, err := Open(&Options{Dir: dir, Name: "own"})
				if errors.Is(err, unix.ENOSPC) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				rings = append(rings, r)
			}
			if len(rings) < size.least {
				t.Errorf("room for %d rings", len(rings))
			}
			var taken atomic.Int64
			var all sync.WaitGroup
			for _, r := range rings {
				for w := range uint32(2) {
					all.Go(func() {
						var h Hint
						for n := range uint32(3000) {
							_, err := r.Append(&h, Now, payload(nil, w, n, 300))
							if errors.Is(err, ErrFull) {
								return
							}
							if err != nil {
								t.Error(err)
								return
							}
							taken.Add(1)
						}
					})
				}
			}
			all.Wait()
			for _, r := range rings {
				if err := r.Leave(); err != nil {
					t.Error(err)
				}
			}
			found := 0
			for _, r := range adoptAll(t, dir) {
				found += countAll(t, r)
				if r.Lost() != (Loss{}) {
					t.Error(r.Lost())
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			if found != int(taken.Load()) {
				t.Errorf("%d found of %d", found, taken.Load())
			}
			t.Logf("%d rings, %d records", len(rings), found)
		})
	}
}

// TestSmall: a ring takes little memory before it is used, and again when it was not for a while,
// also where there was a large record.
func TestSmall(t *testing.T) {
	dir := mountTmpfs(t, "64m")
	rings := filepath.Join(dir, "rings")
	used := func() int64 {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		return int64(st.Blocks-st.Bfree) * int64(st.Bsize)
	}
	empty := used()
	r := mustOpen(t, &Options{Dir: rings})
	if n := used() - empty; n > 128<<10 {
		t.Errorf("%d bytes", n)
	}
	if fi, err := os.Stat(ringOf(r)); err != nil || fi.Size() != segmentsAt+r.head.size {
		t.Error(fi, err)
	}
	var a tally
	var h Hint
	n := uint32(0)
	for round := range 3 {
		for ; n < uint32(20_000*(round+1)); n++ {
			size := 100
			if n%10_000 == 5000 {
				size = 900_000
			}
			if _, err := r.Append(&h, Now, payload(nil, 0, n, size)); err != nil {
				t.Fatal(err)
			}
		}
		if n := used() - empty; n < 2<<20 {
			t.Errorf("%d bytes hold %d records", n, 20_000)
		}
		r.Cut(readAll(t, r, &a))
		poll(t, "the memory", func() bool {
			r.wanted.Store(true)
			if _, ok, err := r.Next(); ok || err != nil {
				t.Fatal(ok, err)
			}
			return used()-empty <= 128<<10
		})
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n := used() - empty; n > 16<<10 {
		t.Errorf("%d bytes are left", n)
	}
}
