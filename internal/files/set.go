// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
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
	routes    map[route]*file  // where the next line of a route goes
	last      *file            // of the last line, and its route
	openFiles lru
	waiting   []*file // that have lines, in the order in which they got the first
	pending   int     // bytes of them, and fileCost for each
	spare     [][]byte
	dirs      map[string]struct{} // that got new names since they were last synced

	now    time.Time // when the call that runs began
	opened time.Time
	moved  bool  // a file was moved away since the last Sync
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
	for _, e := range entries {
		s.recall(e)
	}
	return s, nil
}

// recall looks whether the file of an entry may hold lines that come again.
func (s *Set) recall(e entry) {
	id, size, err := idAt(e.path)
	if err == nil && (id.inode != e.inode || size < e.length) || errors.Is(err, fs.ErrNotExist) {
		return // moved away, replaced or cut: as if it had never been named
	}
	f := &file{
		path: e.path, writer: e.writer, known: true, inode: e.inode, length: e.length, doubt: e.doubt,
		expected: !e.doubt && (err != nil || size > e.length), found: e.length,
	}
	if f.expected || f.writer == s.self {
		s.files[f.path] = f
	}
}

// Append keeps lines, one or several whole ones, for the file of a tag and the time of an event, in seconds since 1970.
// When too much is waiting it writes first. An error means that the lines were not taken: the same call may be repeated.
func (s *Set) Append(tag string, sec int64, lines []byte) error {
	if err := s.usable(); err != nil {
		return err
	}
	if len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return ErrLine
	}
	r := s.pattern.route(tag, sec)
	f := s.last
	if f == nil || f.route != r {
		f = s.lookUp(r)
	}
	if len(f.lines) > 0 && len(f.lines)+len(lines) > s.o.Buffer || s.pending > 0 && s.pending+len(lines) > s.o.Memory {
		if err := s.relieve(f, len(lines)); err != nil {
			return err
		}
		f = s.lookUp(r)
	}
	s.last = f
	s.keep(f, lines)
	return nil
}

// relieve writes to make room for n more bytes: the one file if that is enough and it is open, all of them otherwise, so
// that one Record is for all that are new.
func (s *Set) relieve(f *file, n int) error {
	if f.handle == nil || s.pending+n > s.o.Memory {
		return s.Write()
	}
	s.now = time.Now()
	return s.writeGroup([]*file{f})
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
		if f = s.files[s.pattern.path(r, w)]; f != nil && f.expected && f.writer == i {
			break
		}
		f = nil
	}
	if f == nil {
		path := s.pattern.path(r, s.writers[s.self])
		if f = s.files[path]; f == nil {
			f = &file{path: path, writer: s.self}
			s.files[path] = f
		}
	}
	f.route = r
	s.routes[r] = f
	return f
}

// keep copies lines to those that wait for f.
func (s *Set) keep(f *file, lines []byte) {
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
	f.lines = append(f.lines, lines...)
	s.pending += len(lines)
}

// taken forgets the first n bytes of what waits for f.
func (s *Set) taken(f *file, n int) {
	if n == 0 {
		return
	}
	f.lines = f.lines[:copy(f.lines, f.lines[n:])]
	s.less(f, n)
}

// takenEnd forgets the last n bytes.
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

// Write hands all that waits to the kernel. An error is the first of those that there were; the files that had none got
// their lines, and the others keep them for the next Write, which goes on where this one stopped.
//
// A Write with nothing waiting closes files that were not used for long: call it now and then.
func (s *Set) Write() error {
	if err := s.usable(); err != nil {
		return err
	}
	s.now = time.Now()
	var first error
	var stuck []*file
	for len(s.waiting) > 0 {
		queue := s.waiting
		s.waiting = nil
		for _, group := range s.groups(queue) {
			if err := s.writeGroup(group); err != nil && first == nil {
				first = err
			}
		}
		for _, f := range queue {
			switch {
			case len(f.lines) == 0:
				f.queued = false
			case f.stuck:
				stuck = append(stuck, f)
			default: // it got lines that another file handed over
				s.waiting = append(s.waiting, f)
			}
		}
	}
	s.waiting = stuck
	if err := s.closeIdle(); err != nil && first == nil {
		first = err
	}
	return first
}

// groups parts the queue into files that can be open at once, the open ones first.
func (s *Set) groups(queue []*file) [][]*file {
	sorted := make([]*file, 0, len(queue))
	for _, open := range []bool{true, false} {
		for _, f := range queue {
			if (f.handle != nil) == open && len(f.lines) > 0 {
				sorted = append(sorted, f)
			}
		}
	}
	var groups [][]*file
	for len(sorted) > 0 {
		n := min(len(sorted), s.o.MaxOpen)
		groups = append(groups, sorted[:n:n])
		sorted = sorted[n:]
	}
	return groups
}

