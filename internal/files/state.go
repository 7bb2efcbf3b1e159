// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A state, as it is committed with a position:
//
//	┌─────────┬───────┬────────────────────┬───────┬──────────────────────────────────────────────┬────────┬──────────────┐
//	│ version │ count │ host, pid, pattern │ count │ identity, shared, path, inode, length, flags │ closed │ place, count │
//	│ 1 byte  │       │ of each writer     │       │ and perhaps a tail and a limit, of each file │ 1 byte │ of the Point │
//	└─────────┴───────┴────────────────────┴───────┴──────────────────────────────────────────────┴────────┴──────────────┘
//
// Numbers are uvarints, texts a uvarint and as many bytes. shared is how many bytes of the path are
// those of the path before. The device is not in it: its number may change at a reboot. Version 1,
// of which old data directories have some, had no patterns, and ended with the files.
const (
	stateVersion    = 2
	stateVersionOld = 1
)

const (
	flagDoubt = 1 // bytes beyond the length may be lost, though they can be read: a sync failed
	flagTail  = 2 // behind the flags stand size and sum of a tail that ends at the length
	flagLimit = 4 // and then how far behind the length the limit is
)

// flagClosed: lines that have no file go to that for the rest.
const flagClosed = 1

// A state is what is committed with a position.
type state struct {
	writers []identity
	entries []entry
	closed  bool
	point   Point
}

// maxWriters bounds how many earlier writers a state may name.
const maxWriters = 1 << 10

// An entry says of one file that all lines up to the position are in its first length bytes.
type entry struct {
	writer int // index into the writers
	path   string
	inode  uint64
	length int64
	doubt  bool
	tail   tail  // of no bytes, or up to length
	limit  int64 // above 0: what stands behind it is not of the process before, nor of any earlier
}

func appendState(b []byte, s *state) []byte {
	b = append(b, stateVersion)
	b = binary.AppendUvarint(b, uint64(len(s.writers)))
	for _, w := range s.writers {
		b = appendText(b, w.host)
		b = appendText(b, w.pid)
		b = appendText(b, w.pattern)
	}
	b = binary.AppendUvarint(b, uint64(len(s.entries)))
	before := ""
	for i := range s.entries {
		e := &s.entries[i]
		b = binary.AppendUvarint(b, uint64(e.writer))
		shared := 0
		for shared < len(before) && shared < len(e.path) && before[shared] == e.path[shared] {
			shared++
		}
		b = binary.AppendUvarint(b, uint64(shared))
		b = appendText(b, e.path[shared:])
		b = binary.AppendUvarint(b, e.inode)
		b = binary.AppendUvarint(b, uint64(e.length))
		flags := byte(0)
		if e.doubt {
			flags = flagDoubt
		}
		if e.tail.size > 0 {
			flags |= flagTail
		}
		if e.limit > e.length {
			flags |= flagLimit
		}
		b = append(b, flags)
		if e.tail.size > 0 {
			b = binary.AppendUvarint(b, uint64(e.tail.size))
			b = binary.AppendUvarint(b, uint64(e.tail.sum))
		}
		if e.limit > e.length {
			b = binary.AppendUvarint(b, uint64(e.limit-e.length))
		}
		before = e.path
	}
	closed := byte(0)
	if s.closed {
		closed = flagClosed
	}
	b = append(b, closed)
	b = appendText(b, s.point.Place)
	return binary.AppendUvarint(b, uint64(s.point.Events))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parseState reads what appendState wrote. No state at all is an empty one.
func parseState(b []byte) (s state, err error) {
	if len(b) == 0 {
		return s, nil
	}
	old := b[0] == stateVersionOld
	if !old && b[0] != stateVersion {
		return s, fmt.Errorf("%w: version %d, not %d", ErrState, b[0], stateVersion)
	}
	d := stateDecoder{rest: b[1:]}
	for n := d.count(maxWriters); n > 0 && !d.bad; n-- {
		w := identity{host: d.text()}
		w.pid = d.text()
		if !old {
			w.pattern = d.text()
		}
		s.writers = append(s.writers, w)
	}
	before := ""
	for n := d.count(math.MaxInt32); n > 0 && !d.bad; n-- {
		e := entry{writer: d.count(len(s.writers) - 1)}
		shared := d.count(len(before))
		if d.bad {
			break
		}
		e.path = before[:shared] + d.text()
		e.inode = d.number()
		length := d.number()
		e.length = int64(length)
		flags := d.byte()
		e.doubt = flags&flagDoubt != 0
		if length > math.MaxInt64 || e.path == "" || flags&^(flagDoubt|flagTail|flagLimit) != 0 {
			d.bad = true
		}
		if flags&flagTail != 0 {
			e.tail = tail{at: e.length, size: d.count(tailSize)}
			sum := d.number()
			e.tail.sum = uint32(sum)
			d.bad = d.bad || e.tail.size == 0 || sum > math.MaxUint32
		}
		if flags&flagLimit != 0 {
			n := d.number()
			d.bad = d.bad || n == 0 || n > uint64(math.MaxInt64-e.length)
			e.limit = e.length + int64(n)
		}
		before = e.path
		s.entries = append(s.entries, e)
	}
	if !old {
		closed := d.byte()
		s.closed = closed == flagClosed
		s.point.Place = d.text()
		s.point.Events = d.count(math.MaxInt32)
		d.bad = d.bad || closed&^flagClosed != 0
	}
	if d.bad || len(d.rest) > 0 {
		return state{}, fmt.Errorf("%w: broken at byte %d of %d", ErrState, len(b)-len(d.rest), len(b))
	}
	return s, nil
}

// stateDecoder reads on until something is bad, and returns zeros from there.
type stateDecoder struct {
	rest []byte
	bad  bool
}

func (d *stateDecoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || d.bad {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads a number from 0 to limit.
func (d *stateDecoder) count(limit int) int {
	v := d.number()
	if limit < 0 || v > uint64(limit) {
		d.bad = true
		return 0
	}
	return int(v)
}

func (d *stateDecoder) text() string {
	n := d.count(len(d.rest))
	if n > len(d.rest) || d.bad { // the count itself took bytes
		d.bad = true
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *stateDecoder) byte() byte {
	if len(d.rest) == 0 || d.bad {
		d.bad = true
		return 0
	}
	c := d.rest[0]
	d.rest = d.rest[1:]
	return c
}

// A Point says where in a chunk its caller stands, so that a state can belong to a place between
// two positions. Its zero value stands for the position itself.
type Point struct {
	Place  string // of the chunk, as the caller calls it; "" for the position
	Events int    // of the chunk, whose lines are in the files
}
