// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// A crowd is what keeps events of many tags or times from making files without end. In a minute so
// many new files are made; then the crowd is closed: until the minute is over lines whose file is
// not there go to one file for the rest.
//
//	 open                          closed                         open
//	┌──────────────────────────┬──────────────────────────────┬────────
//	│ NewFiles new ones        │ no new file but that of the  │
//	│                          │ rest                         │
//	└──────────────────────────┴──────────────────────────────┴────────
//	                           Checkpoint                     commit, a minute after the first new one
//
// After a crash each line has to find the file that it went to. So it changes between open and
// closed only with a state that says so, which is durable before the next line: all lines behind
// one state went by the same rule. While it is open, each went to its own file; while it is closed,
// to its own if that was there before.
type crowd struct {
	most   int // new files in a minute; 0: as many as come
	closed bool
	made   int       // new files since
	since  time.Time // the first of them; when it was closed, at the start
	next   turn      // what the last State said of closed
}

// A turn says what the next commit makes of a crowd.
type turn uint8

const (
	undecided turn = iota
	turnOpen
	turnClosed
)

// minute is in which new files are counted.
const minute = time.Minute

// ErrCrowded says that an event is for a new file, and that a Checkpoint or Sync has to come before
// the decision on it.
var ErrCrowded = errors.New("files: many new files: a checkpoint is due")

// isNew reports whether there is no file at a path. What is there, whatever it is, makes no new
// one.
func (c *crowd) isNew(path string) bool {
	_, _, err := idAt(path)
	return errors.Is(err, fs.ErrNotExist)
}

// isFull reports whether no more new files are to be made.
func (c *crowd) isFull(now time.Time) bool {
	return c.most > 0 && c.made >= c.most && now.Sub(c.since) < minute
}

// count counts a new file.
func (c *crowd) count() {
	now := time.Now()
	if c.made == 0 || now.Sub(c.since) >= minute {
		c.made, c.since = 0, now
	}
	c.made++
}

// decide says whether the crowd is closed behind a state that is made now.
func (c *crowd) decide(now time.Time) (closed bool) {
	c.next = turnOpen
	if c.isFull(now) || c.closed && c.most > 0 && now.Sub(c.since) < minute {
		c.next = turnClosed
	}
	return c.next == turnClosed
}

// turn does what the last state said.
func (c *crowd) turn(now time.Time) (closes bool) {
	if c.next == undecided {
		c.decide(now)
	}
	before := c.closed
	c.closed = c.next == turnClosed
	c.next = undecided
	if before && !c.closed {
		c.made = 0
	}
	return c.closed && !before
}

// A Mark says where in a chunk its caller stands, so that a state can belong to a place between two
// positions. Its zero value stands for the position itself.
type Mark struct {
	Place  string // of the chunk, as the caller calls it; "" for the position
	Events int    // of the chunk, whose lines are in the files
}

// Crowded says that so many files were written since the last commit that a Checkpoint should come
// before the next event: a state names all of them. That is twice as many as WantSync waits for. So
// is it when files were moved away or cut meanwhile: what was written since would be written again
// after a crash.
func (s *Set) Crowded() bool {
	return s.hasty || s.unkept || len(s.index.files)-s.openFiles.n > 8*s.o.MaxOpen
}

// Checkpoint is a Sync whose state belongs to a mark, behind the position, and has Record make it
// durable. After an error it is called again, before anything else.
func (s *Set) Checkpoint(m Mark) error {
	if _, err := s.Sync(); err != nil {
		return err
	}
	s.mark, s.unkept = m, true
	return s.keep()
}

// keep records the state of a Checkpoint, without which nothing may be written.
func (s *Set) keep() error {
	if !s.unkept {
		return nil
	}
	if err := s.record(); err != nil {
		return err
	}
	s.unkept = false
	return nil
}

// record makes the state durable that was known of all files at the last Sync.
func (s *Set) record() error {
	if err := s.o.Record(s.settled()); err != nil {
		return fmt.Errorf("files: record: %w", err)
	}
	return nil
}

// settled is the state that was known of all files at the last Sync or Checkpoint.
func (s *Set) settled() []byte {
	return s.index.state(s.index.crowd.closed, s.mark, func(f *file) (int64, bool) { return f.length, true })
}

// Resumed returns the mark of the state that the Set was opened with, until Reached. Events up to
// it are not to be appended again.
func (s *Set) Resumed() Mark { return s.resumed }

// Reached says that the next event is behind the mark. Until then all states have it.
func (s *Set) Reached() { s.resumed = Mark{} }

// Marks says whether the caller can make a Checkpoint now. Without that Extend never returns
// ErrCrowded: what comes until the next Sync may make more new files.
func (s *Set) Marks(can bool) { s.marks = can }

// admit counts the new file that an event would make, and returns ErrCrowded where a Checkpoint has
// to come first.
func (s *Set) admit(r route) error {
	x := &s.index
	if x.crowd.most == 0 || x.crowd.closed {
		return nil
	}
	f, path := x.fileOf(r)
	if f != nil || !x.crowd.isNew(path) {
		return nil
	}
	if rest, ok := x.pattern.rest(); !ok || rest == r {
		return nil
	}
	if s.marks && x.crowd.isFull(time.Now()) {
		return ErrCrowded
	}
	x.crowd.count()
	return nil
}

// closes tells that no new files are made for a while.
func (s *Set) closes() {
	rest, _ := s.index.pattern.rest()
	path := s.index.pattern.path(rest, s.index.writers[s.index.self])
	s.o.Report(fmt.Errorf("files: %s: %d new files within a minute; until it is over, lines of further tags and times go to %s",
		s.index.pattern.text, s.index.crowd.made, path))
}
