// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

const (
	cursor       = "mover"
	mostHanding  = 1 // windows with the disk's goroutine: what one was refused must come before the next
	retryWrite   = 100 * time.Millisecond
	spillSegment = 4 << 20
)

// A spill is a journal of chunks that is read from its beginning: this process's own, to which is appended as well, or an adopted one. The mover's goroutine has a list of
// what is in it; that of the disk writes, and a follower reads (follow.go).
type spill struct {
	dir     string
	made    time.Time
	own     bool
	j       *journal.Journal
	rd      *journal.Reader
	entries queue[entry]         // all that was not submitted yet, in the order of positions
	left    int                  // chunks that are not done
	ids     map[[idLen]byte]bool // of the chunks found in it, until they are compared with marks
	paired  bool                 // the ring of the same owner was adopted as well
	gone    atomic.Bool          // it is being removed: what its journal complains of is nothing to anybody
	reading

	mu sync.Mutex // over the cursor, which states move as well
}

// An entry is a chunk in a spill.
type entry struct {
	pos    journal.Position
	win    *window // that it was cut in, nil for an adopted one
	bytes  uint64
	events uint32
}

// push notes that a chunk is in the spill.
func (sp *spill) push(e entry) {
	sp.entries.push(e)
	sp.left++
}

// holds says that some of its chunks are not done.
func (sp *spill) holds() bool { return sp != nil && sp.left > 0 }

// over says that an adopted spill is empty, and has it removed.
func (sp *spill) over(m *Mover) bool {
	if sp.broken {
		// Nothing more can be had of it now. It stays, for another time.
		if m.inFlight > 0 && m.active == shipper(sp) {
			return false
		}
		sp.leave()
		m.stranded = append(m.stranded, sp)
		return true
	}
	if sp.holds() {
		return false
	}
	m.state.move()
	m.remove(sp)
	return true
}

// commit makes it durable that everything up to p is done. A nil state leaves the one that is there.
func (sp *spill) commit(p journal.Position, state []byte) error {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	at, had := sp.rd.Committed()
	if p <= at {
		return nil
	}
	if state == nil {
		state = had
	}
	return sp.rd.Commit(p, state)
}

// write appends chunks and returns their positions, as many as there was room for. They outlive the process then.
func (sp *spill) write(m *Mover, flights []*flight) ([]journal.Position, error) {
	var ends []journal.Position
	var head, tail []byte
	var err error
	for _, f := range flights {
		head = f.chunk.AppendHead(head[:0])
		tail = f.chunk.AppendTail(tail[:0])
		var p journal.Position
		err = m.insist(func() (err error) {
			p, err = sp.j.Append(head, f.chunk.Entries, tail)
			return err
		}, journal.ErrFull, journal.ErrTooLarge)
		if err != nil {
			break
		}
		ends = append(ends, p)
	}
	m.cfg.fault("appended")
	if len(ends) > 0 {
		// An error means "not known to be stored": the journal goes on trying, and so the chunks stay covered by their marks meanwhile.
		if err := m.insist(func() error { return sp.j.Flush(context.Background(), ends[len(ends)-1]) }); err != nil {
			return nil, err
		}
	}
	m.cfg.fault("flushed")
	return ends, err
}

// insist does something of a journal's until it works, fails for good, or nobody waits for it any more.
func (m *Mover) insist(fn func() error, final ...error) error {
	for {
		err := fn()
		if err == nil || errors.Is(err, journal.ErrClosed) || m.over() {
			return err
		}
		if slices.ContainsFunc(final, func(f error) bool { return errors.Is(err, f) }) {
			return err
		}
		m.pause()
	}
}

// pause waits before something is tried again, though not for a Mover that is closed.
func (m *Mover) pause() {
	select {
	case <-time.After(retryWrite):
	case <-m.gaveUp:
	}
}

// over says that Close waits for nothing any more.
func (m *Mover) over() bool {
	select {
	case <-m.gaveUp:
		return true
	default:
		return false
	}
}
