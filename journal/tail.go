// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A tail is a copy of the last page of a segment, as far as it was synced. When a sync ends in the
// middle of a page, the next records go into the same page, and while the disk writes it again it
// may lose it: so the tail is synced together with the page, into one of two slots by turns, and
// recovery puts it back if need be. The slot of the last good sync is never the one being written.
//
// A sync of much instead pads its last page and needs no tail. Both keep one promise: synced bytes
// are never overwritten in their only copy.

const (
	tailMagic  = "SPILLTAI"
	tailHeader = 48
	maxTail    = pageSize - tailHeader
	padFrom    = 4 << 10 // bytes synced at once from which padding the page costs little room

	// Everything before its position was durable before it was written, and nothing came after: a
	// clean Close.
	tailClean = 1
)

// putTail fills a slot's page. b is the segment's content from the start of the page to p.
func putTail(page []byte, n nonce, p Position, flags uint32, b []byte) {
	clear(page[:pageSize])
	copy(page, tailMagic)
	copy(page[8:], n[:])
	binary.LittleEndian.PutUint64(page[24:], uint64(p))
	binary.LittleEndian.PutUint32(page[32:], uint32(len(b)))
	binary.LittleEndian.PutUint32(page[36:], flags)
	copy(page[tailHeader:], b)
	binary.LittleEndian.PutUint32(page[44:], crc32.Update(crc32.Checksum(page[:44], castagnoli), castagnoli,
		page[tailHeader:]))
}

func parseTail(page []byte, seq uint32, n nonce) (p Position, flags uint32, b []byte, ok bool) {
	if len(page) < pageSize || string(page[:8]) != tailMagic || !bytes.Equal(page[8:24], n[:]) ||
		crc32.Update(crc32.Checksum(page[:44], castagnoli), castagnoli,
			page[tailHeader:pageSize]) != binary.LittleEndian.Uint32(page[44:]) {
		return 0, 0, nil, false
	}
	p = Position(binary.LittleEndian.Uint64(page[24:]))
	size := int64(binary.LittleEndian.Uint32(page[32:]))
	if p.seq() != seq || p.off() < dataStart || size > maxTail || size != 0 && size != p.off()-pageDown(p.off()) {
		return 0, 0, nil, false
	}
	return p, binary.LittleEndian.Uint32(page[36:]), page[tailHeader : tailHeader+size], true
}

// restoreTails puts back what the two slots hold if the pages they were copied from do not. It
// returns up to where a clean Close says that everything is durable and complete, or 0.
func (s *segment) restoreTails(d *folder) (clean int64, err error) {
	page, was := make([]byte, pageSize), make([]byte, pageSize)
	for slot := range int64(2) {
		clear(page)
		if err := d.readAt(s.file, page, (1+slot)*pageSize); err != nil {
			continue // then there is nothing to restore from
		}
		p, flags, b, ok := parseTail(page, s.seq, s.nonce)
		if !ok {
			continue
		}
		s.tailed = max(s.tailed, p.off())
		if p.off() > s.size {
			continue // it was cut
		}
		if flags&tailClean != 0 {
			clean = p.off()
		}
		from := p.off() - int64(len(b))
		if _, err := s.file.ReadAt(was[:len(b)], from); err == nil && bytes.Equal(was[:len(b)], b) {
			continue
		}
		if _, err := s.file.WriteAt(b, from); err != nil {
			return 0, err
		}
	}
	return clean, nil
}

// rebuild makes the header of a segment whose first page was destroyed from its tails, which carry
// the same nonce. It is false where that cannot be done.
func (s *segment) rebuild(d *folder) (h segmentHeader, ok bool) {
	page := make([]byte, pageSize)
	for slot := range int64(2) {
		clear(page)
		if err := d.readAt(s.file, page, (1+slot)*pageSize); err != nil {
			continue
		}
		n := nonce(page[8:24])
		if _, _, _, is := parseTail(page, s.seq, n); !is || n == (nonce{}) {
			continue
		}
		if ok && n != h.nonce {
			return h, false
		}
		h, ok = segmentHeader{kind: segmentLive, seq: s.seq, nonce: n, size: s.size}, true
	}
	return h, ok
}
