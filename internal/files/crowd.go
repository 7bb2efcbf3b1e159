// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
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
	limit       int // new files in a minute; 0: as many as come
	closed      bool
	made        int       // new files since
	since       time.Time // the first of them; when it was closed, at the start
	checkpoints bool      // the caller of the Set can make a Checkpoint
	next        turn      // what the last State said of closed
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
	return c.limit > 0 && c.made >= c.limit && now.Sub(c.since) < minute
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
	if c.isFull(now) || c.closed && c.limit > 0 && now.Sub(c.since) < minute {
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
