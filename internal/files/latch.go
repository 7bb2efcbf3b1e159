// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
)

// A latch is a file beside one that is shared under a lock. A process locks it, and has what it
// writes in it first. So whatever it was killed at, the next that has the lock finds the batch
// whole and completes it:
//
//	0       8    16       24      32      40       48       56    60     64          576     584    4096
//	┌───────┬────┬────────┬───────┬───────┬────────┬────────┬─────┬──────┬───────────┬───────┬─ ─ ─┬───────────┐
//	│ magic │ id │ number │ phase │ inode │ offset │ length │ sum │ boot │ void × 64 │ check │     │ the batch │
//	└───────┴────┴────────┴───────┴───────┴────────┴────────┴─────┴──────┴───────────┴───────┴─ ─ ─┴───────────┘
//
// Each batch has a number. It is taken once the batch is in the latch and before the writer notes
// it in its own state, and made after that: from then on it will be in the file. Numbers that were
// taken and never made are void. So of each batch that a dead process noted, its successor knows
// whether it stands in the file, however much others have written since, and whatever became of the
// file.
//
//	taken ─→ noted by its writer ─→ made ─→ in the file ─→ written
//	  └────── killed: void, says the next ─┘     └─ killed: the next completes it, or, where the
//	                                                latch was damaged, makes it one that was taken
//
// It is not the file itself that is locked, because that is renamed under the lock, and its own
// locks say which processes write it; nor its directory, which cannot be locked on every file
// system. The head is written in one piece within one page, which a kill does not part.
type latch struct {
	kernel *kernel
	file   *os.File
	id     fileID
	head   latchHead
}

type latchHead struct {
	id     uint64 // of the latch: a random number
	number uint64 // of the last batch
	phase  uint64
	inode  uint64 // of the file that the batch goes to
	offset uint64 // where
	length uint64
	sum    uint32
	boot   uint32   // which start of the machine the numbers are of; 0: not known
	void   []uint64 // the last of those numbers, at most voids
}

const (
	taken uint64 = iota
	made
	written
)

const (
	latchMagic = "SPWLATCH"
	latchVoid  = 64
	latchCheck = latchVoid + 8*voids
	latchLen   = latchCheck + 8
	latchBatch = 4096 // where the batch begins
	voids      = 64

	maxBatch = 64 << 20 // read of a latch, which is anybody's bytes; none is that large
)

// latchEnding is what the name of a latch has behind that of its file. No tag becomes a name with
// this ending: see appendName.
const latchEnding = "~lock"

