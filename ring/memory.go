// SPDX-License-Identifier: Apache-2.0

package ring

import "unsafe"

// memory is the piece of memory that a ring is: a mapping of its file, or plain. What is written
// where, and by which part of the ring, is drawn in doc.go.
type memory struct {
	mem     []byte   // nil after the end of the ring: made so by the reader, under the lock of notes
	shared  bool     // it is a mapping, and may go
	head    head     // what never changes there
	backing *backing // what the file has been given of it; nil: all
	path    string   // the folder of the file, empty for plain memory
}

// plainMemory is zero and aligned for 64-bit words.
func plainMemory(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// Path is the ring's folder, empty for plain memory.
func (m *memory) Path() string { return m.path }

// line is that of a segment in the table.
func (m *memory) line(off int64) []byte {
	at := int64(tableAt + lineLen*m.head.place(off))
	return m.mem[at : at+lineLen]
}

// entry1 is what there was in place of a line in the first version.
func (m *memory) entry1(off int64) []byte {
	at := int64(table1 + entryLen1*m.head.place(off))
	return m.mem[at : at+entryLen1]
}
