// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
)

// A stretch is lines that were written together to a shared file, of one chunk: what comes again
// after a crash is compared with its sum, since what stands in the file may be at any place.
type stretch struct {
	size int
	sum  uint32
}

func stretchOf(b []byte) stretch { return stretch{len(b), crc32.Checksum(b, tailTable)} }

// A place says where the last batch of a shared file may stand. With SharedAppend: the file's
// inode, and its length before the write. With SharedLock: the identity of the latch, and the
// batch's number in it.
type place [2]uint64

// A lot is what is known of a shared file since the position last committed.
//
//	           met                   doubt
//	┌─────────┬──────────┬─────────┬──────────────────┐
//	│ written, or found  │ of an earlier process      │
//	│                    │ whole   │ perhaps: see place│
//	└────────────────────┴─────────┴──────────────────┘
type lot struct {
	stretches []stretch // in the order of the lines
	met       int       // so many of them were written, or have come again
	doubt     int       // so many of the last are of a batch that may not be in the file
	place     place     // of that batch

	ends  []int // where in the lines that wait those of a chunk end
	fresh bool  // lines were added since the last such end
}

// intend adds what is about to be written: whole lines, first of those that wait.
func (l *lot) intend(lines []byte, p place) {
	before, at := len(l.stretches), 0
	for _, end := range l.ends {
		if end > at && end < len(lines) {
			l.stretches = append(l.stretches, stretchOf(lines[at:end]))
			at = end
		}
	}
	l.stretches = append(l.stretches, stretchOf(lines[at:]))
	l.doubt, l.place = len(l.stretches)-before, p
}

// written says that what was intended is in the file.
func (l *lot) written() { l.met, l.doubt = len(l.stretches), 0 }

// forget gives up what has not come again, or has not been written.
func (l *lot) forget() { l.stretches, l.doubt = l.stretches[:l.met], 0 }

// taken has the first n bytes of what waits gone.
func (l *lot) taken(n int) {
	for i := range l.ends {
		l.ends[i] -= n
	}
	l.ends = slices.DeleteFunc(l.ends, func(end int) bool { return end <= 0 })
}

// settle makes the present the position.
func (l *lot) settle() {
	l.stretches = slices.Delete(l.stretches, 0, l.met)
	l.met = 0
}

// A sharedState is what is committed with a position, of shared files:
//
//	┌─────────┬────────┬────────┬───────┬──────────────────────────────────────────────────┐
//	│ version │ number │ closed │ count │ shared, path, place, count of stretches, of those│
//	│ 1 byte  │        │ 1 byte │       │ in doubt, size and sum of each, for each file    │
//	└─────────┴────────┴────────┴───────┴──────────────────────────────────────────────────┘
//
// Numbers and paths are as in a state. A greater number is a later state.
type sharedState struct {
	number uint64
	closed bool
	lots   []namedLot
}

type namedLot struct {
	path string
	lot  *lot
}

const stateShared = 3

func appendShared(b []byte, s *sharedState) []byte {
	b = binary.AppendUvarint(append(b, stateShared), s.number)
	closed := byte(0)
	if s.closed {
		closed = flagClosed
	}
	b = binary.AppendUvarint(append(b, closed), uint64(len(s.lots)))
	before := ""
	for _, x := range s.lots {
		shared := 0
		for shared < len(before) && shared < len(x.path) && before[shared] == x.path[shared] {
			shared++
		}
		b = binary.AppendUvarint(b, uint64(shared))
		b = appendText(b, x.path[shared:])
		b = binary.AppendUvarint(b, x.lot.place[0])
		b = binary.AppendUvarint(b, x.lot.place[1])
		b = binary.AppendUvarint(b, uint64(len(x.lot.stretches)))
		b = binary.AppendUvarint(b, uint64(x.lot.doubt))
		for _, y := range x.lot.stretches {
			b = binary.AppendUvarint(b, uint64(y.size))
			b = binary.LittleEndian.AppendUint32(b, y.sum)
		}
		before = x.path
	}
	return b
}

// parseShared reads what appendShared wrote. No state at all is an empty one.
func parseShared(b []byte) (s sharedState, err error) {
	if len(b) == 0 {
		return s, nil
	}
	if b[0] != stateShared {
		return s, fmt.Errorf("%w: version %d, not %d: the file was not shared", ErrState, b[0], stateShared)
	}
	d := stateDecoder{rest: b[1:]}
	s.number = d.number()
	closed := d.byte()
	s.closed = closed == flagClosed
	d.bad = d.bad || closed&^flagClosed != 0
	before := ""
	for n := d.count(math.MaxInt32); n > 0 && !d.bad; n-- {
		shared := d.count(len(before))
		if d.bad {
			break
		}
		x := namedLot{before[:shared] + d.text(), &lot{}}
		x.lot.place = place{d.number(), d.number()}
		stretches := d.count(len(d.rest))
		x.lot.doubt = d.count(stretches)
		for ; stretches > 0 && !d.bad; stretches-- {
			y := stretch{size: d.count(math.MaxInt32)}
			if len(d.rest) < 4 || y.size == 0 {
				d.bad = true
				break
			}
			y.sum = binary.LittleEndian.Uint32(d.rest)
			d.rest = d.rest[4:]
			x.lot.stretches = append(x.lot.stretches, y)
		}
		d.bad = d.bad || x.path == ""
		before = x.path
		s.lots = append(s.lots, x)
	}
	if d.bad || len(d.rest) > 0 {
		return sharedState{}, fmt.Errorf("%w: broken at byte %d of %d", ErrState, len(b)-len(d.rest), len(b))
	}
	return s, nil
}

// mergeShared returns the latest of several states of one process.
func mergeShared(states [][]byte) (latest []byte, err error) {
	var number uint64
	for _, b := range states {
		s, e := parseShared(b)
		if e != nil {
			err = e
		} else if len(b) > 0 && (latest == nil || s.number > number) {
			latest, number = b, s.number
		}
	}
	return latest, err
}
