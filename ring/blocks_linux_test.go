// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// memoryOf is what the file system has given to a ring's file.
func memoryOf(t *testing.T, r *Ring) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(r.Path(), ringFile))
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

func byBlocks(t *testing.T, r *Ring) {
	t.Helper()
	needs.Have(t, r.blocks != nil, "memory for a ring block by block needs Linux 5.14 or newer")
}

// TestMemoryGrows: a ring has little memory at first, all when it is full, and little again when it has
// been idle for long; what it holds at each step is read.
func TestMemoryGrows(t *testing.T) {
	r := mustOpen(t, &Options{Dir: sharedDir(t), Size: 16 << 20})
	byBlocks(t, r)
	const little = 300 << 10
	if got := memoryOf(t, r); got > little {
		t.Errorf("a new ring has %d bytes", got)
	}
	var h Hint
	next := uint32(0)
	for round := range 3 {
		n := uint32(0)
		for ; ; n++ {
			if _, err := r.Append(&h, Now, payload(nil, 0, next+n, 10_000)); err != nil {
				break
			}
		}
		if n < 1400 {
			t.Fatalf("round %d: %d records of 10,000 bytes", round, n)
		}
		if got := memoryOf(t, r); got < 14<<20 {
			t.Errorf("round %d: a full ring has %d bytes", round, got)
		}
		for i := range n {
			rec, ok, err := r.Next()
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if w, k, err := parsePayload(rec.Data); err != nil || w != 0 || k != next+i {
				t.Fatal(w, k, next+i, err)
			}
		}
		next += n
		r.Cut(r.Horizon())
		r.blocks.trimAt = 0 // as if time had passed
		r.blocks.begged.Store(false)
		if r.Sleep() {
			t.Fatal("more than all")
		}
		if got := memoryOf(t, r); got > keepFree+little {
			t.Errorf("round %d: an idle ring has %d bytes", round, got)
		}
	}
	// A kernel may give some pages more than it was asked for.
	if got, want := r.blocks.count.Load()*r.blocks.size, memoryOf(t, r)-segmentsAt; got > want || got < want-2*blockSize {
		t.Errorf("counted %d bytes, there are %d", got, want)
	}
}

// TestMemoryAhead: once an appender had to get memory itself, the reader has some ready.
func TestMemoryAhead(t *testing.T) {
	r := mustOpen(t, &Options{Dir: sharedDir(t), Size: 16 << 20})
	byBlocks(t, r)
	var h Hint
	for n := uint32(0); !r.blocks.begged.Load(); n++ {
		if _, err := r.Append(&h, Now, payload(nil, 0, n, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	had := memoryOf(t, r)
	countAll(t, r)
	if got := memoryOf(t, r); got < had+4*r.blocks.size {
		t.Errorf("%d bytes before the reader looked, %d after", had, got)
	}
}

// TestManyRings: a thousand rings that hold one record each take little.
func TestManyRings(t *testing.T) {
	many := needs.Rounds(t, "SPILLWAY_RINGS", 100, 1000)
	if bits.UintSize == 32 {
		many = 20 // each is mapped in full
	}
	dir := sharedDir(t)
	total := int64(0)
	for i := range many {
		r := mustOpen(t, &Options{Dir: dir, Name: fmt.Sprint("many", i), Size: 16 << 20})
		byBlocks(t, r)
		var h Hint
		if _, err := r.Append(&h, Now, payload(nil, 0, 0, 100)); err != nil {
			t.Fatal(err)
		}
		total += memoryOf(t, r)
	}
	if each := total / int64(many); each > 300_000 {
		t.Errorf("%d bytes a ring", each)
	}
}
