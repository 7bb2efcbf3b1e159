// SPDX-License-Identifier: Apache-2.0

package journal

// cursors are all durable cursors, and the files of their readers. Guarded by the lock
// of life.
type cursors struct {
	named   map[string]*cursor
	reading map[*readFile]bool // of open readers
}

func (cs *cursors) begin() {
	cs.named, cs.reading = map[string]*cursor{}, map[*readFile]bool{}
}

// lowestLocked is up to where all cursors have passed; without a cursor nothing is held, and it is
// behind everything.
func (cs *cursors) lowestLocked() Position {
	low := Position(1<<64 - 1)
	for _, c := range cs.named {
		low = min(low, Position(c.at.Load()))
	}
	return low
}

// readFile is the open file of a reader. Guarded by the lock of life.
type readFile struct {
	file File
	shut bool // the reader is closed
}

// dropLocked closes the file; a read from it now gets an error. With life.mu held.
func (r *readFile) dropLocked() error {
	return closeFile(&r.file)
}
