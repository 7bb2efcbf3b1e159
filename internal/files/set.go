// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"time"
)

// A Set is a bounded set of files that lines are appended to. It is for one goroutine at a time.
type Set struct {
	o         Options
	index     index
	waiting   waiting
	openFiles lru
	dirs      map[string]struct{} // that got new names since they were last synced

	keeper    *keeper   // of rotated files; nil if there is nothing to do
	left      []string  // paths that the state named, until the first Write has them looked after
	tended    bool      // by that
	dismissed []*file   // that were retired and are settled, but perhaps not committed
	unable    time.Time // nothing is rotated before

	now     time.Time // when the call that runs began
	opened  time.Time
	hasty   bool  // what happened since the last Sync would be done twice after a crash
	mark    Mark  // of the last state
	unkept  bool  // the state of the last Checkpoint is not durable yet
	resumed Mark  // where the caller goes on; none once it is there
	rest    int64 // see Rest
	marks   bool  // the caller can make a Checkpoint
	failed  error // a sync failed
	closed  bool
}

// patience is for how long lines are expected that an earlier process may have written. They come
// again soon after Open, if they come at all.
const patience = time.Hour

// Open makes a Set of files under a path with placeholders. state is what the last Sync or Record
// before gave and was committed; nil is none. No file is made yet.
func Open(path string, state []byte, o *Options) (*Set, error) {
	options, err := o.resolved()
	if err != nil {
		return nil, err
	}
	p, err := parsePattern(path)
	if err != nil {
		return nil, err
	}
	if options.Rotation.on() {
		p.reserve = rotatedRoom
	}
	last, err := parseState(state)
	if err != nil {
		return nil, err
	}
	me := p.of(*options.self)
	if err := p.check(me); err != nil {
		return nil, err
	}
	s := &Set{
		o: options, index: newIndex(p, me, last.writers), dirs: map[string]struct{}{},
		waiting: waiting{buffer: options.Buffer, memory: options.Memory, most: 4 * options.MaxOpen}, now: time.Now(),
	}
	s.opened = s.now
	s.mark, s.resumed = last.mark, last.mark
	s.index.crowd = crowd{most: options.NewFiles, closed: last.closed, since: s.now}
	if options.Rotation.tends() {
		s.keeper = newKeeper(options.Rotation, options.Report)
	}
	for _, e := range last.entries {
		s.index.recall(e)
		if s.keeper != nil {
			s.left = append(s.left, e.path)
		}
	}
	for _, f := range s.index.order {
		if f.of != "" {
			s.keeper.hold(f.path)
		}
	}
	s.claim()
	return s, nil
}

// claim opens files that another output may have now, so that it neither compresses nor deletes
// them before their lines were looked for. One that cannot be opened is not the worse for it.
func (s *Set) claim() {
	for _, f := range s.index.order {
		if s.index.passedOn(f) && s.openFiles.n < s.o.MaxOpen/2 {
			_ = s.open(f)
		}
	}
}

// Extend adds lines for the file of a tag and the time of an event, in seconds since 1970. render
// gets what waits for that file already, appends whole lines, one or several or none, and returns
// the result. full asks for a Write, because enough waits; nothing is written before. An error
// means that render was not called; it is ErrCrowded where a Checkpoint comes first.
func (s *Set) Extend(tag string, sec int64, render func(dst []byte) []byte) (full bool, err error) {
	f, err := s.fileOf(tag, sec)
	if err != nil {
		return false, err
	}
	return s.waiting.extend(f, render), nil
}

// fileOf returns the file that the next line of a tag and time goes to. The error is that of
// Extend.
func (s *Set) fileOf(tag string, sec int64) (*file, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	r := s.index.pattern.route(tag, sec)
	f := s.index.last
	if f == nil || f.route != r {
		if f = s.index.routes[r]; f == nil {
			if err := s.admit(r); err != nil {
				return nil, err
			}
			f = s.index.lookUp(r)
			if f.route != r {
				s.rest++
			}
		}
		s.index.last = f
	}
	s.index.crowd.next = undecided
	return f, nil
}

// Rest returns how often Extend and Long have had lines go to the file for the rest, since Open.
func (s *Set) Rest() int64 { return s.rest }

// Drop forgets the lines that wait, but for the rest of one that is in a file in part.
func (s *Set) Drop() {
	s.waiting.drop()
	s.dropLong()
}

func (s *Set) usable() error {
	if s.closed {
		return ErrClosed
	}
	return s.failed
}

// Open returns how many files are open.
func (s *Set) Open() int { return s.openFiles.n }

// CloseGrace is how long Close waits for rotated files to be compressed and deleted.
const CloseGrace = 3 * time.Second

// Close is CloseContext with CloseGrace.
func (s *Set) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), CloseGrace)
	defer cancel()
	return s.CloseContext(ctx)
}

// CloseContext closes the files. Lines that wait are dropped: they are behind the position that was
// committed, and come again. Call Sync first and commit. It may be called twice. With NoSync it
// brings what the open files got to the disk.
//
// Then it deletes and compresses the rotated files that are due. When ctx is done it stops that
// within what one write or sync takes: what is not compressed stays as it is, and the next Set goes
// on with it. ctx bounds nothing else.
func (s *Set) CloseContext(ctx context.Context) error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for f := s.openFiles.newest; f != nil; f = f.older {
		if s.o.NoSync && f.dirty {
			errs = append(errs, s.o.kernel.sync(f.handle))
		}
		errs = append(errs, f.handle.Close())
		f.handle = nil
	}
	s.openFiles = lru{}
	errs = append(errs, s.release())
	s.keeper.close(ctx)
	s.index, s.waiting = index{}, waiting{}
	return errors.Join(errs...)
}
