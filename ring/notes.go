// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Mark covers records that were handed on and are not yet done: those with keys from First to Last
// that belong together in a way that the caller can tell from the label and the record First. It
// outlives the process.
type Mark struct {
	First, Last uint64   // keys
	Lane        uint16   // of the record First
	Label       [24]byte // the caller's
	Slot        int      // set by Marks; Put ignores it
}

// notes is what lies in the head of the ring's memory beside what never changes: the last cut,
// marks, the caller's state and counters. Any goroutine writes there. This process works with
// copies of its own; the memory is for the process that adopts the ring.
type notes struct {
	*memory
	life      *life
	mu        sync.Mutex // guards all below; its holder may take that of space
	cut       uint64
	cutCell   int
	marks     [MaxMarks]Mark
	marked    [MaxMarks]bool
	nmarks    int
	state     []byte
	stateSeq  uint64
	counters  [Counters]uint64
	badMarks  int  // slots of the table that cannot be read
	readerDue bool // the reader is to be woken once mu is free
}

// header runs fn, which writes to the head, under mu. After the end of the ring it does nothing.
func (n *notes) header(fn func()) {
	n.mu.Lock()
	if n.mem == nil {
		n.mu.Unlock()
		return
	}
	err := n.touch(fn)
	due := n.readerDue
	n.readerDue = false
	n.mu.Unlock()
	if due {
		n.life.wakeReader()
	}
	if err != nil {
		_ = n.life.fail(err)
	}
}

// end returns the memory, nil if there was an end before: nothing writes there any more.
func (n *notes) end() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	mem := n.mem
	n.mem = nil
	return mem
}

// ended says that the memory has gone with the ring's end.
func (n *notes) ended() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mem == nil
}

// putCut writes the cut into the older of its two cells.
func (n *notes) putCut() {
	n.cutCell ^= 1
	at := int64(cutsAt + 16*n.cutCell)
	b := n.mem[at : at+16]
	order.PutUint64(b, n.cut)
	order.PutUint64(b[8:], uint64(n.head.check(uint64(at), b[:8]))|1<<32)
}

func (n *notes) getCut() {
	for cell := range 2 {
		at := int64(cutsAt + 16*cell)
		b := n.mem[at : at+16]
		key := order.Uint64(b)
		if key >= n.cut && order.Uint64(b[8:]) == uint64(n.head.check(uint64(at), b[:8]))|1<<32 {
			n.cut, n.cutCell = key, cell
		}
	}
}

func (n *notes) markBytes(slot int) (at int64, b []byte) {
	at = int64(marksAt + markLen*slot)
	return at, n.mem[at : at+markLen]
}

// putMark writes a mark, its check last: a mark that was not finished is none.
func (n *notes) putMark(slot int) {
	at, b := n.markBytes(slot)
	m := &n.marks[slot]
	order.PutUint64(b, m.First)
	order.PutUint64(b[8:], m.Last)
	order.PutUint64(b[16:], uint64(m.Lane))
	copy(b[24:48], m.Label[:])
	order.PutUint64(b[48:], uint64(n.head.check(uint64(at), b[:48]))|1<<32)
}

func (n *notes) clearMark(slot int) {
	_, b := n.markBytes(slot)
	order.PutUint64(b[48:], 0)
}

func (n *notes) getMarks() (bad int) {
	for slot := range MaxMarks {
		at, b := n.markBytes(slot)
		word := order.Uint64(b[48:])
		if n.marked[slot] = word == uint64(n.head.check(uint64(at), b[:48]))|1<<32; !n.marked[slot] {
			if word != 0 {
				bad++
			}
			continue
		}
		n.nmarks++
		m := Mark{First: order.Uint64(b), Last: order.Uint64(b[8:]), Lane: uint16(order.Uint64(b[16:])), Slot: slot}
		copy(m.Label[:], b[24:48])
		n.marks[slot] = m
	}
	return bad
}

