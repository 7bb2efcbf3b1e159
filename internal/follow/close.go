// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"time"
)

// A closer lets go of the output, with what it has done committed.
type closer struct {
	*core
	opened    *opened
	flights   *flights
	flow      *flow
	committer *committer
}

// finish commits what may be committed, and lets go. A part of a record cannot be committed; the
// next start finds it in the output as it would after a crash.
func (c *closer) finish(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.flow.collect()
	var errs []error
	if c.opened.out != nil {
		if !c.opened.resumer || c.flights.inFlight == 0 && c.opened.broken == nil {
			errs = append(errs, c.committer.lastCommit(ctx, closeFor/3))
		}
		errs = append(errs, c.opened.out.Close(ctx))
		c.flow.collect()
		if !c.opened.resumer { // Close gave chunks up; those before them may be done
			errs = append(errs, c.committer.lastCommit(ctx, closeFor))
		}
		c.flow.forget()
	}
	return errors.Join(append(errs, c.cfg.Reader.Close())...)
}

// Close lets go of the output and the reader. It is for a follower that is not run.
func (c *closer) close() error {
	var err error
	if c.opened.out != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeFor)
		defer cancel()
		err = c.opened.out.Close(ctx)
		c.flow.forget()
	}
	return errors.Join(err, c.cfg.Reader.Close())
}

// giveUp closes the output, if there is one, and forgets what it had.
func (c *closer) giveUp(ctx context.Context) {
	if c.opened.out == nil {
		return
	}
	closing, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	if err := c.opened.out.Close(closing); err != nil {
		c.cfg.Report(err)
	}
	c.flow.collect()
	// What an output without a state has done, it has done; with one, it counts when it is flushed.
	if !c.opened.resumer && c.stop > c.committed {
		_ = c.committer.commit(ctx) // it fails only when ctx ends
	}
	c.flow.forget()
}
