// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
)

// A shelf is where the disk's goroutine keeps spills. All of it belongs to that goroutine.
type shelf struct {
	*ground
	folder *spill.Folder
	own    *spill.Spill // that of this process; nil before it is needed
}

func newShelf(g *ground) *shelf {
	return &shelf{ground: g, folder: spill.New(&spill.Options{
		Name: g.cfg.Name, Identity: g.cfg.identity(), Dir: g.cfg.Dir, Shm: g.cfg.Shm, MaxDisk: g.cfg.MaxDisk,
		BootID: func() string { return g.rings.cur.Load().Ring.Owner().BootID },
		Report: g.report, GaveUp: g.gaveUp, FS: g.cfg.fs, Fault: g.cfg.fault,
	})}
}

// scout finds the spills of dead processes, and of the owners of rings that were adopted.
func (s *shelf) scout(rings []*source) []*spill.Spill {
	var names []string
	for _, r := range rings {
		names = append(names, r.name)
	}
	return s.folder.Scout(names)
}

// put writes chunks to the own spill, which is made when it is first needed. stored: all that was
// appended to it is.
func (s *shelf) put(h *handover) (sp *spill.Spill, stored bool, err error) {
	s.cfg.fault("spilling")
	if sp = s.own; sp != h.to {
		h.afresh()
	}
	if sp == nil {
		if sp, err = s.folder.Make(s.rings.path, time.Now()); err != nil {
			return nil, false, err
		}
		s.own = sp
	}
	if err = s.folder.Budget(sp); err == nil {
		err = sp.Append(h.chunks, h.at)
	}
	if ferr := sp.Flush(h.end()); ferr != nil {
		return sp, false, ferr
	}
	return sp, true, err
}

// putBefore writes chunks to a spill that heirs read before the own one. n of the first are stored.
func (s *shelf) putBefore(chunks []forward.Chunk) (dir string, n int, err error) {
	made := time.Now()
	if s.own != nil {
		made = s.own.Made.Add(-1)
	}
	sp, err := s.folder.Make(s.rings.path, made)
	if err != nil {
		return "", 0, err
	}
	n, err = sp.Write(chunks)
	return sp.Dir, n, errors.Join(err, sp.Close())
}

// removed says what somebody removed of a spill, which may be nil.
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
