// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

const (
	scanBlock = 256 << 10 // read at once
	scanLong  = 32 << 10  // a record from which on its payload goes where it is wanted; see scanner.room
	scanKeep  = 1 << 20   // a larger window is given back after use
)

var (
	errNoRecord    = errors.New("no record starts here")
	errCutShort    = errors.New("record is cut short")
	errWrongBytes  = errors.New("checksum of the record does not match")
	errEndOfRecord = errors.New("end of records") // not damage: no room is left for another
)

// isDamage tells bytes that are wrong, or missing at the end of a file, from a device that does not
// give them.
func isDamage(err error) bool {
	return errors.Is(err, errNoRecord) || errors.Is(err, errCutShort) || errors.Is(err, errWrongBytes) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// scanner reads records from one segment file. Readers, recovery and Inspect share it.
type scanner struct {
	src  io.ReaderAt
	bind binder
	buf  []byte // window on the file
	base int64  // offset of buf[0]

	// room is where the payload of a long record goes, if it is no longer than roomLimit: passing
	// through the window costs two copies. Behind such a record no more than a page is read ahead.
	room      []byte
	roomLimit int64
	inRoom    bool // the last payload is there

	longest int64 // a record may have; 0: maxRecordBytes

	large     func() // called before memory is taken for a record longer than largeFrom; nil: nothing is
	largeFrom int64
}

func (s *scanner) reset(src io.ReaderAt, seq uint32, n nonce) {
	s.src, s.base, s.buf = src, 0, s.buf[:0]
	s.bind.seq, s.bind.nonce = seq, n
	if cap(s.buf) > scanKeep {
		s.buf = nil
	}
}

// view returns the n bytes at off, reading ahead up to limit. The caller has checked off+n <=
// limit.
func (s *scanner) view(off int64, n int, limit int64) ([]byte, error) {
	if i := off - s.base; i >= 0 && i+int64(n) <= int64(len(s.buf)) {
		return s.buf[i : i+int64(n)], nil
	}
	kept, ahead := 0, scanBlock
	if s.inRoom {
		ahead = pageSize
	}
	size := int(min(int64(max(n, ahead)), limit-off))
	old := s.buf
	if cap(old) < size || (cap(old) > scanKeep && size <= scanBlock) {
		s.buf = make([]byte, 0, size)
	}
	if i := off - s.base; i >= 0 && i < int64(len(old)) {
		kept = copy(s.buf[:size], old[i:])
	}
	s.buf, s.base = s.buf[:kept], off
	got, err := s.src.ReadAt(s.buf[kept:size], off+int64(kept))
	s.buf = s.buf[:kept+got]
	if len(s.buf) >= n {
		return s.buf[:n], nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

// toRoom reads the n bytes at off into s.room.
func (s *scanner) toRoom(off int64, n int) ([]byte, error) {
	s.room = slices.Grow(s.room[:0], n)[:n]
	kept := 0
	if i := off - s.base; i >= 0 && i < int64(len(s.buf)) {
		kept = copy(s.room, s.buf[i:])
	}
	if kept == n {
		return s.room, nil
	}
	got, err := s.src.ReadAt(s.room[kept:], off+int64(kept))
	if kept+got == n {
		return s.room, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

// record reads the record or pad that starts at off, or at the next page if its header would lie
// across two. On errors other than of the device, end is where the next one should start when that
// is known, else 0. start is exact either way.
func (s *scanner) record(off, limit int64) (kind uint32, data []byte, start, end int64, err error) {
	start = place(off)
	if limit-start < recordHeader {
		return 0, nil, start, 0, errEndOfRecord
	}
	h, err := s.view(start, recordHeader, limit)
	if err != nil {
		return 0, nil, start, 0, err
	}
	n, kind, crc, ok := s.header(h, start)
	if !ok {
		return 0, nil, start, 0, errNoRecord
	}
	end = align8(start + recordHeader + n)
	if start+recordHeader+n > limit {
		return kind, nil, start, 0, errCutShort
	}
	if kind == kindPad {
		return kind, nil, start, end, nil
	}
	if s.large != nil && n > s.largeFrom && int64(cap(s.buf)) < n {
		s.large()
	}
	if s.inRoom = n >= scanLong && n <= s.roomLimit; s.inRoom {
		data, err = s.toRoom(start+recordHeader, int(n))
	} else if data, err = s.view(start, recordHeader+int(n), limit); err == nil {
		data = data[recordHeader:]
	}
	if err != nil {
		return kind, nil, start, end, err
	}
	if s.bind.payload(crc32.Checksum(data, castagnoli), start) != crc {
		return kind, nil, start, end, errWrongBytes
	}
	return kind, data, start, end, nil
}

// header takes a record header apart. The kind is looked at first: it rejects nearly every place
// that is none.
func (s *scanner) header(h []byte, start int64) (n int64, kind, crc uint32, ok bool) {
	kind = binary.LittleEndian.Uint32(h[4:])
	if kind != kindRecord && kind != kindPad {
		return 0, 0, 0, false
	}
	if s.bind.header(h, start) != binary.LittleEndian.Uint32(h[12:]) {
		return 0, 0, 0, false
	}
	n = int64(binary.LittleEndian.Uint32(h))
	return n, kind, binary.LittleEndian.Uint32(h[8:]), n <= cmp.Or(s.longest, maxRecordBytes)
}

// after is where to go on behind damage at start: at end, where the damaged record says the next
// one is, if that is so, else at the next whole record anywhere. It is false when there is none.
func (s *scanner) after(start, end, limit int64, stop func() bool) (int64, bool) {
	if end > start && end <= limit {
		if _, _, _, _, err := s.record(end, limit); err == nil || errors.Is(err, errEndOfRecord) {
			return end, true
		}
	}
	return s.find(start+8, limit, stop)
}

// find looks for the next whole record or pad that starts at or after off, and returns where. stop
// is asked now and then.
//
// It is linear: a place costs one comparison, a place with the right word one checksum of 28 bytes,
// and only a header whose check is right for this very place and nonce has its payload read.
// Without the nonce such headers cannot be made; should it be known, the work spent on payloads is
// bounded, and beyond the bound headers count without their payload.
func (s *scanner) find(off, limit int64, stop func() bool) (int64, bool) {
	budget := 4*(limit-off) + 4*scanBlock
	for off = align8(off); limit-off >= recordHeader; {
		if stop != nil && stop() {
			return 0, false
		}
		h, err := s.view(off, int(min(limit-off, scanBlock)), limit)
		if err != nil { // perhaps of a later page
			s.buf = s.buf[:0]
			h, err = s.view(off, int(min(limit, pageDown(off)+pageSize)-off), limit)
		}
		if err != nil || len(h) < recordHeader {
			// Nothing that the device will not give can be read: on with the next page.
			off = pageDown(off) + pageSize
			s.buf = s.buf[:0]
			continue
		}
		i := 0
		for ; i+recordHeader <= len(h); i += 8 {
			k := binary.LittleEndian.Uint32(h[i+4:])
			if k != kindRecord && k != kindPad {
				continue
			}
			start := off + int64(i)
			n, kind, _, ok := s.header(h[i:], start)
			if !ok || place(start) != start || start+recordHeader+n > limit {
				continue
			}
			if kind == kindPad || budget < 0 {
				return start, true
			}
			budget -= n
			if _, _, _, _, err := s.record(start, limit); err == nil {
				return start, true
			}
			// The window may have moved: take it again from the next place.
			i += 8
			break
		}
		off += int64(i)
	}
	return 0, false
}
