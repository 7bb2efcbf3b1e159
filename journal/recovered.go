// SPDX-License-Identifier: Apache-2.0

package journal

// recovery is the reading of a directory that somebody left. It is over when Open returns, and
// nobody else has anything of the journal before.
type recovery struct{ *allocator }

// recovered is a live segment with its header.
type recovered struct {
	*segment
	h       segmentHeader
	rebuilt bool // from its tails: h has neither prev nor synced
}

// writeHeader writes the header that was made again. live are the segments before.
func (s *recovered) writeHeader(live []recovered) error {
	if n := len(live); n > 0 {
		s.h.prev = at(live[n-1].seq, live[n-1].end.Load())
	}
	return s.putHeader(&s.h)
}

// hardenHeader makes the header durable, which may have been read from memory only, as harden does
// with records. These are durable by now, so a tail slot is free to say what the segment is, should
// the header be lost while it is written again.
func (s *recovered) hardenHeader(end int64) error {
	page := make([]byte, pageSize)
	putTail(page, s.nonce, at(s.seq, max(end, dataStart)), 0, nil)
	_, err := s.file.WriteAt(page, pageSize)
	if err == nil {
		err = s.file.Datasync()
	}
	if err == nil {
		s.h.put(page)
		_, err = s.file.WriteAt(page, 0)
	}
	if err == nil {
		err = s.file.Datasync()
	}
	return err
}
