// SPDX-License-Identifier: Apache-2.0

package collector

import "encoding/binary"

// fingerprintIndex finds fingerprints among the slots that hold them: open addressing with
// linear probing. A fingerprint is a keyed hash already, so its bits are the place,
// and other bits of it stand beside the slot's number: telling that a fingerprint is
// not known, which is what nearly always happens, touches one cache line.
//
//	cell  ┌──────────────────┬──────────────────┐
//	      │ hash bits 32-63  │ slot + 1    32 b │   0: empty
//	      └──────────────────┴──────────────────┘
type fingerprintIndex struct {
	cells []uint64 // a power of two, at most three quarters in use
	used  int
}

// slots are numbered from 0 and never move, so that growing copies nothing.
type slots struct {
	blocks []*[blockSlots]seen
	n      int
}

const blockSlots = 1 << 10

func (s *slots) at(i int) *seen { return &s.blocks[i/blockSlots][i%blockSlots] }

func (s *slots) grow() {
	if s.n%blockSlots == 0 {
		s.blocks = append(s.blocks, new([blockSlots]seen))
	}
	s.n++
}

const minCells = 1 << 8

func fingerprintBits(p fingerprint) uint64 { return binary.LittleEndian.Uint64(p[:8]) }

func cellOf(bits uint64, slot int) uint64 { return bits&^uint64(1<<32-1) | uint64(slot+1) }

// home is where a cell would lie if it were alone. It uses the upper half of
// the bits, which stand in the cell, so that cells can be moved without
// looking at the slots.
func (x *fingerprintIndex) home(upper uint64) int {
	return int(upper>>32) & (len(x.cells) - 1)
}

// find returns the slot of p, or -1.
func (x *fingerprintIndex) find(p fingerprint, known *slots) int {
	if len(x.cells) == 0 {
		return -1
	}
	bits := fingerprintBits(p)
	for i := x.home(bits); ; i = (i + 1) & (len(x.cells) - 1) {
		cell := x.cells[i]
		if cell == 0 {
			return -1
		}
		if (cell^bits)>>32 == 0 {
			if slot := int(uint32(cell)) - 1; known.at(slot).fingerprint == p {
				return slot
			}
		}
	}
}

// touch brings the cells of the candidates into the cache, all at once: one
// after another each would wait for memory.
func (x *fingerprintIndex) touch(candidates []candidate) (bits uint64) {
	if len(x.cells) == 0 {
		return 0
	}
	for i := range candidates {
		bits |= x.cells[x.home(fingerprintBits(candidates[i].fingerprint))]
	}
	return bits
}

// insert adds p, which is not there.
func (x *fingerprintIndex) insert(p fingerprint, slot int) {
	if 4*(x.used+1) > 3*len(x.cells) {
		x.grow()
	}
	x.put(cellOf(fingerprintBits(p), slot))
	x.used++
}

func (x *fingerprintIndex) put(cell uint64) {
	i := x.home(cell)
	for x.cells[i] != 0 {
		i = (i + 1) & (len(x.cells) - 1)
	}
	x.cells[i] = cell
}

func (x *fingerprintIndex) grow() {
	old := x.cells
	x.cells = make([]uint64, max(minCells, 2*len(old)))
	for _, cell := range old {
		if cell != 0 {
			x.put(cell)
		}
	}
}

// remove takes p out, which is there with this slot. What was pushed away from
// its home by it moves back, so that no search stops too early.
func (x *fingerprintIndex) remove(p fingerprint, slot int) {
	mask := len(x.cells) - 1
	want := cellOf(fingerprintBits(p), slot)
	i := x.home(want)
	for x.cells[i] != want {
		i = (i + 1) & mask
	}
	for j := i; ; {
		j = (j + 1) & mask
		if x.cells[j] == 0 {
			break
		}
		// The cell at j may fill the gap at i unless its home lies between.
		if (j-x.home(x.cells[j]))&mask >= (j-i)&mask {
			x.cells[i] = x.cells[j]
			i = j
		}
	}
	x.cells[i] = 0
	x.used--
}
