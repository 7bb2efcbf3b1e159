// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
)

// tryCommit commits, or says why it could not.
func (f *Follower) tryCommit(ctx context.Context) {
	s := &f.step
	err := f.commit(ctx)
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.Is(err, output.ErrReopen):
		s.broken = err
	default:
		f.pauseAfter(ctx, err)
	}
}

// commit makes what is done durable, moves the cursor over it, and says so. Only Flush fails; what
// else does is tried again until ctx ends.
func (f *Follower) commit(ctx context.Context) error {
	s := &f.step
	if s.resumer {
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
	if err := f.refuseUpTo(ctx, s.stop); err != nil {
		return err
	}
	if err := f.move(ctx); err != nil {
		return err
	}
	s.reopens = 0
	f.works()
	return nil
}

// move moves the cursor to stop, with its state, and says what it has passed. It fails only when
// ctx ends.
func (f *Follower) move(ctx context.Context) error {
	s := &f.step
	// The output counts on this state from now on, so nothing may come between.
	for {
		state := s.state
		if s.keep {
			_, state = f.cfg.Reader.Committed()
		}
		err := f.cfg.Reader.Commit(s.stop, state)
		if err == nil {
			break
		}
		f.fail(fmt.Errorf("its cursor: %w", err), retryPause)
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
	}
	s.committed, s.soon = s.stop, false
	s.state, s.keep = nil, true // the output may save a newer one
	s.volume = 0
	if s.taken > s.committed {
		s.since = time.Now()
	}
	n := s.passing
	s.passing = Counts{}
	f.cfg.Passed(s.committed, n)
	return nil
}

// flushIdle lets an output that gets nothing let go of what it has not needed for long.
func (f *Follower) flushIdle(ctx context.Context) {
	s := &f.step
	if time.Since(s.idleAt) < idleFlush {
		return
	}
	if !s.idleAt.IsZero() {
		switch err := f.flush(ctx); {
		case errors.Is(err, output.ErrReopen):
			s.broken = err
		case err != nil && ctx.Err() == nil:
			f.cfg.Report(err)
		}
	}
	s.idleAt = time.Now()
}
