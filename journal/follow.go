// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"
)

// Reader opens the durable cursor of that name, where it was committed; a new one starts at the
// oldest record. A name can be open once.
func (j *Journal) Reader(name string) (*Reader, error) {
	file, err := cursorFile(name)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, ErrClosed
	}
	c := j.named[name]
	if c != nil && c.open {
		j.mu.Unlock()
		return nil, fmt.Errorf("journal: cursor %q is open already", name)
	}
	r := &Reader{j: j, closed: make(chan struct{}), scan: scanner{longest: j.opt.MaxRecord}}
	if c == nil {
		c = &cursor{name: name, path: j.path(file), open: true}
		// Held before it exists, so that nothing is freed that it is to read.
		c.at.Store(uint64(j.oldestLocked()))
		j.named[name] = c
		j.mu.Unlock()
		c.mu.Lock()
		err := c.writeLocked(&j.reserve, Position(c.at.Load()), nil)
		made := c.file != nil
		c.mu.Unlock()
		if err != nil {
			j.mu.Lock()
			c.open = false
			if !made { // else it has its name, and holds what it is to read
				delete(j.named, name)
			}
			j.mu.Unlock()
			return nil, err
		}
	} else {
		c.open = true
		j.mu.Unlock()
	}
	r.c = c
	r.seekLocked(Position(c.at.Load()))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reading[&r.own] = true
	return r, nil
}

// Commit makes p, which must have been read or skipped to, and an opaque state durable: after a
// crash the Reader of this name starts behind p with this state, or with an earlier commit if this
// one did not return. What all cursors have passed is freed.
func (r *Reader) Commit(p Position, state []byte) error {
	r.mu.Lock()
	pos := r.pos
	r.mu.Unlock()
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.stopped() {
		return ErrClosed
	}
	if p > pos || p < Position(c.at.Load()) {
		return fmt.Errorf("journal: commit of position %v, which is not between the last commit %v and what was read %v", p, Position(c.at.Load()), pos)
	}
	before := Position(c.at.Load())
	if err := c.writeLocked(&r.j.reserve, p, state); err != nil {
		return err
	}
	if p != before {
		r.j.mu.Lock()
		r.j.releaseLocked()
		r.j.mu.Unlock()
	}
	return nil
}

// Committed is the last durable position and a copy of its state.
func (r *Reader) Committed() (Position, []byte) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return Position(r.c.at.Load()), slices.Clone(r.c.state)
}

// Cursors are the names of all durable cursors, open or not, sorted.
func (j *Journal) Cursors() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var r []string
	for name := range j.named {
		r = append(r, name)
	}
	slices.Sort(r)
	return r
}

// PlaceCursor makes the cursor of that name stand at p with a state, in one durable step: after a
// crash it is there so, or as it was before. p is the end of a record, 0, or what a cursor
// committed; it may lie before where the cursor stood, but not beyond what is durable. Where what
// follows it is freed already, the cursor stands at the oldest record. No Reader may have it open.
func (j *Journal) PlaceCursor(name string, p Position, state []byte) error {
	file, err := cursorFile(name)
	if err != nil {
		return err
	}
	j.mu.Lock()
	c, is := j.named[name]
	switch {
	case j.closed:
		err = ErrClosed
	case is && c.open:
		err = fmt.Errorf("journal: cursor %q is being read", name)
	case p > j.Synced():
		err = fmt.Errorf("journal: position %v is beyond the last synced %v", p, j.Synced())
	}
	if err != nil {
		j.mu.Unlock()
		return err
	}
	if !is {
		c = &cursor{name: name, path: j.path(file)}
		j.named[name] = c
	}
	p, was := max(p, j.oldestLocked()), c.at.Load()
	if !is || uint64(p) < was {
		c.at.Store(uint64(p)) // held before it is written
	}
	c.open = true
	j.mu.Unlock()
	c.mu.Lock()
	err = c.writeLocked(&j.reserve, p, state)
	made := c.file != nil
	c.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	c.open = false
	switch {
	case err == nil:
	case is:
		c.at.Store(min(was, c.at.Load()))
	case !made: // else it has its name, and holds what it is to read
		delete(j.named, name)
	}
	j.releaseLocked()
	return err
}

// RemoveCursor deletes a cursor that no Reader has open: one that nobody reads any more would hold
// its segments for ever.
func (j *Journal) RemoveCursor(name string) error {
	j.mu.Lock()
	c := j.named[name]
	switch {
	case j.closed:
		j.mu.Unlock()
		return ErrClosed
	case c == nil:
		j.mu.Unlock()
		return fmt.Errorf("journal: no cursor %q", name)
	case c.open:
		j.mu.Unlock()
		return fmt.Errorf("journal: cursor %q is being read", name)
	}
	c.open = true // so that nobody opens it meanwhile
	j.mu.Unlock()
	err := c.remove(&j.reserve)
	j.mu.Lock()
	c.open = false
	if err == nil {
		delete(j.named, name)
		j.releaseLocked()
	}
	j.mu.Unlock()
	if err != nil {
		return fmt.Errorf("journal: remove cursor %s: %w", name, err)
	}
	return c.close()
}
