// SPDX-License-Identifier: Apache-2.0

package files

import (
	"hash/crc32"
	"os"
)

// A tail is a sum of the bytes before a place in a file. The zero value is that of no bytes.
type tail struct {
	at   int64
	size int // bytes, at most tailSize
	sum  uint32
}

// tailSize is enough for lines that differ in their time or an id.
const tailSize = 256

var tailTable = crc32.MakeTable(crc32.Castagnoli)

// tailOf makes the tail of bytes that end at a place.
func tailOf(b []byte, at int64) tail {
	b = b[max(0, len(b)-tailSize):]
	return tail{at: at, size: len(b), sum: crc32.Checksum(b, tailTable)}
}

// in reports whether the bytes are in a file, at their place.
func (t tail) in(f *os.File) (bool, error) {
	if t.at < int64(t.size) {
		return false, nil
	}
	var buf [tailSize]byte
	b := buf[:t.size]
	if _, err := f.ReadAt(b, t.at-int64(t.size)); err != nil {
		return false, err
	}
	return crc32.Checksum(b, tailTable) == t.sum, nil
}
