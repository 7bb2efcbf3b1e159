// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"hash/crc32"
	"io"
	"os"
)

// standsIn reports whether the batch in doubt stands in the file of f, wherever that is now, from
// the length on that it had before the write. Its first stretch is the first of what waits.
func standsIn(f *file) bool {
	l := f.lot
	path := f.path
	id, size, err := idAt(path)
	if err != nil || id.inode != l.place[0] {
		if path, size = movedAs(f.path, l.place[0]); path == "" {
			return false
		}
	}
	h, err := os.OpenFile(path, readFlags, 0)
	if err != nil {
		return false
	}
	defer h.Close()
	first := f.lines[:bytes.IndexByte(f.lines, '\n')+1]
	return batchIn(h, int64(min(l.place[1], uint64(size))), first, l.stretches[l.met:])
}

// maxSought is how far behind its place a batch is looked for. Others write little in the time
// that a write takes; what stands farther away would take long to find, and comes again.
const maxSought = 64 << 20

// batchIn looks for a batch from a place on: its first line at the start of a line, and then the
// sums of its stretches. What cannot be read is not there.
func batchIn(r io.ReaderAt, from int64, first []byte, batch []stretch) bool {
	if len(first) == 0 {
		return false
	}
	buf := make([]byte, max(64<<10, 2*len(first)))
	for at := from; ; {
		n, err := r.ReadAt(buf, at)
		for i := 0; ; i++ {
			j := bytes.Index(buf[i:n], first)
			if j < 0 {
				break
			}
			i += j
			if startsLine(r, at+int64(i)) && sumsIn(r, at+int64(i), batch) {
				return true
			}
		}
		if err != nil || n < len(buf) || at-from >= maxSought {
			return false
		}
		at += int64(n - len(first) + 1)
	}
}

func startsLine(r io.ReaderAt, at int64) bool {
	var before [1]byte
	if at == 0 {
		return true
	}
	_, err := r.ReadAt(before[:], at-1)
	return err == nil && before[0] == '\n'
}

// sumsIn reports whether stretches stand one behind the other at a place.
func sumsIn(r io.ReaderAt, at int64, batch []stretch) bool {
	for _, x := range batch {
		sum := crc32.New(tailTable)
		if n, err := io.Copy(sum, io.NewSectionReader(r, at, int64(x.size))); err != nil || n != int64(x.size) ||
			sum.Sum32() != x.sum {
			return false
		}
		at += int64(x.size)
	}
	return true
}
