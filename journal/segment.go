// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"path/filepath"
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

	end atomic.Int64 // where its records end, 0 while it is being appended to; written with Journal.mu held

	// Guarded by Journal.mu.
	last   int64  // end of the last record known, without a pad behind it
	wrote  int64  // end of what was handed to the kernel
	clean  int64  // end of what is durable
	slot   int64  // of the next tail; the other one holds that of the last good sync
	flying int64  // wrote, when the sync that runs began
	kept   []byte // what was written but not durable when a sync failed, from the page that clean lies in
	bad    bool   // a reader met bytes that the device does not give
	dirty  bool   // wrote since the last Datasync began

	// Belongs to whoever writes (Journal.writing).
	filled int64 // up to here every block was written at some time, so that writing it again changes no metadata
}

func (s *segment) close() error {
	f := s.file
	s.file = nil
	if f == nil {
		return nil
	}
	return f.Close()
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
		grown := make([]byte, n, min(max(int(pageUp(int64(n))), 2*cap(b.buf)), batchMost))
		copy(grown, b.buf)
		b.buf = grown
	}
	b.buf = b.buf[:n]
	return b.buf[old:]
}

func (j *Journal) path(name string) string { return filepath.Join(j.dir, name) }
