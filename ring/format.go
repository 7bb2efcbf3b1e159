// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"unsafe"
)

// The boxes are drawn in doc.go; this file is the only one that knows offsets within them.

const (
	ringMagic     = "SPILLRNG"
	segmentMagic  = 0x4745_5352 // "RSEG"
	formatVersion = 1

	pageSize     = 4096
	headLen      = 76 // bytes of the ring's head that never change
	cutsAt       = 256
	countersAt   = 512
	marksAt      = pageSize
	markLen      = 64
	statesAt     = 2 * pageSize
	stateHeader  = 24
	statePages   = 9
	tableAt      = statesAt + 2*statePages*pageSize
	entryLen     = 24
	segmentsAt   = tableAt + (maxSegments*entryLen+pageSize-1)/pageSize*pageSize
	segmentHead  = 64
	recordHeader = 32

	// MaxMarks is how many marks a ring can hold at once.
	MaxMarks = 64
	// MaxState is the most that SetState takes.
	MaxState = 32 << 10
	// Counters is how many counters there are.
	Counters = 16
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	order      = binary.LittleEndian
)

func align8(n int64) int64 { return (n + 7) &^ 7 }

// head is what never changes in a ring's file.
type head struct {
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

func (h *head) parse(b []byte) error {
	if len(b) < segmentsAt || string(b[:8]) != ringMagic || crc32.Checksum(b[:72], castagnoli) != order.Uint32(b[72:]) {
		return fmt.Errorf("%w: the head of the file cannot be read", ErrCorrupt)
	}
	if h.version = order.Uint32(b[8:]); h.version != formatVersion {
		return fmt.Errorf("%w: format version %d", ErrCorrupt, h.version)
	}
	copy(h.id[:], b[16:])
	h.size = int64(order.Uint64(b[32:]))
	h.unit = int64(order.Uint64(b[40:]))
	h.maxRec = int64(order.Uint64(b[48:]))
	h.born = int64(order.Uint64(b[56:]))
	if h.unit < minSegment || h.unit&(h.unit-1) != 0 || h.size/h.unit > maxSegments || h.size < h.unit || h.size > maxSize || h.size%h.unit != 0 ||
		h.maxRec < 0 || h.maxRec > h.size || order.Uint32(b[12:]) != segmentsAt {
		return fmt.Errorf("%w: the head of the file makes no sense", ErrCorrupt)
	}
	return nil
}

// check is the CRC of b, bound to the ring and to a place in it.
func (h *head) check(place uint64, b []byte) uint32 {
	seed := order.Uint32(h.id[:]) ^ uint32(place)*0x9e3779b1 ^ uint32(place>>32)
	return crc32.Update(crc32.Update(seed, castagnoli, h.id[4:]), castagnoli, b)
}

// segmentFacts is the head of a segment.
type segmentFacts struct {
	nonce  uint64 // of this use; its lower half is in commit words, its upper half seeds checks
	units  uint32 // segments that it spans
	lane   uint16
	seq    uint64 // grows with every segment begun in the ring
	first  uint64 // key of its first record
	filled int64  // set once nothing will be added: bytes, head included; 0 before
	count  uint32 // with filled: records
}

// put writes a segment's head but for what is known when it is closed: its first word, without
// which there is no segment, last.
func (s *segmentFacts) put(h *head, off int64, b []byte) {
	noSegment(b)
	clear(b[4:segmentHead])
	order.PutUint32(b[4:], s.units)
	order.PutUint64(b[8:], s.nonce)
	order.PutUint64(b[16:], uint64(s.lane))
	order.PutUint64(b[24:], s.seq)
	order.PutUint64(b[32:], s.first)
	order.PutUint32(b[40:], h.check(uint64(off), b[4:40]))
	atomic.StoreUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), segmentMagic)
}

// noSegment makes whatever begins here none.
func noSegment(b []byte) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), 0)
}

// putFilled writes what is known when a segment is closed.
func (s *segmentFacts) putFilled(h *head, off int64, b []byte) {
	order.PutUint32(b[48:], uint32(s.filled))
	order.PutUint32(b[52:], s.count)
	order.PutUint32(b[56:], h.check(s.nonce^uint64(off), b[48:56]))
}

// parse is false when there is no segment. room is how far the ring reaches from here.
func (s *segmentFacts) parse(h *head, off, room int64, b []byte) bool {
	if magic := atomic.LoadUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(b)))); magic != segmentMagic || order.Uint32(b[40:]) != h.check(uint64(off), b[4:40]) {
		return false
	}
	s.units = order.Uint32(b[4:])
	s.nonce = order.Uint64(b[8:])
	s.lane = uint16(order.Uint64(b[16:]))
	s.seq = order.Uint64(b[24:])
	s.first = order.Uint64(b[32:])
	if s.units == 0 || int64(s.units) > room/h.unit {
		return false
	}
	s.filled, s.count = 0, 0
	end := int64(order.Uint32(b[48:]))
	if end != 0 && end <= int64(s.units)*h.unit && order.Uint32(b[56:]) == h.check(s.nonce^uint64(off), b[48:56]) {
		s.filled, s.count = end, order.Uint32(b[52:])
	}
	return true
}

// An entry of the table tells what a segment holds to whoever cannot read the segment.
const (
	entryUsed   = 1 << 63
	entryClosed = 1 << 62
)

func (r *Ring) entry(s *segment) []byte {
	at := tableAt + entryLen*(s.off-segmentsAt)/r.head.unit
	return r.mem[at : at+entryLen]
}

// putEntry notes that a segment is in use, putEntryClosed what is in it, clearEntry that it is
// free.
func (r *Ring) putEntry(s *segment) {
	b := r.entry(s)
	order.PutUint64(b[8:], s.first)
	order.PutUint64(b, entryUsed|uint64(s.units)<<32)
}

func (r *Ring) putEntryClosed(s *segment) {
	b := r.entry(s)
	order.PutUint64(b[16:], s.last)
	order.PutUint64(b, entryUsed|entryClosed|uint64(s.units)<<32|uint64(s.count))
}

func (r *Ring) clearEntry(s *segment) { clear(r.entry(s)) }

// lostSegment is the loss of a segment whose head cannot be read.
func (r *Ring) lostSegment(off int64) (loss Loss) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.touch(func() {
		b := r.entry(&segment{off: off})
		word, first, last := order.Uint64(b), order.Uint64(b[8:]), order.Uint64(b[16:])
		switch closed := word&entryClosed != 0; {
		case word&entryUsed == 0, closed && r.done(first, last):
		default:
			loss = Loss{Regions: 1, Bytes: (word >> 32 & 0xffff) * uint64(r.head.unit)}
			if closed {
				loss.Records = word & (1<<32 - 1)
			}
		}
	})
	if err != nil { // perhaps: nobody can tell what was there
		loss = Loss{Regions: 1, Bytes: uint64(r.head.unit)}
	}
	return loss
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
