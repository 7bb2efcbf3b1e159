// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ErrNone says that a folder holds no ring.
var ErrNone = errors.New("ring: no ring here")

// Inspection is what one ring's files hold, read without changing anything. Of a ring in use it is
// a picture that has already moved on, and what was being written or reused while it was taken
// looks unreadable.
type Inspection struct {
	Owner    Owner
	Path     string // of the folder
	Live     bool   // a process has it
	Size     int64  // of all segments
	Used     int64  // of those in use
	Records  uint64 // whole, and not known to be done
	Bytes    uint64 // of their payloads
	Cut      uint64
	Marks    []Mark
	BadMarks int // slots of the table that hold something else
	State    []byte
	Counters [Counters]uint64
	Lost     Loss
	Err      error // why nothing of it can be read

	ring *Ring
}

// Inspect reads the ring in the folder path, or all the rings in the folders there. The error is
// [ErrNone] if there is none.
func Inspect(path string) ([]*Inspection, error) {
	if isRing(path) {
		return []*Inspection{inspect(path)}, nil
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var all []*Inspection
	for _, e := range list {
		sub := filepath.Join(path, e.Name())
		if _, temporary, ok := parseFolderName(e.Name()); ok && !temporary && isRing(sub) {
			if i := inspect(sub); !errors.Is(i.Err, fs.ErrNotExist) { // else its owner has just finished
				all = append(all, i)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNone, path)
	}
	slices.SortStableFunc(all, func(a, b *Inspection) int { return a.Owner.Made.Compare(b.Owner.Made) })
	return all, nil
}

func isRing(path string) bool {
	for _, name := range []string{ownerFile, ringFile} {
		if fi, err := os.Lstat(filepath.Join(path, name)); err == nil && fi.Mode().IsRegular() {
			return true
		}
	}
	return false
}

func inspect(path string) *Inspection {
	i := &Inspection{Path: path, Live: ownerLives(path), Owner: Owner{Path: path}}
	text, err := readRegular(filepath.Join(path, ownerFile), 8*maxIdentity)
	if err == nil {
		err = i.Owner.parse(text)
	}
	i.Err = err
	b, err := readRegular(filepath.Join(path, ringFile), segmentsAt+maxSize)
	if err != nil {
		i.Err = errors.Join(i.Err, err)
		return i
	}
	i.ring, err = fromBytes(b)
	if err != nil {
		i.Err = errors.Join(i.Err, err)
		return i
	}
	r := i.ring
	if i.Err == nil && hex.EncodeToString(r.head.id[:]) != i.Owner.RingID {
		i.Err = fmt.Errorf("%w: owner and ring do not belong together", ErrCorrupt)
	}
	i.Size, i.Used = r.head.size, r.used()
	i.Cut, i.Marks, i.BadMarks, i.State, i.Counters = r.cut, r.Marks(), r.badMarks, r.State(), r.counters
	for {
		rec, ok, _ := r.Next()
		if !ok {
			break
		}
		i.Records++
		i.Bytes += uint64(len(rec.Data))
	}
	i.Lost = r.Lost()
	return i
}

// fromBytes is an adopted ring of what was in a ring's file. What it lacks is zero.
func fromBytes(b []byte) (*Ring, error) {
	r := newRing()
	if err := r.head.parse(b, int64(len(b))); err != nil {
		return nil, err
	}
	size := r.head.segments + r.head.size
	if size != int64(int(size)) {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	whole := plainMemory(int(size))
	copy(whole, b)
	r.mem = whole
	return r, r.begin()
}

// AllRecords yields the records that are whole and not known to be done, in order, until yield
// returns false.
func (i *Inspection) AllRecords(yield func(Record) bool) {
	if i.ring == nil {
		return
	}
	i.ring.Rewind()
	for {
		rec, ok, _ := i.ring.Next()
		if !ok || !yield(rec) {
			return
		}
	}
}
