// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"
)

// The boxes are drawn in doc.go; this file is the only one that knows offsets within them.

const (
	ringMagic     = "SPILLRNG"
	segmentMagic  = 0x4745_5352 // "RSEG": a segment in use
	freeMagic     = 0x4545_5246 // "FREE": one that was
	formatVersion = 2

	pageSize     = 4096
	headLen      = 76 // bytes of the ring's head that never change
	cutsAt       = 256
	countersAt   = 512
	marksAt      = pageSize
	markLen      = 64
	tableAt      = 2 * pageSize
	lineLen      = 64
	statesAt     = tableAt + maxSegments*lineLen
	stateHeader  = 24
	stateRoom    = 9 * pageSize
	segmentsAt   = statesAt + 2*stateRoom
	recordHeader = 32

	// MaxMarks is how many marks a ring can hold at once.
	MaxMarks = 64
	// MaxState is how many bytes SetState takes.
	MaxState = 32 << 10
	// Counters is how many counters there are.
	Counters = 16
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	order      = binary.LittleEndian
)

func align8(n int64) int64 { return (n + 7) &^ 7 }

// A layout is where the versions of the format differ.
type layout struct {
	states, segments int64 // where they begin
	head             int64 // bytes of a segment before its first record
}

var layouts = [...]layout{
	1:             {states: 2 * pageSize, segments: 90112, head: 64},
	formatVersion: {states: statesAt, segments: segmentsAt},
}

// head is what never changes in a ring's file.
type head struct {
	layout
	id      [16]byte // random; seeds all checks
	size    int64    // bytes of all segments
	unit    int64    // bytes of a segment
	maxRec  int64
	born    int64 // Unix nanoseconds at key 0
	version uint32
}

func (h *head) put(b []byte) {
	copy(b, ringMagic)
	order.PutUint32(b[8:], formatVersion)
	order.PutUint32(b[12:], segmentsAt)
	copy(b[16:], h.id[:])
	order.PutUint64(b[32:], uint64(h.size))
	order.PutUint64(b[40:], uint64(h.unit))
	order.PutUint64(b[48:], uint64(h.maxRec))
	order.PutUint64(b[56:], uint64(h.born))
	order.PutUint32(b[72:], crc32.Checksum(b[:72], castagnoli))
}

// parse reads the head from the first bytes of a file that has so many in all.
func (h *head) parse(b []byte, length int64) error {
	if len(b) < headLen || string(b[:8]) != ringMagic || crc32.Checksum(b[:72], castagnoli) != order.Uint32(b[72:]) {
		return fmt.Errorf("%w: the head of the file cannot be read", ErrCorrupt)
	}
	if h.version = order.Uint32(b[8:]); h.version == 0 || h.version > formatVersion {
		return fmt.Errorf("%w: format version %d", ErrCorrupt, h.version)
	}
	h.layout = layouts[h.version]
	copy(h.id[:], b[16:])
	h.size = int64(order.Uint64(b[32:]))
	h.unit = int64(order.Uint64(b[40:]))
	h.maxRec = int64(order.Uint64(b[48:]))
	h.born = int64(order.Uint64(b[56:]))
	if h.unit < minSegment || h.unit&(h.unit-1) != 0 || h.size/h.unit > maxSegments || h.size < h.unit ||
		h.size > maxSize || h.size%h.unit != 0 ||
		h.maxRec < 0 || h.maxRec > h.size || int64(order.Uint32(b[12:])) != h.segments {
		return fmt.Errorf("%w: the head of the file makes no sense", ErrCorrupt)
	}
	if length < h.segments {
		return fmt.Errorf("%w: the file has only %d bytes, its head cannot be read", ErrCorrupt, length)
	}
	return nil
}

// check is the CRC of b, bound to the ring and to a place in it.
func (h *head) check(place uint64, b []byte) uint32 {
	seed := order.Uint32(h.id[:]) ^ uint32(place)*0x9e3779b1 ^ uint32(place>>32)
	return crc32.Update(crc32.Update(seed, castagnoli, h.id[4:]), castagnoli, b)
}

// place is the number of the segment that begins there, offset where a segment begins.
func (h *head) place(off int64) int    { return int((off - h.segments) / h.unit) }
func (h *head) offset(place int) int64 { return h.segments + int64(place)*h.unit }

