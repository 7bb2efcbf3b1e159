// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"
)

// A Set is a bounded set of files that lines are appended to. It is for one goroutine at a time.
type Set struct {
	o       Options
	pattern *pattern

	writers []identity // in the order of their time; files of the earlier ones are only looked into
	self    int        // index of this process among them

	files     map[string]*file // by path
	order     []*file          // the same, in the order in which they came
	routes    map[route]*file  // where the next line of a route goes
	last      *file            // of the last line, and its route
	openFiles lru
	waiting   []*file // that have lines, in the order in which they got the first
	pending   int     // bytes of them, and fileCost for each
	spare     [][]byte
	dirs      map[string]struct{} // that got new names since they were last synced

	keeper    *keeper            // of rotated files
	left      []string           // paths that the state named, until the first Write has them looked after
	tended    bool               // by that
	retired   map[string][]*file // that lines are expected in, by the path they had, the oldest first
	dismissed []*file            // that were retired and are settled, but perhaps not committed
	unable    time.Time          // nothing is rotated before

	now    time.Time // when the call that runs began
	opened time.Time
	hasty  bool  // what happened since the last Sync would be done twice after a crash
	failed error // a sync failed
	closed bool
}

// fileCost is what a file with waiting lines counts besides them.
const fileCost = 1 << 10

// patience is for how long lines are expected that an earlier process may have written. They come again soon after Open,
// if they come at all.
const patience = time.Hour

// Open makes a Set of files under a path with placeholders. state is what the last Sync or Record before gave and was
// committed; nil is none. No file is opened yet.
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
	writers, entries, err := parseState(state)
	if err != nil {
		return nil, err
	}
	s := &Set{
		o: options, pattern: p, now: time.Now(),
		files: map[string]*file{}, routes: map[route]*file{}, dirs: map[string]struct{}{},
	}
	s.opened = s.now
	me := p.of(*options.self)
	if err := p.check(me); err != nil {
		return nil, err
	}
	s.writers, s.self = writers, -1
	for i, w := range writers {
		if w == me {
			s.self = i
		}
	}
	if s.self < 0 {
		s.self = len(s.writers)
		s.writers = append(s.writers, me)
	}
	if options.Rotation.tends() {
		s.keeper = newKeeper(options.Rotation, options.Report)
	}
	for _, e := range entries {
		s.recall(e)
		if s.keeper != nil {
			s.left = append(s.left, e.path)
		}
	}
	return s, nil
}

// recall looks whether the file of an entry may hold lines that come again.
func (s *Set) recall(e entry) {
	id, size, err := idAt(e.path)
	if err == nil && id.inode != e.inode || errors.Is(err, fs.ErrNotExist) {
		s.recallRetired(e) // or it was moved away or replaced: as if it had never been named
		return
	}
	if err == nil && size < e.length {
		return // cut: likewise
	}
	f := &file{
		path: e.path, writer: e.writer, known: true, inode: e.inode, length: e.length, doubt: e.doubt,
		expected: !e.doubt && (err != nil || size > e.length), found: e.length,
	}
	if f.expected || f.writer == s.self {
		s.add(f)
	}
}

// add makes f one of the files that are remembered; settle forgets them.
func (s *Set) add(f *file) {
	s.files[f.path] = f
	s.order = append(s.order, f)
}

// Extend adds lines for the file of a tag and the time of an event, in seconds since 1970. render gets what waits for that
// file already, appends whole lines, one or several or none, and returns the result. full asks for a Write, because enough
// waits; nothing is written before. An error means that render was not called.
func (s *Set) Extend(tag string, sec int64, render func(dst []byte) []byte) (full bool, err error) {
	if err := s.usable(); err != nil {
		return false, err
	}
	r := s.pattern.route(tag, sec)
	f := s.last
	if f == nil || f.route != r {
		f = s.lookUp(r)
		s.last = f
	}
	s.begin(f)
	n := len(f.lines)
	f.lines = render(f.lines)
	if n = len(f.lines) - n; n == 0 && len(f.lines) == 0 {
		s.pending -= fileCost
	}
	s.pending += n
	return len(f.lines) >= s.o.Buffer || s.pending >= s.o.Memory, nil
}

// Drop forgets the lines that wait, but for the rest of one that is in a file in part.
func (s *Set) Drop() {
	for _, f := range s.waiting {
		keep := 0
		if f.torn > 0 {
			keep = bytes.IndexByte(f.lines, '\n') + 1
		}
		if n := len(f.lines) - keep; n > 0 {
			s.takenEnd(f, n)
		}
	}
}

// lookUp returns the file that lines of a route go to: that of the earliest writer that may have them, or ours.
func (s *Set) lookUp(r route) *file {
	if f := s.routes[r]; f != nil {
		return f
	}
	r.tag = strings.Clone(r.tag)
	var f *file
	for i, w := range s.writers {
		if i == s.self {
			continue
		}
		path := s.pattern.path(r, w)
		if f = s.expectedIn(path, i); f != nil {
			break
		}
		if f = s.files[path]; f != nil && f.expected && f.writer == i {
			break
		}
		f = nil
	}
	if f == nil {
		path := s.pattern.path(r, s.writers[s.self])
		if f = s.expectedIn(path, s.self); f == nil {
			f = s.files[path]
		}
		if f == nil {
			f = &file{path: path, writer: s.self}
			s.add(f)
		}
	}
	f.route = r
	s.routes[r] = f
	return f
}

// keep copies lines to those that wait for f.
func (s *Set) keep(f *file, lines []byte) {
	s.begin(f)
	f.lines = append(f.lines, lines...)
	s.pending += len(lines)
}

// begin makes f one of those that lines wait for.
func (s *Set) begin(f *file) {
	if len(f.lines) == 0 {
		s.pending += fileCost
		if n := len(s.spare); n > 0 && cap(f.lines) == 0 {
			f.lines = s.spare[n-1]
			s.spare = s.spare[:n-1]
		}
	}
	if !f.queued {
		f.queued = true
		s.waiting = append(s.waiting, f)
	}
}

// taken forgets the first n bytes of what waits for f.
func (s *Set) taken(f *file, n int) {
	if n == 0 {
		return
	}
	f.lines = f.lines[:copy(f.lines, f.lines[n:])]
	s.less(f, n)
}

// takenEnd forgets the last n bytes, which go to another file.
func (s *Set) takenEnd(f *file, n int) {
	f.lines = f.lines[:len(f.lines)-n]
	s.less(f, n)
}

func (s *Set) less(f *file, n int) {
	s.pending -= n
	if len(f.lines) > 0 {
		return
	}
	s.pending -= fileCost
	if cap(f.lines) <= 2*s.o.Buffer && len(s.spare) < s.o.Memory/s.o.Buffer {
		s.spare = append(s.spare, f.lines[:0])
	}
	f.lines = nil
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

// CloseContext closes the files. Lines that wait are dropped: they are behind the position that was committed, and come
// again. Call Sync first and commit. It may be called twice. With NoSync it brings what the open files got to the disk.
//
// Then it deletes and compresses the rotated files that are due. When ctx is done it stops that within what one write or
// sync takes: what is not compressed stays as it is, and the next Set goes on with it. ctx bounds nothing else.
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
	if s.keeper != nil {
		s.keeper.close(ctx)
	}
	s.files, s.order, s.routes, s.waiting, s.last, s.spare = nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
