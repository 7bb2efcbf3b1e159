// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"hash/crc32"
)

// segmentReader reads the whole records of one segment, past holes. No key is above last.
type segmentReader struct {
	segmentFacts
	off      int64  // of the segment
	pos, end int64  // what is still to be read
	exact    bool   // records reach to end: what is missing is lost
	index    uint32 // number of the next record
	least    uint64 // the next key is not lower
	rec      Record // found last
	number   uint32 // of it
	vain     int64  // bytes that were checked and are no record
	loss     Loss
}

// maxVain is how often the length of a segment is checked in vain before the rest of it is given
// up. A crash leaves a torn record, and a foreign writer may leave more; but where each eight bytes
// claim to be a long one, to look at all of them would take hours.
const maxVain = 16

// next finds the next whole record. It must be called outside touch, for it survives faults itself.
func (s *segmentReader) next(n *notes) bool {
	hole := s.pos
	torn := false // a record that was committed cannot be read
	for s.pos+recordHeader <= s.end {
		found := false
		err := n.touch(func() { found = s.find(n.mem, &torn) })
		if found {
			if hole != s.pos {
				s.lose(n, hole, s.pos, s.rec.Key, s.number-s.index)
			}
			s.index = s.number + 1
			s.least = s.rec.Key + 1
			s.pos += recordHeader + align8(int64(len(s.rec.Data)))
			return true
		}
		if err == nil {
			break
		}
		torn = true
		var fault *faultError
		if !errors.As(err, &fault) {
			break
		}
		if page := fault.at &^ (pageSize - 1); page > s.pos {
			s.pos += 8 // it reaches into memory that has gone
		} else {
			s.pos = page + pageSize
		}
	}
	s.pos = s.end
	switch {
	case s.exact:
		if hole < s.end {
			s.lose(n, hole, s.end, s.last, s.count-s.index)
		}
	case torn:
		s.lose(n, hole, s.end, s.last, 1)
	}
	return false
}

// lose counts a hole, unless everything in it was done: no key there is above last.
func (s *segmentReader) lose(n *notes, from, to int64, last uint64, records uint32) {
	if n.isDone(s.least, last) {
		return
	}
	s.loss.Regions++
	s.loss.Bytes += uint64(to - from)
	s.loss.Records += uint64(records)
}

// find moves pos to the next whole record and fills in rec.
func (s *segmentReader) find(mem []byte, torn *bool) bool {
	for ; s.pos+recordHeader <= s.end; s.pos += 8 {
		b := mem[s.pos:s.end]
		if order.Uint32(b[4:]) != uint32(s.nonce) {
			continue
		}
		n := int64(order.Uint32(b))
		if n > int64(len(b))-recordHeader {
			*torn = true
			continue
		}
		index, key := order.Uint32(b[12:]), order.Uint64(b[16:])
		if index < s.index || key < s.least {
			*torn = true
			continue
		}
		if s.vain += n; s.vain > maxVain*(s.end-s.off) {
			*torn = true
			return false
		}
		if order.Uint32(b[8:]) != crc32.Update(recordSeed(s.nonce, s.pos, index), castagnoli, b[16:recordHeader+n]) {
			*torn = true
			continue
		}
		s.vain -= n // else, and where the check meets a fault, it was in vain
		s.number = index
		s.rec = Record{
			Key: key, Lane: s.lane, Time: int64(order.Uint64(b[24:])),
			Data: b[recordHeader : recordHeader+n : recordHeader+n],
		}
		return true
	}
	return false
}
