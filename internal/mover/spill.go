// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

const (
	cursor       = "mover"
	mostHanding  = 1 // windows with the disk's goroutine: what one was refused must come before the next
	leastAhead   = 4 // chunks read ahead of the destination,
	mostAhead    = mostRuns
	aheadBytes   = 256 << 10 // or as many as have so many bytes
	retryWrite   = 100 * time.Millisecond
	spillSegment = 4 << 20
)

// A spill is a journal of chunks that is read from its beginning: this process's own, to which is appended as well, or an adopted one. The mover's goroutine has a list of
// what is in it; reading and writing is done by that of the disk.
type spill struct {
	dir     string
	made    time.Time
	own     bool
	j       *journal.Journal
	rd      *journal.Reader
	entries queue[entry] // all that is not known to be done, in the order of positions
	first   uint64       // number of the first of entries
	next    int          // of entries: before it they are with the destination, done, or in ahead
	ahead   []*flight    // read, to be submitted
	reading bool
	ids     map[[idLen]byte]bool // of the chunks found in it, until they are compared with marks
	paired  bool                 // the ring of the same owner was adopted as well
	broken  bool                 // reading has failed for good: what is left stays for the next process
	commits bool                 // a commit is under way
	doneTo  journal.Position
	tried   journal.Position // of the last commit begun

	early journal.Record // met when those before it were asked for, which cannot be read; only the disk's goroutine's

	gone atomic.Bool // it is being removed: what its journal complains of is nothing to anybody

	mu    sync.Mutex // over what was committed, which a destination does with its states
	at    journal.Position
	state []byte
}

// An entry is a chunk in a spill.
type entry struct {
	pos    journal.Position
	win    *window // that it was cut in, nil for an adopted one
	bytes  uint64
	events uint32
	done   bool
}

// doneWith notes that the chunk of the entry of that number is done.
func (sp *spill) doneWith(seq uint64) {
	sp.entries.at(int(seq - sp.first)).done = true
	for sp.entries.len() > 0 && sp.entries.front().done {
		sp.doneTo = sp.entries.front().pos
		sp.entries.pop()
		sp.first++
		sp.next--
	}
}

// ship submits the next chunk, or sees to it that there will be one.
func (sp *spill) ship(m *Mover) bool {
	sp.advance(m)
	if len(sp.ahead) > 0 {
		f := sp.ahead[0]
		sp.ahead = sp.ahead[1:]
		m.submit(f)
		return true
	}
	if !sp.reading && !sp.broken && sp.next < sp.entries.len() {
		sp.read(m)
	}
	return false
}

// over says that an adopted spill is empty, and has it removed.
func (sp *spill) over(m *Mover) bool {
	if sp.broken {
		// Nothing more can be had of it now. It stays, for another time.
		if m.inFlight > 0 && m.active == shipper(sp) {
			return false
		}
		m.stranded = append(m.stranded, sp)
		return true
	}
	if sp.entries.len() > 0 {
		return false
	}
	m.state.move()
	m.remove(sp)
	return true
}

// read has the next chunks read.
func (sp *spill) read(m *Mover) {
	sp.reading = true
	var want []journal.Position
	size := uint64(0)
	for i := sp.next; i < sp.entries.len() && (len(want) < leastAhead || len(want) < mostAhead && size < aheadBytes); i++ {
		e := sp.entries.at(i)
		want = append(want, e.pos)
		size += e.bytes
	}
	m.disk.do("reading "+sp.dir, func() {
		flights, err := sp.fetch(m, want)
		m.post(func() { sp.fetched(m, want, flights, err) })
	})
}

