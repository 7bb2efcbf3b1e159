// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/ring"
)

// rings are those of this process: one, and those before it that failed, until all that could be
// read of them is done.
type rings struct {
	cfg    *Config
	wake   func()
	cur    atomic.Pointer[feed]    // where Append puts events
	all    atomic.Pointer[[]*feed] // oldest first; cur is the last
	origin origin                  // this process, as a destination with states sees it
	path   string                  // of the one that Open opened
	made   time.Time               // that one, where it is in shared memory
	mu     sync.Mutex              // over changes of cur and all
	sealed bool                    // mu
	gone   uint64                  // events appended to those that are no longer in all; mu
}

// open opens the first one.
func (r *rings) open() error {
	first := r.shared()
	if first == nil {
		var err error
		if first, err = ring.Open(r.options("")); err != nil {
			return fmt.Errorf("mover: %w", err)
		}
	}
	s := r.feed(first)
	r.all.Store(&[]*feed{s})
	r.cur.Store(s)
	r.path, r.made = first.Path(), first.Owner().Made
	return nil
}

// shared opens a ring in shared memory, or returns nil when there is to be none, or cannot be.
func (r *rings) shared() *ring.Ring {
	if r.cfg.Shm == "" {
		return nil
	}
	first, err := ring.Open(r.options(r.cfg.Shm))
	if err != nil {
		r.cfg.report(fmt.Errorf("the ring is in plain memory, which does not outlive the process: %w", err))
		return nil
	}
	return first
}

func (r *rings) options(dir string) *ring.Options {
	return &ring.Options{
		Dir:       dir,
		Name:      r.cfg.Name,
		Identity:  r.cfg.identity(),
		Size:      r.cfg.RingSize,
		MaxRecord: r.cfg.MaxEvent + tagRoom,
		Report:    r.cfg.Diagnostics,
	}
}

// tagRoom is what a payload may hold besides the record.
const tagRoom = 1<<10 + binary.MaxVarintLen16

func (r *rings) feed(of *ring.Ring) *feed {
	of.SetWake(r.wake)
	return newFeed(of, true, &r.origin)
}

// replace puts a ring of plain memory in the place of one that failed.
func (r *rings) replace(s *feed) {
	r.mu.Lock()
	if r.cur.Load() != s || r.sealed {
		r.mu.Unlock()
		return
	}
	next, err := ring.Open(r.options(""))
	if err == nil {
		n := r.feed(next)
		all := append(slices.Clone(*r.all.Load()), n)
		r.all.Store(&all)
		r.cur.Store(n)
	}
	r.mu.Unlock()
	r.cfg.report(fmt.Errorf("the ring failed; what follows is in plain memory, which does not outlive the process: %w",
		s.Ring.Failed()))
	r.cfg.report(err)
	r.wake()
}

// seal has them accept nothing more.
func (r *rings) seal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sealed = true
	for _, s := range *r.all.Load() {
		s.Ring.Seal()
	}
}

// full is the first one that has records to be taken.
func (r *rings) full() *feed {
	for _, s := range *r.all.Load() {
		if s.Fill() {
			return s
		}
	}
	return nil
}

// remove lets go of one that failed, and of which nothing more can be had.
func (r *rings) remove(s *feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := s.close(false); err != nil {
		r.cfg.report(fmt.Errorf("removing the ring that failed: %w", err))
	}
	r.gone += s.totals().events
	all := without(*r.all.Load(), s)
	r.all.Store(&all)
}

func without(all []*feed, s *feed) []*feed {
	return slices.DeleteFunc(slices.Clone(all), func(o *feed) bool { return o == s })
}
