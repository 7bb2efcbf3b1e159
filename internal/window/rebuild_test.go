// SPDX-License-Identifier: Apache-2.0

package window

import (
	"bytes"
	"runtime"
	"strconv"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/ring"
)

// abandoned is a ring as a process leaves it that cut 12 events of two tags, which are four runs,
// and appended five more.
func abandoned(t *testing.T, runs bool, to byte) (dir string, chunks []*Marked) {
	t.Helper()
	if runtime.GOOS != "linux" {
		needs.Skip(t, "no shared memory that outlives a process here")
	}
	dir = needs.Shm(t)
	r, err := ring.Open(&ring.Options{Dir: dir, Name: "test", Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var h ring.Hint
	events := func(n int) {
		for i := range n {
			p := append(AppendPayload(nil, "t"+strconv.Itoa(i/3%2)), 0x81, 0xa1, 'n', byte(i&0x7f))
			if _, err := r.Append(&h, int64(i)+1, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	events(12)
	s, w := &Feed{Ring: r, Own: true}, NewCutter(runs, &Buffers{})
	if !w.Cut(s, 1<<20) || w.Taken != 12 || w.Bad != 0 {
		t.Fatalf("cut %+v", w)
	}
	for i := range w.Chunks() {
		chunks = append(chunks, &Marked{})
		w.Take(i, chunks[i])
	}
	w.Mark(chunks, to)
	w.Done()
	if want := map[bool]int{false: 2, true: 4}[runs]; len(chunks) != want {
		t.Fatalf("%d chunks, not %d", len(chunks), want)
	}
	events(5)
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	return dir, chunks
}

// adopted is that ring as a later process has it.
func adopted(t *testing.T, dir string) *Feed {
	t.Helper()
	left, err := ring.Adopt(dir, "test", func(ring.Owner) bool { return true }, func(err error) { t.Error(err) })
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	return &Feed{Ring: left[0]}
}

// What is in a spill is in its care for good: a process that adopts the ring after the spill
// was delivered, and its ids forgotten, does not make it again.
func TestRebuildTwice(t *testing.T) {
	dir, chunks := abandoned(t, true, ToSpill)
	first := adopted(t, dir)
	if found := Rebuild(first, [IDLen]byte{},
		map[[IDLen]byte]bool{chunks[0].ID: true, chunks[1].ID: true}); len(found.Younger) != 2 || first.Marks() != 1 {
		t.Fatalf("%+v under %d marks", found, first.Marks())
	}
	if err := first.Ring.Leave(); err != nil {
		t.Fatal(err)
	}
	successor := adopted(t, dir)
	found := Rebuild(successor, [IDLen]byte{}, nil)
	if len(found.Younger) != 2 || len(found.Older) > 0 {
		t.Fatalf("%d chunks and %d to the destination", len(found.Younger), len(found.Older))
	}
	for i, k := range found.Younger {
		if want := chunks[2+i]; k.ID != want.ID || !bytes.Equal(k.Chunk.Entries, want.Chunk.Entries) {
			t.Errorf("chunk %d is not what it was", i)
		}
		k.Unmark()
	}
	if successor.Marks() != 0 || successor.Out != 0 || len(successor.Ring.Marks()) != 0 {
		t.Errorf("%d chunks are out, %d marks are left", successor.Out, successor.Marks())
	}
	if err := successor.Ring.Close(); err != nil {
		t.Error(err)
	}
}

// What a window was cut into is made again from the ring, byte for byte and under the same ids, but
// for what is done or in a spill; what was not cut is left to be.
func TestRebuild(t *testing.T) {
	for _, runs := range []bool{false, true} {
		for _, to := range []byte{ToDestination, ToSpill} {
			dir, chunks := abandoned(t, runs, to)
			successor := adopted(t, dir)
			spilled := map[[IDLen]byte]bool{chunks[1].ID: true}
			found := Rebuild(successor, [IDLen]byte{}, spilled)
			again, other := found.Older, found.Younger
			if to == ToSpill {
				again, other = other, again
			}
			if len(other) > 0 || found.Rest != 5 || found.Bad != 0 || successor.Out != len(chunks)-1 {
				t.Errorf("runs %t, to %q: %+v, %d out", runs, to, found, successor.Out)
			}
			want := append(chunks[:1:1], chunks[2:]...)
			for i, k := range again {
				if i >= len(want) || k.ID != want[i].ID || k.Chunk.Tag != want[i].Chunk.Tag ||
					!bytes.Equal(k.Chunk.Entries, want[i].Chunk.Entries) || k.Younger() != (to == ToSpill) {
					t.Errorf("runs %t, to %q: chunk %d is not what it was", runs, to, i)
				}
				k.Unmark()
			}
			if len(again) != len(want) || successor.Marks() != 0 || successor.Out != 0 ||
				len(successor.Ring.Marks()) != 0 {
				t.Errorf("runs %t, to %q: %d chunks, not %d; marks are left", runs, to, len(again), len(want))
			}
			if !NewCutter(runs, &Buffers{}).Cut(successor, 1<<20) {
				t.Error("the rest is not to be cut")
			}
			if err := successor.Ring.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
