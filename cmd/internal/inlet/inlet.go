// SPDX-License-Identifier: Apache-2.0

package inlet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spillwaylog/spillway/internal/lines"
)

const (
	// MaxLine is the longest line; what is longer comes in pieces.
	MaxLine = 1 << 20

	magic    = "SPILLINL"
	version  = 1
	areasAt  = 4096
	areaSize = MaxLine + 128<<10
	minGap   = 64 << 10 // that is read at once
	fileSize = areasAt + 2*areaSize
	whichAt  = 16
	notesAt  = 64
	noteSize = 128
	blank    = 0xff // what was not read
)

// ErrInUse says that another process has the inlet.
var ErrInUse = errors.New("another process has it")

var errCorrupt = errors.New("it is no inlet")

var (
	order  = binary.LittleEndian
	blanks = bytes.Repeat([]byte{blank}, 4096)
)

// A note says what was read and not taken yet.
type note struct {
	area     uint32
	within   bool // from is in the middle of a line that comes in pieces
	from, to int
	key      uint64   // of the record of the line before from
	ring     [16]byte // that has it
	pipe     Pipe
	read     int64 // when, in Unix nanoseconds
}

// A Pipe tells pipes apart.
type Pipe struct{ Device, Inode uint64 }

// An Inlet is open, and this process's. One goroutine uses it.
type Inlet struct {
	f     *os.File
	mem   []byte
	note  note
	from  Pipe // of what is read next
	ended bool // what is left is a line, with or without its newline
	next  int  // where the line that Next returned ends, with its newline; 0: it returned none
	cut   bool // that one was a piece, and more of the line follows
}

// begin reads what is there. The zero file is an empty inlet.
func (in *Inlet) begin() error {
	m := in.mem
	if string(m[:8]) != magic || order.Uint32(m[8:]) != version || order.Uint32(m[12:]) != areaSize {
		return errCorrupt
	}
	if !in.note.get(m) {
		return errCorrupt
	}
	// What a kill kept from being noted: the end of what was read; blanks where there is nothing.
	a := in.area()
	end := len(a)
	for end-in.note.to >= len(blanks) && bytes.Equal(a[end-len(blanks):end], blanks) {
		end -= len(blanks)
	}
	for end > in.note.to && a[end-1] == blank {
		end--
	}
	if end > in.note.to {
		in.note.to, in.note.read = end, time.Now().UnixNano()
	}
	fill(in.areaOf(1 - in.note.area))
	return nil
}

// fresh is the content of an inlet that holds nothing, but for the magic, which is written last.
func fresh() []byte {
	b := make([]byte, fileSize)
	order.PutUint32(b[8:], version)
	order.PutUint32(b[12:], areaSize)
	fill(b[areasAt:])
	return b
}

func fill(b []byte) {
	if len(b) == 0 {
		return
	}
	b[0] = blank
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// get reads the note that counts; false: there is none.
func (n *note) get(m []byte) bool {
	which := order.Uint64(m[whichAt:])
	if which > 1 {
		return false
	}
	b := m[notesAt+which*noteSize:]
	from, to := order.Uint64(b[8:]), order.Uint64(b[16:])
	n.area = order.Uint32(b)
	if n.area > 1 || from > to || to > areaSize {
		return false
	}
	n.within = order.Uint32(b[4:])&1 != 0
	n.from, n.to = int(from), int(to)
	n.key = order.Uint64(b[24:])
	copy(n.ring[:], b[32:48])
	n.pipe = Pipe{order.Uint64(b[48:]), order.Uint64(b[56:])}
	n.read = int64(order.Uint64(b[64:]))
	return true
}

// put notes it: in the place that does not count yet.
func (in *Inlet) put() {
	n, m := &in.note, in.mem
	which := 1 - order.Uint64(m[whichAt:])&1
	b := m[notesAt+which*noteSize:][:noteSize]
	order.PutUint32(b, n.area)
	flags := uint32(0)
	if n.within {
		flags = 1
	}
	order.PutUint32(b[4:], flags)
	order.PutUint64(b[8:], uint64(n.from))
	order.PutUint64(b[16:], uint64(n.to))
	order.PutUint64(b[24:], n.key)
	copy(b[32:48], n.ring[:])
	order.PutUint64(b[48:], n.pipe.Device)
	order.PutUint64(b[56:], n.pipe.Inode)
	order.PutUint64(b[64:], uint64(n.read))
	// The compiler moves no store over an atomic one; little endian as all else.
	var word [8]byte
	order.PutUint64(word[:], which)
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&m[whichAt])), binary.NativeEndian.Uint64(word[:]))
}