// writeGroup writes what waits for files that can be open at once.
func (s *Set) writeGroup(group []*file) (first error) {
	failed := func(f *file, err error) {
		f.stuck = true
		if first == nil {
			first = err
		}
	}
	for _, f := range group {
		f.stuck = false
		if f.handle != nil {
			s.openFiles.touch(f) // so that none is closed to make room for another of the group
		}
	}
	var unknown []*file
	for _, f := range group {
		if err := s.prepare(f); err != nil {
			failed(f, err)
		} else if len(f.lines) > 0 && !f.known {
			unknown = append(unknown, f)
		}
	}
	if err := s.name(unknown); err != nil {
		for _, f := range unknown {
			failed(f, err)
		}
	}
	for _, f := range group {
		if len(f.lines) == 0 || f.stuck {
			continue
		}
		if err := s.write(f); err != nil {
			failed(f, err)
		}
	}
	return first
}

// name records files that the last state does not know, before anything is written into them.
func (s *Set) name(unknown []*file) error {
	if len(unknown) == 0 {
		return nil
	}
	for _, f := range unknown {
		f.known, f.inode, f.doubt = true, f.id.inode, false
	}
	err := s.o.Record(s.state())
	if err != nil {
		for _, f := range unknown {
			f.known = false
		}
		return fmt.Errorf("files: record: %w", err)
	}
	return nil
}

// state is what is known of all files as of the last Sync.
func (s *Set) state() []byte {
	entries := make([]entry, 0, len(s.files))
	writers := make([]identity, 0, 1)
	index := make([]int, len(s.writers)) // into writers, plus 1
	for i := range s.writers {
		for _, f := range s.files {
			if !f.known || f.writer != i {
				continue
			}
			if index[i] == 0 {
				writers = append(writers, s.writers[i])
				index[i] = len(writers)
			}
			entries = append(entries, entry{writer: index[i] - 1, path: f.path, inode: f.inode, length: f.length, doubt: f.doubt})
		}
	}
	return appendState(nil, writers, entries)
}

// Sync writes all that waits, makes it durable, and returns the state to be committed, in one piece with the position up
// to which lines were appended, before the next Append or Write.
func (s *Set) Sync() ([]byte, error) {
	if err := s.Write(); err != nil {
		return nil, err
	}
	for f := s.openFiles.newest; f != nil; f = f.older {
		if !f.dirty {
			continue
		}
		if err := s.o.kernel.sync(f.handle); err != nil {
			return nil, s.fail(f, err)
		}
		f.dirty = false
	}
	if err := s.syncDirs(); err != nil {
		return nil, err
	}
	if err := s.settle(); err != nil {
		return nil, err
	}
	return s.state(), nil
}

// settle makes the present the state that is known of each file, and forgets those that need none.
func (s *Set) settle() error {
	for _, f := range s.files {
		if f.handle == nil || !f.touched || f.expected {
			continue
		}
		info, err := f.handle.Stat()
		if err != nil {
			return err // nothing has changed yet, but for files that are as they are said to be
		}
		f.found = info.Size()
	}
	for path, f := range s.files {
		if f.expected && f.handle == nil && s.now.Sub(s.opened) > patience {
			f.expected = false
		}
		if f.touched {
			f.length, f.doubt = f.found, false
			f.touched = false
		}
		if f.expected || f.handle != nil && f.writer == s.self {
			continue
		}
		if f.handle != nil {
			if err := s.close(f); err != nil {
				s.o.Report(err) // it is on disk
			}
		}
		delete(s.files, path)
		if s.routes[f.route] == f {
			delete(s.routes, f.route)
		}
	}
	s.last, s.moved = nil, false
	return nil
}

// WantSync reports that a Sync and a commit should come soon: the state has grown, because many files were opened since
// the last, or a file was moved away and what was written into it would be written again after a crash.
func (s *Set) WantSync() bool { return s.moved || len(s.files)-s.openFiles.n > 4*s.o.MaxOpen }

// closeIdle closes files that nobody used for long.
func (s *Set) closeIdle() error {
	for f := s.openFiles.oldest; f != nil && s.now.Sub(f.used) > s.o.Idle; {
		next := f.newer
		if len(f.lines) == 0 {
			if err := s.close(f); err != nil {
				return err
			}
		}
		f = next
	}
	return nil
}

// fail makes the Set fail for good: the kernel forgets what it could not write.
func (s *Set) fail(f *file, err error) error {
	f.doubt = true
	s.failed = fmt.Errorf("%w: %w", ErrSync, err)
	if err := s.o.Record(s.state()); err != nil {
		s.failed = errors.Join(s.failed, fmt.Errorf("files: record: %w", err))
	}
	return s.failed
}

func (s *Set) usable() error {
	if s.closed {
		return ErrClosed
	}
	return s.failed
}

// Close closes the files. Lines that wait are dropped: they are behind the position that was committed, and come again.
// Call Sync first and commit. Close may be called twice.
func (s *Set) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for f := s.openFiles.newest; f != nil; f = f.older {
		errs = append(errs, f.handle.Close())
	}
	s.files, s.routes, s.waiting, s.last, s.spare = nil, nil, nil, nil, nil
	s.openFiles = lru{}
	return errors.Join(errs...)
}
