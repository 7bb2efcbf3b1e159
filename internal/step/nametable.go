// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// A nameTable finds names of a list by their hashes. A map would have a copy of each, for every
// event.
//
//	slots   [ 0  3  0  1  …  2 ]   place in the list and one; 0: free
type nameTable struct {
	seed  maphash.Seed
	slots []uint32 // a power of two, more than twice as many as names
}

// manyFields is from how many fields on a name is looked up and not looked for.
const manyFields = 16

// reset makes the table empty, with room for n names.
func (t *nameTable) reset(n int) {
	if t.slots == nil {
		t.seed = maphash.MakeSeed()
	}
	size := 1 << bits.Len(uint(2*n))
	if cap(t.slots) < size {
		t.slots = make([]uint32, size)
	}
	t.slots = t.slots[:size]
	clear(t.slots)
}

// slot returns where a name has its place, or would have it. name tells those of the list.
func (t *nameTable) slot(text []byte, name func(place int) []byte) *uint32 {
	mask := uint64(len(t.slots) - 1)
	for i := maphash.Bytes(t.seed, text) & mask; ; i = (i + 1) & mask {
		if s := t.slots[i]; s == 0 || bytes.Equal(name(int(s-1)), text) {
			return &t.slots[i]
		}
	}
}
