// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"slices"
)

const minCut = 32 << 10 // shortening a file by less is not worth the change of its metadata

// lastRecord is where the last record ends, 0 if there is none. What recovery took for its end may
// be that of a pad behind it, which no cursor reaches.
func (v *recovery) lastRecord() Position {
	for _, s := range slices.Backward(v.segs) {
		if s.last > dataStart {
			s.last = s.lastRecord()
			return at(s.seq, s.last)
		}
	}
	return 0
}

// lastRecord looks for a pad that reaches up to s.last: one lies within a page. Where that does not
// give an answer it is s.last.
func (s *segment) lastRecord() int64 {
	if s.last%pageSize != 0 {
		return s.last
	}
	page := make([]byte, pageSize)
	from := s.last - pageSize
	if _, err := s.file.ReadAt(page, from); err != nil {
		return s.last // readers will meet that
	}
	var scan scanner
	scan.reset(s.file, s.seq, s.nonce)
	for off := int64(0); off <= pageSize-recordHeader; off += 8 {
		if n, kind, _, ok := scan.header(page[off:], from+off); ok && kind == kindPad &&
			off+recordHeader+n == pageSize {
			return from + off
		}
	}
	// A pad of 8 bytes has no header, and looks like the end of a record.
	last := int64(dataStart)
	for off := last; off < s.last; {
		_, _, _, next, err := scan.record(off, s.last)
		if errors.Is(err, errEndOfRecord) {
			break
		}
		if err != nil {
			return s.last
		}
		off, last = next, next
	}
	return last
}

// cutTail gives back to the disk what a segment never used: a process that is started again and
// again leaves each time one that is hardly filled. It keeps its room where there is no other file
// that can be used again: on a disk that others fill it would not come back. A record that was cut
// short when the process or the power died is set aside first.
func (v *recovery) cutTail(s *segment, end int64) error {
	start := place(end)
	h := make([]byte, recordHeader)
	if _, err := s.file.ReadAt(h, start); err == nil {
		scan := scanner{bind: binder{seq: s.seq, nonce: s.nonce}}
		if n, kind, _, ok := scan.header(h, start); ok && kind == kindRecord {
			v.hole(s.seq, s.nonce, s.path, s.file, start, min(start+recordHeader+n, s.size), errCutShort)
		}
	}
	size := pageUp(end)
	if s.size-size < minCut || !slices.ContainsFunc(v.free, v.serves) {
		return nil
	}
	if err := s.file.Truncate(size); err != nil {
		return err
	}
	v.bytes -= s.size - size
	s.size = size
	return nil
}

// recoverSegment finds the end of a segment's last whole record, given up to where it is known to
// be durable, and makes all of it so.
func (v *recovery) recoverSegment(s *segment, durable int64) (int64, error) {
	clean, err := s.restoreTails(v.folder)
	if err != nil {
		return 0, fmt.Errorf("restore tail: %w", err)
	}
	limit := s.end.Load()
	if clean > 0 && clean <= limit {
		s.signedOff = true
		return clean, nil
	}
	scan := scanner{longest: v.opt.MaxRecord}
	scan.reset(s.file, s.seq, s.nonce)
	off, end := durable, durable
	for off < limit {
		_, _, start, next, err := scan.record(off, limit)
		switch {
		case err == nil:
			off, end = next, next
			continue
		case errors.Is(err, errEndOfRecord):
			off = limit
			continue
		case !isDamage(err):
			// The device does not give these bytes now. What lies there may be whole, so nothing is
			// cut off: readers will meet it.
			if end > durable {
				err = v.reserve.harden(s, durable, end)
			} else {
				err = nil
			}
			return limit, err
		}
		if next, ok := scan.after(start, next, limit, nil); ok {
			off = next
		} else {
			off = limit
		}
	}
	return end, v.reserve.harden(s, durable, end)
}
