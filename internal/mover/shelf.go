// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/journal"
)

// A shelf is where the disk's goroutine keeps spills. All of it belongs to that goroutine.
type shelf struct {
	*core
	folder *spill.Folder
	own    *spill.Spill // that of this process; nil before it is needed
	before int          // spills that were made to be read before it
}

func newShelf(g *core) *shelf {
	return &shelf{core: g, folder: spill.New(&spill.Options{
		Name: g.cfg.Name, Identity: g.cfg.identity(), Dir: g.cfg.Dir, Shm: g.cfg.Shm, MaxDisk: g.cfg.MaxDisk,
		BootID: func() string { return g.rings.cur.Load().Ring.Owner().BootID },
		Report: g.report, GaveUp: g.gaveUp, FS: g.cfg.fs, Fault: g.cfg.fault,
	})}
}

// discover finds the spills of dead processes, and of the owners of rings that were adopted.
func (s *shelf) discover(rings []*feed) []*spill.Spill {
	var names []string
	for _, r := range rings {
		names = append(names, r.name)
	}
	return s.folder.Discover(names)
}

// put writes chunks to the own spill, which is made when it is first needed. stored: all that was
// appended to it is.
func (s *shelf) put(j *spillJob) (sp *spill.Spill, stored bool, err error) {
	s.cfg.fault("spilling")
	if sp = s.own; sp != j.to {
		j.afresh()
	}
	if sp == nil {
		if sp, err = s.folder.Make(s.rings.path, time.Now()); err != nil {
			return nil, false, err
		}
		s.own = sp
	}
	if err = s.folder.Budget(sp); err == nil {
		err = sp.Append(j.chunks, j.at)
	}
	if ferr := sp.Flush(j.end()); ferr != nil {
		return sp, false, ferr
	}
	return sp, true, err
}

// takeBack ends the spill that a job has made, where the mover has ended meanwhile. If all that is
// in it is under marks in rings that a successor can adopt, it is taken away: the successor may
// have looked for spills before this one was there, and the one after would deliver it once more.
// Otherwise it may be the only copy, and stays.
func (s *shelf) takeBack(j *spillJob, sp *spill.Spill) {
	if sp == nil || sp == j.to {
		return
	}
	if s.own == sp {
		s.own = nil
	}
	if j.covered {
		s.report(sp.Discard())
	} else {
		_ = sp.Close() // what is in it was flushed, as far as that can be had
	}
}

// makeBefore makes a spill that successors read before the own one, before what is in the ring, and
// behind those that were made like this before it: they go by age, and a ring is as old as its
// process.
func (s *shelf) makeBefore() (*spill.Spill, error) {
	made := time.Now()
	switch {
	case s.rings.path != "":
		made = s.rings.made
	case s.own != nil:
		made = s.own.Made
	}
	sp, err := s.folder.MakeWithin(s.rings.path, made.Add(time.Duration(s.before+1)-time.Millisecond))
	if err == nil {
		s.before++
	}
	return sp, err
}

// putBefore writes chunks to such a spill, for good. n of the first are stored.
func (s *shelf) putBefore(chunks []forward.Chunk) (dir string, n int, err error) {
	sp, err := s.makeBefore()
	if err != nil {
		return "", 0, err
	}
	n, err = sp.Write(chunks)
	return sp.Dir, n, errors.Join(err, sp.Close())
}

// putAside writes chunks to such a spill, which stays open. n of the first are stored; if none is
// there is no spill.
func (s *shelf) putAside(chunks []forward.Chunk, at []journal.Position) (sp *spill.Spill, n int, err error) {
	s.cfg.fault("spilling")
	if sp, err = s.makeBefore(); err != nil {
		return nil, 0, err
	}
	err = sp.Append(chunks, at)
	for n < len(at) && at[n] != 0 {
		n++
	}
	if n > 0 {
		if ferr := sp.Flush(at[n-1]); ferr != nil {
			n, err = 0, ferr
		}
	}
	if n == 0 {
		if errors.Is(err, journal.ErrTooLarge) { // for what MaxDisk leaves
			err = spill.ErrBudget
		}
		return nil, 0, errors.Join(err, sp.Discard())
	}
	return sp, n, err
}

// removed says what was removed of a spill from outside. sp may be nil.
func (s *shelf) removed(sp *spill.Spill) (all, some bool) {
	if sp == nil {
		return false, false
	}
	if all, some = sp.Removed(); some && s.own == sp {
		s.own = nil // what is spilled next makes another
	}
	if all {
		sp.Forget()
	}
	return all, some
}

// close lets go of the own spill, which the loop has not heard of, or which is being written to.
func (s *shelf) close() {
	if s.own != nil {
		_ = s.own.Close() // what is in it is covered by marks as well, or was counted as held
	}
}

// closeAll leaves spills to the next process.
func closeAll(spills []*spill.Spill) {
	for _, sp := range spills {
		_ = sp.Close() // it was only read
	}
}
