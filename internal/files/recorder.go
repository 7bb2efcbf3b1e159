// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"time"
)

// patience is for how long lines are expected that an earlier process may have written. They come
// again soon after Open, if they come at all.
const patience = time.Hour

// A recorder knows what the last state says of the files and makes the next one. It has that
// recorded which must be durable before a commit comes.
type recorder struct {
	o      *Options
	index  *index
	opened time.Time // the Set

	hasty   bool  // what happened since the last Sync would be done twice after a crash
	point   Point // of the last state
	unkept  bool  // the state of the last Checkpoint is not durable yet
	resumed Point // where the caller goes on; none once it is there
}

// state is what is to be committed if the position is here and nothing waits to be written.
func (c *recorder) state(now time.Time) []byte {
	closed := c.index.crowd.decide(now)
	return c.index.state(closed, c.resumed, func(f *file) (int64, bool) { return f.present(), c.remembered(f, now) })
}

// checkpoint has the settled state recorded, with a Point.
func (c *recorder) checkpoint(p Point) error {
	c.point, c.unkept = p, true
	return c.keep()
}

// settled is the state that was known of all files at the last Sync or Checkpoint.
func (c *recorder) settled() []byte {
	return c.index.state(c.index.crowd.closed, c.point, func(f *file) (int64, bool) { return f.length, true })
}

// settle makes the present the state that is known of each file, and forgets and returns those that
// need none.
func (c *recorder) settle(now time.Time) (forgotten []*file) {
	kept := c.index.order[:0]
	for _, f := range c.index.order {
		if c.remembered(f, now) {
			kept = append(kept, f)
			f.length = f.present()
			f.tail = f.tailAt(f.length)
			if f.touched {
				f.found, f.doubt, f.touched = f.length, false, false
			}
			continue
		}
		f.expected = false
		forgotten = append(forgotten, f)
		c.index.forget(f)
	}
	clear(c.index.order[len(kept):])
	c.index.order, c.index.last = kept, nil
	c.hasty, c.point, c.unkept = false, c.resumed, false
	return forgotten
}

// remembered reports whether a settled state names f: lines are expected in it, or more may come
// without a Record.
func (c *recorder) remembered(f *file, now time.Time) bool {
	if f.expected && (f.handle != nil || now.Sub(c.opened) <= patience) {
		return true
	}
	return f.handle != nil && !c.index.foreign(f)
}

// record makes the state durable that was known of all files at the last Sync.
func (c *recorder) record() error {
	if err := c.o.Record(c.settled()); err != nil {
		return fmt.Errorf("files: record: %w", err)
	}
	return nil
}

// keep records the state of a Checkpoint, without which nothing may be written.
func (c *recorder) keep() error {
	if !c.unkept {
		return nil
	}
	if err := c.record(); err != nil {
		return err
	}
	c.unkept = false
	return nil
}

// name records files that the last state does not know, before anything is written into them.
func (c *recorder) name(unknown []*file) error {
	if len(unknown) == 0 {
		return nil
	}
	for _, f := range unknown {
		f.known, f.inode, f.doubt, f.tail = true, f.id.inode, false, tail{}
	}
	err := c.record()
	if err != nil {
		for _, f := range unknown {
			f.known = false
		}
	}
	return err
}
