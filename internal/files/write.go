// SPDX-License-Identifier: Apache-2.0

package files

import "time"

// Write hands all that waits to the kernel. An error is the first of those that there were; the
// files that had none got their lines, and the others keep them for the next Write, which goes on
// where this one stopped.
//
// A Write with nothing waiting closes files that were not used for long, and rotates those whose
// time has come: call it now and then.
func (s *Set) Write() error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.keep(); err != nil {
		return err
	}
	s.now = time.Now()
	s.tendLeft()
	idle := len(s.waiting.files) == 0
	first := s.release()
	var stuck []*file
	for len(s.waiting.files) > 0 {
		queue := s.waiting.files
		s.waiting.files = nil
		for _, group := range groups(queue, s.o.MaxOpen) {
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
				s.waiting.files = append(s.waiting.files, f)
			}
		}
	}
	s.waiting.files = stuck
	if idle {
		if err := s.rotateIdle(); err != nil && first == nil {
			first = err
		}
	}
	if err := s.closeIdle(); err != nil && first == nil {
		first = err
	}
	return first
}

// groups parts the queue into at most so many files, which can be open at once, the open ones
// first.
func groups(queue []*file, most int) [][]*file {
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
		n := min(len(sorted), most)
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
	closed := 0
	for _, f := range group {
		f.stuck = false
		if f.handle == nil {
			closed++
		} else {
			s.openFiles.touch(f) // so that none is closed to make room for another of the group
		}
	}
	if err := s.makeRoom(closed); err != nil {
		for _, f := range group {
			failed(f, err)
		}
		return first
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
		f.known, f.inode, f.doubt, f.tail = true, f.id.inode, false, tail{}
	}
	err := s.record()
	if err != nil {
		for _, f := range unknown {
			f.known = false
		}
	}
	return err
}

// closeIdle closes files that nobody used for long.
func (s *Set) closeIdle() error {
	var idle []*file
	for f := s.openFiles.oldest; f != nil && s.now.Sub(f.used) > s.o.Idle; f = f.newer {
		if len(f.lines) == 0 {
			idle = append(idle, f)
		}
	}
	return s.close(idle...)
}
