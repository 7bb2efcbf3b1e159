// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"
	"sync"

	"github.com/spillwaylog/spillway/internal/spill"
)

// states keeps what a destination that is an output.Resumer wants stored with its chunks: with a
// chunk of a ring in the ring's header, behind the chunk's id, so that whoever adopts the ring
// knows that this chunk is done though its mark may still be there; with a chunk of a spill in the
// spill's cursor, which moves with it. Before a ring or spill is removed its state goes to the own
// ring, or an older one would count.
type states struct {
	m      *Mover
	mu     sync.Mutex
	latest []byte
	buf    []byte
	closed bool // the rings are gone
}

// keep stores the state that belongs with a chunk that is done. It is called by the destination.
func (s *states) keep(f *flight, state []byte) {
	if f.from != nil {
		if err := f.from.Commit(f.pos, state); err != nil {
			s.m.report(fmt.Errorf("storing the destination's state: %w", err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = append(s.latest[:0], state...)
	if f.from == nil {
		f.src.label = f.id
		s.store(f.src, state)
	}
}

// store writes label and state. With mu held.
func (s *states) store(src *source, state []byte) {
	if s.closed {
		return
	}
	s.buf = append(append(s.buf[:0], src.label[:]...), state...)
	if err := src.r.SetState(s.buf); err != nil {
		s.m.report(fmt.Errorf("storing the destination's state: %w", err))
	}
}

// record stores a state that belongs with no chunk.
func (s *states) record(state []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = append(s.latest[:0], state...)
	s.store(s.m.cur.Load(), state)
	return nil
}

// move puts the latest state into the own ring, before the one in another place goes with that
// place.
func (s *states) move() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.latest) > 0 {
		s.store(s.m.cur.Load(), s.latest)
	}
}

// some says that there is a state.
func (s *states) some() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.latest) > 0
}

// close makes later calls do nothing: a destination that Close had to leave behind may still call.
func (s *states) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}

// all are the states that dead processes left.
func (s *states) all(rings []*source, spills []*spill.Spill) [][]byte {
	var all [][]byte
	for _, src := range rings {
		if b := src.r.State(); len(b) > idLen {
			all = append(all, b[idLen:])
		}
	}
	for _, sp := range spills {
		if b := sp.State(); len(b) > 0 {
			all = append(all, b)
		}
	}
	return all
}