// fetch reads the chunks that end at the positions in want, as far as they can be read: nil is one that cannot.
func (sp *spill) fetch(m *Mover, want []journal.Position) ([]*flight, error) {
	var flights []*flight
	failures := 0
	for len(flights) < len(want) {
		rec, ok, err := sp.tryNext()
		if err != nil {
			if failures++; failures > 10 || errors.Is(err, journal.ErrClosed) || m.over() {
				return flights, err
			}
			m.pause() // there may be no more files just now
			continue
		}
		if !ok {
			if len(flights) > 0 {
				break
			}
			// Only what is durable is read. It soon would be by itself; the destination waits.
			if err := sp.j.Sync(context.Background(), want[0]); err != nil {
				if errors.Is(err, journal.ErrClosed) {
					return flights, err
				}
				m.pause() // the journal goes on trying by itself
			}
			if sp.rd.Pos() >= want[0] || m.over() {
				return flights, nil
			}
			if failures++; failures > 50 {
				// It is durable and not read: it is gone.
				return append(flights, nil), nil
			}
			continue
		}
		for len(flights) < len(want) && want[len(flights)] < rec.Pos {
			flights = append(flights, nil)
		}
		if len(flights) == len(want) {
			sp.early = journal.Record{Pos: rec.Pos, Data: bytes.Clone(rec.Data)}
			break
		}
		if rec.Pos < want[len(flights)] {
			m.report(fmt.Errorf("%s at %v: it could not be read when the spill was opened, and is left out", sp.dir, rec.Pos))
			continue
		}
		f := &flight{m: m, slot: -1, from: sp, pos: rec.Pos}
		f.landed = f.land
		if err := f.chunk.Parse(append([]byte(nil), rec.Data...)); err != nil {
			m.report(fmt.Errorf("%s at %v: %w", sp.dir, rec.Pos, err))
			flights = append(flights, nil)
			continue
		}
		flights = append(flights, f)
	}
	return flights, nil
}

// tryNext is the reader's next record, and before it the one that was read too early.
func (sp *spill) tryNext() (rec journal.Record, ok bool, err error) {
	if rec = sp.early; rec.Data != nil {
		sp.early = journal.Record{}
		return rec, true, nil
	}
	return sp.rd.TryNext()
}

func (sp *spill) fetched(m *Mover, want []journal.Position, flights []*flight, err error) {
	sp.reading = false
	for i, f := range flights {
		e := sp.entries.at(sp.next)
		if e.pos != want[i] {
			panic("mover: a spill's entries are not those that were read")
		}
		if f == nil {
			m.lose(e)
			seq := sp.first + uint64(sp.next)
			sp.next++
			sp.doneWith(seq)
			continue
		}
		f.bytes, f.win, f.seq = e.bytes, e.win, sp.first+uint64(sp.next)
		sp.next++
		sp.ahead = append(sp.ahead, f)
	}
	if err != nil && !m.stopped {
		m.report(fmt.Errorf("reading %s: %w", sp.dir, err))
		sp.broken = !sp.own // which nobody else can read now: it is tried again and again
	}
}

// lose accounts for an entry that cannot be read.
func (m *Mover) lose(e *entry) {
	m.count.cut.sub(uint64(e.events), e.bytes)
	m.drop(Lost, uint64(e.events))
	if e.win != nil {
		m.answerDropped(e.win, e.win.first, e.win.last)
	}
}

// advance has what is done committed, so that its segments are used again. A crash before that sends the same chunks again under the same ids.
func (sp *spill) advance(m *Mover) {
	if sp.commits || sp.doneTo <= sp.tried {
		return
	}
	sp.commits = true
	to := sp.doneTo
	sp.tried = to
	m.disk.do("committing in "+sp.dir, func() {
		err := sp.commit(to, nil)
		m.post(func() {
			sp.commits = false
			if err != nil && !m.stopped {
				m.report(fmt.Errorf("%s: %w", sp.dir, err))
			}
			if sp.own {
				m.count.disk.Store(sp.j.Stats().Bytes)
			}
		})
	})
}

// commit makes it durable that everything up to p is done. A nil state leaves the one that is there.
func (sp *spill) commit(p journal.Position, state []byte) error {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if p <= sp.at {
		return nil
	}
	if state != nil {
		sp.state = append(sp.state[:0], state...)
	}
	if err := sp.rd.Commit(p, sp.state); err != nil {
		return err
	}
	sp.at = p
	return nil
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
		for tries := 0; ; tries++ {
			p, err = sp.j.Append(head, f.chunk.Entries, tail)
			if err == nil || errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrClosed) || errors.Is(err, journal.ErrTooLarge) || m.over() {
				break
			}
			m.pause()
		}
		if err != nil {
			break
		}
		ends = append(ends, p)
	}
	m.cfg.fault("appended")
	if len(ends) > 0 {
		for {
			// An error means "not known to be stored": the journal goes on trying, and so the chunks stay covered by their marks meanwhile.
			ferr := sp.j.Flush(context.Background(), ends[len(ends)-1])
			if ferr == nil {
				break
			}
			if errors.Is(ferr, journal.ErrClosed) || m.over() {
				return nil, ferr
			}
			m.pause()
		}
	}
	m.cfg.fault("flushed")
	return ends, err
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
