// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The boxes are drawn in doc.go; this file is the only one that knows offsets within them.

const (
	// What a disk writes at once; no page that holds synced bytes is ever the only copy while it is
	// rewritten.
	pageSize = 4096

	segmentMagic  = "SPILLSEG"
	formatVersion = 1
	segmentLive   = 1
	segmentSpare  = 2
	headerLen     = 68 // bytes of the segment header that mean something; the rest of its page is zero
	slotPage      = pageSize
	dataStart     = 3 * pageSize // header page, two tail slots, then records
	recordHeader  = 16
	// "1CER" in the file: a word that log text rarely has, so scanning rejects most places at once.
	kindRecord     = 0x5245_4331
	kindPad        = 0x5041_4431 // fills the rest of a page after a sync
	maxRecordBytes = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// nonce is what makes the records of one use of a segment file unlike all others: its first half
// seeds header checks, its second half payload checks, so that knowing one (from a lucky guess)
// does not give the other.
type nonce [16]byte

// segmentHeader is the first page of a segment file.
type segmentHeader struct {
	kind  uint16
	seq   uint32
	nonce nonce
	size  int64 // bytes of the file
	// The records before this segment's first end here; what earlier segments hold beyond it does
	// not count.
	prev   Position
	synced Position // was durable when this segment was opened: recovery need not look before it
	pad    uint32   // one more than the bytes of padding that prev counts; 0 where that is not known
}

// put fills a page.
func (h *segmentHeader) put(page []byte) {
	clear(page[:pageSize])
	copy(page, segmentMagic)
	binary.LittleEndian.PutUint16(page[8:], formatVersion)
	binary.LittleEndian.PutUint16(page[10:], h.kind)
	binary.LittleEndian.PutUint32(page[12:], h.pad)
	binary.LittleEndian.PutUint64(page[16:], uint64(h.seq))
	copy(page[24:], h.nonce[:])
	binary.LittleEndian.PutUint64(page[40:], uint64(h.size))
	binary.LittleEndian.PutUint64(page[48:], uint64(h.prev))
	binary.LittleEndian.PutUint64(page[56:], uint64(h.synced))
	binary.LittleEndian.PutUint32(page[64:], crc32.Checksum(page[:64], castagnoli))
}

var (
	errBlank   = errors.New("no header was ever written")
	errHeader  = errors.New("segment header cannot be read")
	errVersion = errors.New("it is of another format version")
)

// parse reads a header from the start of a page.
func (h *segmentHeader) parse(page []byte) error {
	if len(bytes.TrimLeft(page[:headerLen], "\x00")) == 0 {
		return errBlank
	}
	if string(page[:8]) != segmentMagic || crc32.Checksum(page[:64],
		castagnoli) != binary.LittleEndian.Uint32(page[64:]) {
		return errHeader
	}
	if v := binary.LittleEndian.Uint16(page[8:]); v != formatVersion {
		return fmt.Errorf("%w: %d", errVersion, v)
	}
	seq := binary.LittleEndian.Uint64(page[16:])
	if seq > 1<<32-1 {
		return errHeader
	}
	h.kind = binary.LittleEndian.Uint16(page[10:])
	h.pad = binary.LittleEndian.Uint32(page[12:])
	h.seq = uint32(seq)
	h.nonce = nonce(page[24:40])
	h.size = int64(binary.LittleEndian.Uint64(page[40:]))
	h.prev = Position(binary.LittleEndian.Uint64(page[48:]))
	h.synced = Position(binary.LittleEndian.Uint64(page[56:]))
	if h.kind != segmentLive && h.kind != segmentSpare {
		return errHeader
	}
	return nil
}

// binder computes the checks of records. The scratch lives here because hash/crc32 makes its
// argument escape.
type binder struct {
	seq   uint32
	nonce nonce
	tmp   [28]byte
}

// payload binds the plain CRC of a record's bytes to where the record starts.
func (b *binder) payload(crc uint32, start int64) uint32 {
	copy(b.tmp[:8], b.nonce[8:])
	binary.LittleEndian.PutUint64(b.tmp[8:], uint64(at(b.seq, start)))
	return crc32.Update(crc, castagnoli, b.tmp[:16])
}

// header is the check over the first 12 bytes of a record header.
func (b *binder) header(h []byte, start int64) uint32 {
	copy(b.tmp[:8], b.nonce[:8])
	binary.LittleEndian.PutUint64(b.tmp[8:], uint64(at(b.seq, start)))
	copy(b.tmp[16:28], h[:12])
	return crc32.Checksum(b.tmp[:28], castagnoli)
}

// putHeader writes a record header for n bytes whose plain CRC is crc.
func (b *binder) putHeader(h []byte, kind uint32, n int, crc uint32, start int64) {
	binary.LittleEndian.PutUint32(h, uint32(n))
	binary.LittleEndian.PutUint32(h[4:], kind)
	binary.LittleEndian.PutUint32(h[8:], b.payload(crc, start))
	binary.LittleEndian.PutUint32(h[12:], b.header(h, start))
}

func align8(n int64) int64   { return (n + 7) &^ 7 }
func pageUp(n int64) int64   { return (n + pageSize - 1) &^ (pageSize - 1) }
func pageDown(n int64) int64 { return n &^ (pageSize - 1) }

// place is where the record that would start at off does start: a record header never lies across
// two pages.
func place(off int64) int64 {
	if off&(pageSize-1) > pageSize-recordHeader {
		return pageUp(off)
	}
	return off
}

func newNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}
