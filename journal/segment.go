// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// segment is one file of records, live or prepared for use.
type segment struct {
	seq   uint32
	nonce nonce
	path  string
	file  File // nil when nothing is to be written
	size  int64

	tailed    int64     // a tail says that it was synced up to here; of recovery
	signedOff bool      // by a clean Close: all of it is durable; of recovery
	modified  time.Time // when a file that was there at the start had last been written to

	end atomic.Int64 // where its records end, 0 while it is being appended to; written with life.mu held

	// Guarded by life.mu.
	last   int64  // end of the last record known, without a pad behind it
	wrote  int64  // end of what was handed to the kernel
	clean  int64  // end of what is durable
	slot   int64  // of the next tail; the other one holds that of the last good sync
	flying int64  // wrote, when the sync that runs began
	kept   []byte // what was written but not durable when a sync failed, from the page that clean lies in
	bad    bool   // a reader met bytes that the device does not give
	dirty  bool   // wrote since the last Datasync began

	// Belongs to the goroutine that writes (writer.writing).
	filled int64 // up to here every block was written at some time, so that writing it again changes no metadata
}

func (s *segment) close() error {
	return closeFile(&s.file)
}

// writeSpare marks the file as holding nothing.
func (s *segment) writeSpare() error {
	return s.putHeader(&segmentHeader{kind: segmentSpare, seq: s.seq, size: s.size})
}

// putHeader makes a header durable.
func (s *segment) putHeader(h *segmentHeader) error {
	page := make([]byte, pageSize)
	h.put(page)
	if _, err := s.file.WriteAt(page, 0); err != nil {
		return err
	}
	return s.file.Datasync()
}

// resize makes a spare file the size that segments have.
func (s *segment) resize(size int64) error {
	var err error
	if size < s.size {
		err = s.file.Truncate(size)
	} else {
		err = s.file.Allocate(size)
	}
	if err != nil {
		return err
	}
	s.filled = min(s.filled, size, s.size)
	s.size = size
	return s.writeSpare()
}

// unnamedSegment is what a segment is called until its header is durable.
const unnamedSegment = "seg-new"

func segmentName(seq uint32) string { return fmt.Sprintf("seg-%016x.log", seq) }

// segmentSeq takes a segment's file name apart.
func segmentSeq(name string) (uint32, bool) {
	hex, ok := strings.CutPrefix(name, "seg-")
	if !ok {
		return 0, false
	}
	hex, ok = strings.CutSuffix(hex, ".log")
	if !ok || len(hex) != 16 || strings.ToLower(hex) != hex {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	return uint32(n), err == nil
}

const (
	batchBytes = 1 << 20             // a batch this full is written before more is appended
	maxBatch   = batchBytes + 64<<10 // and none is larger: a record that does not fit goes on in the next
)

// batch is bytes on their way into one segment: whole pages, of which the first may begin with what
// an earlier batch already wrote there.
type batch struct {
	seg  *segment
	at   int64 // offset in the file of buf[0]; a multiple of the page
	from int64 // offset in the file of the first new byte
	end  int64 // offset after the last record, set when the batch is taken for writing
	buf  []byte
}

func (b *batch) empty() bool { return b.at+int64(len(b.buf)) == b.from }

// extend makes room up to file offset end and returns the bytes from the old end on. They hold
// anything.
func (b *batch) extend(end int64) []byte {
	old := len(b.buf)
	n := int(end - b.at)
	if n > cap(b.buf) {
		grown := make([]byte, n, min(max(int(pageUp(int64(n))), 2*cap(b.buf)), maxBatch))
		copy(grown, b.buf)
		b.buf = grown
	}
	b.buf = b.buf[:n]
	return b.buf[old:]
}