// Put stores a mark; ok is false when [MaxMarks] are there already.
func (n *notes) Put(m Mark) (slot int, ok bool) {
	slot = -1
	n.header(func() {
		for i, there := range n.marked {
			if !there {
				m.Slot, slot = i, i
				n.marked[i], n.marks[i] = true, m
				n.nmarks++
				n.putMark(i)
				return
			}
		}
	})
	return slot, slot >= 0
}

// Marks returns all marks in the order of First.
func (n *notes) Marks() (all []Mark) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, there := range n.marked {
		if there {
			all = append(all, n.marks[i])
		}
	}
	slices.SortFunc(all, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.First, b.First),
			cmp.Compare(a.Slot, b.Slot))
	})
	return all
}

// CutKey is the highest key that was given to Cut.
func (n *notes) CutKey() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut
}

// doneLocked says that every record with keys from first to last is done.
func (n *notes) doneLocked(first, last uint64) bool {
	if last > n.cut || n.nmarks == 0 {
		return last <= n.cut
	}
	for i, there := range n.marked {
		if there && n.marks[i].First <= last && n.marks[i].Last >= first {
			return false
		}
	}
	return true
}

// isDone is doneLocked for callers without mu.
func (n *notes) isDone(first, last uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.doneLocked(first, last)
}

// SetState stores bytes of the caller's, at most [MaxState], in place of those before: a
// process that adopts the ring finds the ones or the others.
func (n *notes) SetState(b []byte) error {
	if len(b) > MaxState {
		return fmt.Errorf("%w: state of %d bytes, the limit is %d", ErrTooLarge, len(b), MaxState)
	}
	if err := n.backing.forState(n.head.states, stateHeader+int64(len(b))); err != nil {
		if n.ended() { // and its file is closed
			return n.life.overErr()
		}
		return err
	}
	stored := false
	n.header(func() {
		n.state = append(n.state[:0], b...)
		n.stateSeq++
		at := n.head.states + int64(n.stateSeq%2)*stateRoom
		to := n.mem[at : at+stateRoom]
		order.PutUint32(to[16:], ^order.Uint32(to[16:])) // what lies there is no more
		order.PutUint64(to, n.stateSeq)
		order.PutUint64(to[8:], uint64(len(b)))
		copy(to[stateHeader:], b)
		order.PutUint32(to[16:], n.stateCheck(at, to, len(b)))
		stored = true
	})
	if !stored { // not n.life.overErr alone: a sealed ring still takes states
		return n.life.overErr()
	}
	return nil
}

func (n *notes) stateCheck(at int64, b []byte, length int) uint32 {
	return n.head.check(uint64(at)^uint64(n.head.check(uint64(at), b[:16]))<<20, b[stateHeader:stateHeader+length])
}

func (n *notes) getState() {
	for slot := range int64(2) {
		at := n.head.states + slot*stateRoom
		b := n.mem[at : at+stateRoom]
		seq, length := order.Uint64(b), order.Uint64(b[8:])
		if seq > n.stateSeq && length <= MaxState && order.Uint32(b[16:]) == n.stateCheck(at, b, int(length)) {
			n.stateSeq = seq
			n.state = slices.Clone(b[stateHeader : stateHeader+length])
		}
	}
}

// State returns a copy of what SetState stored last, nil if nothing.
func (n *notes) State() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.state)
}

// Count adds so much to one of the [Counters] counters.
func (n *notes) Count(i int, by uint64) {
	n.header(func() {
		n.counters[i] += by
		order.PutUint64(n.mem[countersAt+8*i:], n.counters[i])
	})
}

// Counter reads one.
func (n *notes) Counter(i int) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counters[i]
}

// load reads the head of a ring that another process left.
func (n *notes) load() (bad int) {
	n.getCut()
	bad = n.getMarks()
	n.getState()
	for i := range n.counters {
		n.counters[i] = order.Uint64(n.mem[countersAt+8*i:])
	}
	return bad
}