func (in *Inlet) areaOf(i uint32) []byte {
	return in.mem[areasAt+int(i)*areaSize:][:areaSize]
}

func (in *Inlet) area() []byte { return in.areaOf(in.note.area) }

// Left is how many bytes were read and not taken.
func (in *Inlet) Left() int { return in.note.to - in.note.from }

// Last says which ring has the line before the one that Next returns, and under which key; the key
// is 0 if that ring has none yet. The next line may be in that ring, too, under the next key: then
// Took says so before anything else is done.
func (in *Inlet) Last() (ring [16]byte, key uint64) { return in.note.ring, in.note.key }

// Enter says which ring gets the lines from now on.
func (in *Inlet) Enter(ring [16]byte) {
	in.note.ring, in.note.key = ring, 0
	in.put()
}

// From says what is read from now on. The beginning of a line that came from elsewhere is a line.
func (in *Inlet) From(p Pipe) {
	in.from = p
	in.ended = p != in.note.pipe || p == Pipe{}
}

// End says that no more is read: what is left is a line without its newline.
func (in *Inlet) End() { in.ended = true }

// When is the time at which the line that Next returned was read.
func (in *Inlet) When() time.Time { return time.Unix(0, in.note.read) }

// Next returns the next line without its end; text says that it is a piece of a longer one. ok is
// false when more has to be read. The line is valid until Took, Skip or Read.
func (in *Inlet) Next() (line []byte, text, ok bool) {
	rest := in.area()[in.note.from:in.note.to]
	in.cut = false
	i := bytes.IndexByte(rest, '\n')
	switch {
	case i >= 0 && i <= MaxLine:
		in.next = in.note.from + i + 1
		return rest[:i], in.note.within, true
	case len(rest) > MaxLine:
		i = lines.WholeRunes(rest[:MaxLine])
		in.next, in.cut = in.note.from+i, true
		return rest[:i], true, true
	case in.ended && len(rest) > 0:
		in.next = in.note.to
		return rest, in.note.within, true
	}
	in.next = 0
	return nil, false, false
}

// Took says that the ring has the line that Next returned, under a key.
func (in *Inlet) Took(key uint64) {
	in.note.key = key
	in.Skip()
}

// Skip passes over the line that Next returned.
func (in *Inlet) Skip() {
	if in.next == 0 {
		return
	}
	in.note.from, in.note.within, in.next = in.next, in.cut, 0
	in.put()
}

// Read reads once from r, which puts what it reads into the memory that it is given, and nothing
// else. It is called when Next returns nothing.
func (in *Inlet) Read(r io.Reader) error {
	if in.ended = false; in.note.pipe != in.from {
		in.note.pipe = in.from
		in.put()
	}
	in.room()
	a := in.area()
	n, err := r.Read(a[in.note.to:])
	if n > 0 {
		in.note.to += n
		in.note.read = time.Now().UnixNano()
		in.put()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read: %w", err)
	}
	return err
}

// room makes room behind what was read.
func (in *Inlet) room() {
	n := &in.note
	old := in.area()[:n.to]
	switch {
	case n.from == n.to && n.to > 0:
		fill(old) // before the note: what it says was taken need not be there
		n.from, n.to = 0, 0
		in.put()
	case areaSize-n.to < minGap:
		n.area = 1 - n.area
		n.to = copy(in.area(), old[n.from:])
		n.from = 0
		in.put()
		fill(old)
	}
}
