// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/journal"
)

// inHand is a file that is there while a collector runs. It says of each output how far it has
// come, whether one record was in hand alone, and in how many trials: see follow.Caution. What a
// process wrote outlives it; a power cut may take it, and nothing is lost by that.
//
//	┌─────────────┬──────────┬───────┬───────┐
//	│ cursor (16) │ finished │ flags │ crc32 │  32 bytes an output
//	└─────────────┴──────────┴───────┴───────┘
//
// The cursor is the start of the SHA-256 of its name.
type inHand struct {
	path string
	died bool // the process before did not remove it
	last map[[16]byte]follow.Note

	mu   sync.Mutex
	ran  bool     // the collector did
	file *os.File // nil: closed
}

const (
	inHandFile = "in-hand"
	inHandSlot = 32

	flagAlone = 1
	trialUnit = 2 // the trials are counted above it
)

// openInHand reads what the process before left, and begins anew. With an error, as of a full disk,
// nothing is kept; the rest works.
func openInHand(dir string) (*inHand, error) {
	h := &inHand{path: filepath.Join(dir, inHandFile), last: map[[16]byte]follow.Note{}}
	b, err := os.ReadFile(h.path)
	switch {
	case err == nil:
		h.died = true
	case !errors.Is(err, fs.ErrNotExist):
		return h, err
	}
	for ; len(b) >= inHandSlot; b = b[inHandSlot:] {
		if n, key, ok := readSlot(b[:inHandSlot]); ok {
			h.last[key] = n
		}
	}
	h.file, err = os.OpenFile(h.path, os.O_CREATE|os.O_RDWR, 0o644)
	return h, err
}

func readSlot(b []byte) (n follow.Note, key [16]byte, ok bool) {
	if crc32.ChecksumIEEE(b[:28]) != binary.BigEndian.Uint32(b[28:]) {
		return n, key, false
	}
	flags := binary.BigEndian.Uint32(b[24:])
	n = follow.Note{
		Finished: journal.Position(binary.BigEndian.Uint64(b[16:])), Alone: flags&flagAlone != 0,
		Trials: int(flags / trialUnit),
	}
	return n, [16]byte(b), true
}

// inHandKey stands for a cursor in the file.
func inHandKey(cursor string) [16]byte {
	sum := sha256.Sum256([]byte(cursor))
	return [16]byte(sum[:])
}

// of returns what the output with a cursor keeps to; i is its number. end is where the journal
// ends.
func (h *inHand) of(i int, cursor string, end journal.Position) *follow.Caution {
	key := inHandKey(cursor)
	c := &follow.Caution{Died: h.died, Last: h.last[key], End: end}
	c.Note = func(n follow.Note) { h.write(i, key, n) }
	return c
}

// anew is of for an output that comes, or is opened again, while the collector runs, and stands at
// a position: nothing of it is suspected.
func (h *inHand) anew(i int, cursor string, at journal.Position) *follow.Caution {
	key := inHandKey(cursor)
	h.write(i, key, follow.Note{Finished: at})
	return &follow.Caution{Note: func(n follow.Note) { h.write(i, key, n) }}
}

// keep writes what is known of outputs to where they stand now: outputs may have come and gone.
func (h *inHand) keep(cursors []string) {
	for i, cursor := range cursors {
		key := inHandKey(cursor)
		h.write(i, key, h.last[key])
	}
}

func (h *inHand) write(i int, key [16]byte, n follow.Note) {
	var b [inHandSlot]byte
	copy(b[:], key[:])
	binary.BigEndian.PutUint64(b[16:], uint64(n.Finished))
	var flags uint32
	if n.Alone {
		flags |= flagAlone
	}
	flags |= uint32(n.Trials) * trialUnit
	binary.BigEndian.PutUint32(b[24:], flags)
	binary.BigEndian.PutUint32(b[28:], crc32.ChecksumIEEE(b[:28]))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file != nil {
		_, _ = h.file.WriteAt(b[:], int64(i)*inHandSlot) // a full disk: then less is known after the next death
	}
}

// runs says that the collector runs: what the process before left counts no more after a good end.
func (h *inHand) runs() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran = true
}

// close removes the file: the end is in good order. What is to be known stays where nothing was
// run.
func (h *inHand) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == nil {
		return nil
	}
	err := h.file.Close()
	h.file = nil
	if h.died && !h.ran {
		return err
	}
	return errors.Join(err, os.Remove(h.path))
}
