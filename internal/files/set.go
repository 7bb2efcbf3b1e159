// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"time"
)

// A Set is a bounded set of files that lines are appended to. It is for one goroutine at a time.
//
// How it is organised: what is below calls what is above it in this picture, and never the other
// way round.
//
//	index, waiting       which file a line goes to; lines that wait
//	recorder             what the last state says, and what must be durable before the next
//	handles              open files, and what the disk has not got of them
//	rotator, finder      files that get another name; lines that may be in a file already
//	Set                  events to files (set.go), lines to the kernel (write.go, long.go), states
//	                     to the caller (sync.go)
//
// A keeper, which compresses and deletes, has a goroutine of its own and shares no file with the
// rest; its lock is held alone.
type Set struct {
	o        Options
	index    index
	waiting  waiting
	recorder recorder
	handles  handles
	rotator  rotator
	finder   finder
	sharer   *sharer // nil: the files are not shared
	rest     int64   // see Rest
	closed   bool
}

// Open makes a Set of files under a path with placeholders. before is what the last Sync or Record
// gave and was committed; nil is none. No file is made yet.
func Open(path string, before []byte, o *Options) (*Set, error) {
	options, err := o.resolved()
	if err != nil {
		return nil, err
	}
	p, me, err := options.pattern(path)
	if err != nil {
		return nil, err
	}
	var last state
	var shared sharedState
	if options.Shared == Unshared {
		last, err = parseState(before)
	} else {
		shared, err = parseShared(before)
		last.closed = shared.closed
	}
	if err != nil {
		return nil, err
	}
	s := &Set{o: options, index: newIndex(p, me, last.writers)}
	now, x := time.Now(), &s.index
	x.crowd = crowd{limit: options.NewFiles, closed: last.closed, since: now}
	s.waiting = waiting{buffer: options.Buffer, memory: options.Memory, maxFiles: 4 * options.MaxOpen}
	s.recorder = recorder{o: &s.o, index: x, opened: now, point: last.point, resumed: last.point}
	s.handles = handles{
		o: &s.o, index: x, recorder: &s.recorder,
		gathers: p.gathers(options.Shared) != placeholderSet{}, dirs: dirs{}, now: now,
	}
	s.rotator = rotator{o: &s.o, index: x, recorder: &s.recorder, handles: &s.handles}
	s.finder = finder{o: &s.o, index: x, recorder: &s.recorder, waiting: &s.waiting}
	if options.Shared != Unshared {
		s.sharer = newSharer(s, &shared)
	}
	for _, e := range last.entries {
		x.recall(e)
	}
	s.rotator.begin(last.entries)
	return s, nil
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
	full = s.waiting.extend(f, render)
	if s.sharer != nil {
		s.sharer.extended(f)
	}
	return full, nil
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
			if err := s.index.admit(r); err != nil {
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
	if s.sharer != nil {
		s.sharer.drop()
	}
	for _, f := range s.index.order {
		if f.long > 0 { // what is written of a long line is forgotten
			f.long, f.end = 0, -1
		}
	}
}

func (s *Set) usable() error {
	if s.closed {
		return ErrClosed
	}
	return s.handles.failed
}

// Open returns how many files are open.
func (s *Set) Open() int { return s.handles.n }

// CloseGrace is how long Close waits for rotated files to be compressed and deleted.
const CloseGrace = 3 * time.Second

// Close is CloseContext with CloseGrace.
func (s *Set) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), CloseGrace)
	defer cancel()
	return s.CloseContext(ctx)
}

// CloseContext closes the files. Lines that wait are dropped: they are behind the position that was
// committed, and come again. Call Sync first and commit. It may be called twice.
//
// Then it deletes and compresses the rotated files that are due. When ctx is done it stops that
// within what one write or sync takes: what is not compressed stays as it is, and the next Set goes
// on with it. ctx bounds nothing else.
func (s *Set) CloseContext(ctx context.Context) error {
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.handles.end()
	if s.sharer != nil {
		err = errors.Join(err, s.sharer.end())
	}
	err = errors.Join(err, s.rotator.end(ctx))
	s.index, s.waiting = index{}, waiting{}
	return err
}
