// SPDX-License-Identifier: Apache-2.0

package successor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/internal/within"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

// A Legacy is a ring whose owner is dead, with its spills. It belongs to one goroutine.
type Legacy struct {
	Path   string
	Owner  ring.Owner
	Spills int    // that were removed
	Bad    uint64 // events that are none; each is told once by a successor
	Lost   uint64 // events that cannot be read, at least, as far as it is done
	Known  []ID   // of chunks that the caller knows, and does not get again

	successor *Successor
	sighting  *sighting
	feed      window.Feed
	spills    []*spill.Spill // that are open
	dir       *within.Folder // of the spills; nil: none, or reached by its path
	stages    []stage
	known     map[ID]bool
	rest      uint64 // records of the ring behind all that was cut
	mem       window.Buffers
}

// A stage is a part of a legacy.
type stage interface {
	// next returns the next chunks, which hold until done; none: it is over.
	next() ([]*forward.Chunk, error)
	// done says that those are stored.
	done() error
}

func newLegacy(h *Successor, s *sighting, r *ring.Ring) *Legacy {
	return &Legacy{
		Path: r.Path(), Owner: r.Owner(), successor: h, sighting: s, known: map[ID]bool{},
		feed: window.Feed{Ring: r},
	}
}

// Take takes over a ring that Look returned. Chunks with ids in known are not handed out: they are
// stored. nil: somebody else has it, or it is left alone, which was told.
func (h *Successor) Take(path string, known []ID) *Legacy {
	s := h.seen[path]
	if s == nil {
		return nil
	}
	l, err := h.take(s, known)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ring.ErrLocked):
		s.dead = time.Time{}
	case errors.Is(err, journal.ErrLocked) && !s.locked:
		s.locked, s.not = true, h.now().Add(lockedFor)
	case errors.Is(err, ring.ErrTooLarge):
		h.leave(s, fmt.Errorf("it is larger than max_ring, which is %d bytes", h.opt.MaxRing))
	case err != nil:
		h.leave(s, err)
	}
	return l
}

func (h *Successor) take(s *sighting, known []ID) (l *Legacy, err error) {
	d, err := ring.OpenDir(s.folder)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	d.MaxSize = h.opt.MaxRing
	r, err := d.Adopt(s.name, h.wants, h.opt.Report)
	if r == nil {
		return nil, err
	}
	l = newLegacy(h, s, r)
	for _, id := range known {
		l.known[id] = true
	}
	if err := l.inherit(d, s.name); err != nil {
		_ = l.Leave() // the error before it is what counts
		return nil, err
	}
	return l, nil
}

// inherit opens the spills, and makes the chunks again that the owner had cut.
func (l *Legacy) inherit(d *ring.Dir, name string) error {
	_, dir := identity(l.Owner)
	if err := l.openSpills(d, name, dir); err != nil {
		if errors.Is(err, journal.ErrLocked) {
			return fmt.Errorf("its spill: %w", err)
		}
		return fmt.Errorf("its spill: %v", err) //nolint:errorlint // not to be taken for a ring that is gone
	}
	ids := maps.Clone(l.known)
	for _, k := range l.feed.Ring.Marks() {
		label := k.Label
		label[window.IDLen-1] = window.ToDestination
		raw, _, runs := window.ParseRun(label)
		for id := range l.known {
			if of, _, run := window.ParseRun(id); id == label || runs && run && of == raw {
				l.Known = append(l.Known, id)
			}
		}
	}
	var own stage
	var older, later []stage
	for _, sp := range l.spills {
		for id := range sp.IDs {
			ids[id] = true
		}
		sp.IDs = nil
		s := &spilled{l: l, sp: sp}
		switch {
		case filepath.Base(sp.Dir) == name:
			own = s
		case sp.Made.Before(l.Owner.Made):
			older = append(older, s)
		default:
			later = append(later, s)
		}
	}
	var label ID
	copy(label[:], l.feed.Ring.State())
	found := window.Rebuild(&l.feed, label, ids)
	if l.rest = found.Rest; !l.sighting.counted {
		l.Bad += found.Bad
		l.sighting.counted = true
	}
	l.stages = append(older, &marked{l: l, chunks: found.Older})
	if own != nil {
		l.stages = append(l.stages, own)
	}
	l.stages = append(l.stages, &marked{l: l, chunks: found.Younger},
		&uncut{l: l, cutter: window.NewCutter(false, &l.mem)})
	l.stages = append(l.stages, later...)
	return nil
}

// openSpills opens what lies in the folder that the ring's identity names. Where it cannot tell
// what lies there, the ring stays: nothing else leads to its spill.
func (l *Legacy) openSpills(d *ring.Dir, name, dir string) error {
	o := l.successor.opt
	if dir == "" {
		return nil
	}
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
		return fmt.Errorf("%q is no plain absolute path", dir)
	}
	var err error
	if os.Geteuid() == 0 { // whatever user wrote the path
		l.dir, err = within.Walk(dir)
		if err == nil && l.dir.UID() != d.UID() {
			err = fmt.Errorf("%s: %w", dir, within.ErrOwner)
		}
	} else {
		_, err = os.Lstat(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !l.spilling():
		return nil
	case err != nil:
		return err
	}
	folder := spill.New(&spill.Options{
		Name: ring.NameOf(name), Identity: l.Owner.Identity, Dir: dir, MaxDisk: maxSpill, Report: o.Report,
		GaveUp: o.GaveUp,
		Within: l.dir, Rings: d.Has,
	})
	l.spills, err = folder.DiscoverWhole(name)
	return err
}

// spilling says that the owner was spilling something: then there was a spill, or soon would have
// been.
func (l *Legacy) spilling() bool {
	return slices.ContainsFunc(l.feed.Ring.Marks(), func(k ring.Mark) bool {
		to := k.Label[window.IDLen-1]
		return to == window.ToSpill || to == window.RunsToSpill
	})
}

// Next returns the next chunks. They hold until Done. None: all is done, and Finish is next. An
// error says that nothing can be had now.
func (l *Legacy) Next() ([]*forward.Chunk, error) {
	for len(l.stages) > 0 {
		chunks, err := l.stages[0].next()
		if err != nil || len(chunks) > 0 {
			return chunks, err
		}
		l.stages = l.stages[1:]
	}
	return nil, nil
}

// Done says that the chunks that Next returned last are stored.
func (l *Legacy) Done() error { return l.stages[0].done() }

// Finish removes the ring, in which nothing is left. Spills are removed as they are done. After an
// error it was left.
func (l *Legacy) Finish() error {
	lost := uint64(0)
	if there := l.feed.Ring.Lost(); there.Regions > 0 {
		lost = max(there.Regions, there.Records)
	}
	if n := l.rest - l.feed.Taken.Load(); int64(n) > 0 { // counted, and not there any more
		lost += n
	}
	err := errors.Join(l.feed.Ring.Close(), l.close())
	if err != nil {
		l.sighting.not = l.successor.now().Add(leaveFor)
		return err
	}
	l.Lost += lost
	return nil
}

// Leave lets go of it. What is not done is there for the next that comes: this successor does not
// come at once.
func (l *Legacy) Leave() error {
	l.sighting.not = l.successor.now().Add(leaveFor)
	return errors.Join(l.feed.Ring.Leave(), l.close())
}

func (l *Legacy) close() (err error) {
	for _, sp := range l.spills {
		err = errors.Join(err, sp.Close())
	}
	l.spills = nil
	if l.dir != nil {
		err = errors.Join(err, l.dir.Close())
		l.dir = nil
	}
	return err
}