// segmentFacts is what stands in a segment's line.
type segmentFacts struct {
	nonce  uint64 // of this use; its lower half is in commit words, its upper half seeds checks
	units  uint32 // segments that it spans
	lane   uint16
	seq    uint64 // grows with every segment begun in the ring
	first  uint64 // key of its first record; in the line with filled
	last   uint64 // with filled: key of its last record
	filled int64  // set once nothing will be added: bytes; 0 before
	count  uint32 // with filled: records
}

func firstWord(b []byte) *uint32 { return (*uint32)(unsafe.Pointer(unsafe.SliceData(b))) }

// put writes what is known when a segment comes into use: the line's first word, without which
// there is no segment, last.
func (s *segmentFacts) put(h *head, off int64, b []byte) {
	noSegment(b)
	order.PutUint32(b[4:], s.units)
	order.PutUint64(b[8:], s.nonce)
	order.PutUint64(b[16:], uint64(s.lane))
	order.PutUint64(b[24:], s.seq)
	order.PutUint32(b[32:], h.check(uint64(off), b[4:32]))
	clear(b[36:])
	atomic.StoreUint32(firstWord(b), segmentMagic)
}

// noSegment says that the segment is free.
func noSegment(b []byte) { atomic.StoreUint32(firstWord(b), freeMagic) }

// putFilled writes what is known when a segment is closed.
func (s *segmentFacts) putFilled(h *head, off int64, b []byte) {
	order.PutUint32(b[40:], uint32(s.filled))
	order.PutUint32(b[44:], s.count)
	order.PutUint64(b[48:], s.first)
	order.PutUint64(b[56:], s.last)
	order.PutUint32(b[36:], h.check(s.nonce^uint64(off), b[40:64]))
}

// parse is false when there is no segment in use; free when it is certain that there is none. room
// is how far the ring reaches from here.
func (s *segmentFacts) parse(h *head, off, room int64, b []byte) (is, free bool) {
	switch atomic.LoadUint32(firstWord(b)) {
	case segmentMagic:
	case freeMagic:
		return false, true
	case 0: // never used, unless there is something in the segment
		return false, !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
	default:
		return false, false
	}
	if s.units = order.Uint32(b[4:]); s.units == 0 || int64(s.units) > room/h.unit ||
		order.Uint32(b[32:]) != h.check(uint64(off), b[4:32]) {
		return false, false
	}
	s.nonce = order.Uint64(b[8:])
	s.lane = uint16(order.Uint64(b[16:]))
	s.seq = order.Uint64(b[24:])
	s.first, s.last, s.filled, s.count = 0, math.MaxUint64, 0, 0
	end := int64(order.Uint32(b[40:]))
	if end != 0 && end <= int64(s.units)*h.unit && order.Uint32(b[36:]) == h.check(s.nonce^uint64(off), b[40:64]) {
		s.filled, s.count, s.first, s.last = end, order.Uint32(b[44:]), order.Uint64(b[48:]), order.Uint64(b[56:])
	}
	return true, false
}

// commitWord is stored last: a record is there when its segment's nonce is.
func commitWord(nonce uint64, n int) uint64 { return uint64(uint32(nonce))<<32 | uint64(uint32(n)) }

// recordSeed binds a record's check to its segment's use, its place in the ring and its number in
// the segment.
func recordSeed(nonce uint64, off int64, index uint32) uint32 {
	return uint32(nonce>>32) ^ uint32(off>>3)*0x9e3779b1 ^ index*0x85ebca6b
}

// putRecord writes a whole record at the start of b.
func putRecord(b []byte, nonce uint64, off int64, index uint32, key uint64, t int64, p []byte) {
	b = b[:recordHeader+len(p)]
	order.PutUint64(b[16:], key)
	order.PutUint64(b[24:], uint64(t))
	copy(b[recordHeader:], p)
	crc := crc32.Update(recordSeed(nonce, off, index), castagnoli, b[16:])
	order.PutUint64(b[8:], uint64(crc)|uint64(index)<<32)
	order.PutUint64(b, commitWord(nonce, len(p)))
}
