// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/spill"
)

// states keeps what a destination that is an output.Resumer wants stored with its chunks: with a
// chunk of a ring in the ring's header, behind the chunk's id, so that a successor
// knows that this chunk is done though its mark may still be there; with a chunk of a spill in the
// spill's cursor, which moves with it. Before a ring or spill is removed its state goes to another
// place of its origin, or an older one would count.
type states struct {
	*core
	ofSpill map[*spill.Spill]*origin // that were found
	mu      sync.Mutex
	buf     []byte
	closed  bool // the rings are gone
}

// keep stores the state that belongs with a chunk that is done. It is called by the destination.
func (s *states) keep(f *flight, state []byte) {
	if f.from != nil && !f.from.gone.Load() {
		if err := f.from.keep(f.pos, state); err != nil {
			s.report(fmt.Errorf("storing the destination's state: %w", err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := f.origin()
	o.latest = append(o.latest[:0], state...)
	if f.from == nil {
		f.feed.stateID = f.ID
		s.storeLocked(f.feed, state)
	}
}

// storeLocked writes stateID and state. With mu held.
func (s *states) storeLocked(r *feed, state []byte) {
	if s.closed {
		return
	}
	s.buf = append(append(s.buf[:0], r.stateID[:]...), state...)
	if err := r.Ring.SetState(s.buf); err != nil {
		s.report(fmt.Errorf("storing the destination's state: %w", err))
	}
}

// record stores a state that belongs with no chunk.
func (s *states) record(o *origin, state []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.latest = append(o.latest[:0], state...)
	switch {
	case o == &s.rings.origin:
		s.storeLocked(s.rings.cur.Load(), state)
	case o.ring != nil:
		s.storeLocked(o.ring, state)
	case o.spill != nil:
		return o.spill.Save(state)
	}
	return nil
}

// ringGoes has the latest state of an origin in another place, before the ring is removed: the one
// there may be older.
func (s *states) ringGoes(o *origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.ring = nil
	s.moveLocked(o)
}

// spillGoes is the same for a spill.
func (s *states) spillGoes(o *origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.spill = nil
	s.moveLocked(o)
}

func (s *states) moveLocked(o *origin) {
	switch {
	case len(o.latest) == 0:
	case o == &s.rings.origin:
		s.storeLocked(s.rings.cur.Load(), o.latest)
	case o.ring != nil:
		s.storeLocked(o.ring, o.latest)
	case o.spill != nil:
		sp, state := o.spill, slices.Clone(o.latest)
		s.disk.do("storing a state in "+sp.Dir, func() { s.report(sp.Save(state)) })
	}
}

// some says that there is a state of this process.
func (s *states) some() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rings.origin.latest) > 0
}

// close makes later calls do nothing: a destination that Close had to leave behind may still call.
func (s *states) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}

// resume tells the destination what dead processes left of it.
func (s *states) resume(rings []*feed, spills []*spill.Spill) error {
	switch {
	case s.byOrigin != nil:
		return s.byOrigin.ResumeFrom(s.origins(rings, spills)...)
	case s.resumer != nil:
		var all [][]byte
		for _, r := range rings {
			all = append(all, stateOf(r, nil)...)
		}
		for _, sp := range spills {
			all = append(all, stateOf(nil, sp)...)
		}
		return s.resumer.Resume(func(state []byte) error { return s.record(&s.rings.origin, state) }, all...)
	}
	return nil
}

// origins are the dead processes, each with its states, and this one last.
func (s *states) origins(rings []*feed, spills []*spill.Spill) []output.Origin {
	var all []output.Origin
	add := func(o *origin) {
		o.index = len(all)
		all = append(all, output.Origin{
			States: stateOf(o.ring, o.spill),
			Save:   func(state []byte) error { return s.record(o, state) },
		})
	}
	s.ofSpill = map[*spill.Spill]*origin{}
	for _, r := range rings {
		o := r.origin
		i := slices.IndexFunc(spills, func(sp *spill.Spill) bool { return filepath.Base(sp.Dir) == r.name })
		if i >= 0 {
			o.spill, s.ofSpill[spills[i]] = spills[i], o
		}
		add(o)
	}
	for _, sp := range spills {
		if s.ofSpill[sp] == nil {
			s.ofSpill[sp] = &origin{spill: sp}
			add(s.ofSpill[sp])
		}
	}
	add(&s.rings.origin)
	return all
}

// stateOf are the states in a ring and a spill, which may be nil.
func stateOf(r *feed, sp *spill.Spill) (states [][]byte) {
	if r != nil {
		if b := r.Ring.State(); len(b) > idLen {
			states = append(states, b[idLen:])
		}
	}
	if sp != nil {
		if b := sp.State(); len(b) > 0 {
			states = append(states, b)
		}
	}
	return states
}