func (h *latchHead) append(b []byte) []byte {
	b = append(b, latchMagic...)
	for _, n := range [...]uint64{
		h.id, h.number, h.phase, h.inode, h.offset, h.length,
		uint64(h.sum) | uint64(h.boot)<<32,
	} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	for i := range voids {
		n := uint64(0) // no batch has that number
		if i < len(h.void) {
			n = h.void[i]
		}
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return binary.LittleEndian.AppendUint64(b, uint64(crc32.Checksum(b, tailTable)))
}

// parseLatch reads a head; ok is false if it is none.
func parseLatch(b []byte) (h latchHead, ok bool) {
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	if len(b) < latchLen || string(b[:8]) != latchMagic ||
		number(latchCheck) != uint64(crc32.Checksum(b[:latchCheck], tailTable)) {
		return h, false
	}
	h = latchHead{
		id: number(8), number: number(16), phase: number(24), inode: number(32), offset: number(40), length: number(48),
		sum: uint32(number(56)), boot: uint32(number(56) >> 32),
	}
	for at := latchVoid; at < latchCheck; at += 8 {
		if n := number(at); n > 0 {
			h.void = append(h.void, n)
		}
	}
	return h, true
}

// openLatch opens the latch of a file, or makes it.
func openLatch(path string, o *Options) (*latch, error) {
	f, err := os.OpenFile(path+latchEnding, openFlags&^os.O_APPEND|os.O_CREATE, o.FileMode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: fmt.Errorf("%w: %s", ErrKind, kindOf(info.Mode()))}
	}
	l := &latch{kernel: o.kernel, file: f}
	if err == nil {
		l.id, err = idOf(f, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// lock waits for the latch and reads its head. ok is false if it is not at its path any more: it
// was removed, and another one counts.
func (l *latch) lock() (ok bool, err error) {
	if err := awaitFile(l.file); err != nil {
		return false, &fs.PathError{Op: "lock", Path: l.file.Name(), Err: err}
	}
	if id, _, err := idAt(l.file.Name()); err != nil || id != l.id {
		l.unlock()
		return false, nil
	}
	var b [latchLen]byte
	n, err := l.file.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		l.unlock()
		return false, err
	}
	var there bool
	if l.head, there = parseLatch(b[:n]); !there {
		l.head = latchHead{id: rand.Uint64(), phase: written}
	}
	l.head.started(bootID())
	return true, nil
}

// started says which start of the machine this is. Nothing of a latch is synced, so a power cut may
// set its numbers back, and what a process has noted on a disk may name one that is used again. So
// they are numbers of another latch after a restart.
func (h *latchHead) started(boot uint32) {
	if boot == 0 {
		return
	}
	if h.boot != 0 && h.boot != boot {
		h.id, h.void = rand.Uint64(), nil
	}
	h.boot = boot
}

func (l *latch) unlock() { unlockFile(l.file) }

func (l *latch) put() error {
	_, err := l.kernel.writeAt(l.file, l.head.append(make([]byte, 0, latchLen)), 0)
	return err
}

// take begins a batch: its number is nobody else's.
func (l *latch) take() error {
	h := &l.head
	if h.phase == taken && h.number > 0 {
		h.void = append(h.void, h.number)
		h.void = h.void[max(0, len(h.void)-voids):]
	}
	h.number++
	h.phase, h.length = taken, 0
	return l.put()
}

// load puts a batch into the latch, whose last one is in its file.
func (l *latch) load(b []byte) error {
	_, err := l.kernel.writeAt(l.file, b, latchBatch)
	return err
}

// make says that what was loaded goes to a place of a file.
func (l *latch) make(b []byte, inode uint64, offset int64) error {
	h := &l.head
	h.phase, h.inode, h.offset, h.length, h.sum = made, inode, uint64(offset), uint64(len(b)), crc32.Checksum(b,
		tailTable)
	return l.put()
}

// wrote says that the batch is in its file.
func (l *latch) wrote() error {
	l.head.phase = written
	return l.put()
}

// unmake says that the batch cannot be completed, so that its lines come again: see take.
func (l *latch) unmake() error {
	l.head.phase = taken
	return l.put()
}

// has reports whether a batch is in the file, or will be by the next mend.
func (l *latch) has(p place) bool {
	h := &l.head
	switch {
	case p[0] != h.id || slices.Contains(h.void, p[1]):
		return false
	case len(h.void) == voids && p[1] < h.void[0]: // it may have been void: better twice than never
		return false
	case p[1] == h.number:
		return h.phase != taken
	}
	return p[1] < h.number
}

// batch returns what is in the latch, nil if it is not what the head says.
func (l *latch) batch() ([]byte, error) {
	info, err := l.file.Stat()
	if err != nil {
		return nil, err
	}
	room := uint64(min(max(info.Size()-latchBatch, 0), maxBatch)) // the head's length alone sizes nothing
	if l.head.length > room {
		return nil, nil
	}
	b := make([]byte, l.head.length)
	if _, err := l.file.ReadAt(b, latchBatch); err != nil {
		return nil, err
	}
	if crc32.Checksum(b, tailTable) != l.head.sum || bytes.IndexByte(b, '\n') < 0 {
		return nil, nil
	}
	return b, nil
}

func (f *file) closeLatch() {
	if f.latch != nil {
		f.latch.file.Close()
		f.latch = nil
	}
}
