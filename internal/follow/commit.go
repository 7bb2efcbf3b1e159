// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/internal/output"
)

// A committer moves the cursor behind what is done.
type committer struct {
	*core
	care     *care
	opened   *opened
	outcomes *outcomes
	idleAt   time.Time // of the last Flush with nothing to commit
}

// isDue says whether the cursor is to be committed now.
func (m *committer) isDue() bool {
	return m.taken > m.committed && (m.volume >= commitBytes || m.soon || time.Since(m.since) >= commitEvery)
}

// tryCommit commits, or says why it could not.
func (m *committer) tryCommit(ctx context.Context) {
	err := m.commit(ctx)
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.Is(err, output.ErrReopen):
		m.opened.broken = err
	default:
		m.care.pauseAfter(ctx, err)
	}
}

// commit makes what is done durable, moves the cursor over it, and says so. Only Flush fails; what
// else does is tried again until ctx ends.
func (m *committer) commit(ctx context.Context) error {
	if m.opened.resumer {
		if err := m.flush(ctx); err != nil {
			return err
		}
	}
	if err := m.outcomes.refuseUpTo(ctx, m.stop); err != nil {
		return err
	}
	if err := m.move(ctx); err != nil {
		return err
	}
	m.opened.reopens = 0
	m.care.works()
	return nil
}

// move moves the cursor to stop, with its state, and says what it has passed. It fails only when
// ctx ends.
func (m *committer) move(ctx context.Context) error {
	// The output counts on this state from now on, so nothing may come between.
	for {
		own := m.state
		if m.keep {
			own = m.ownState()
		}
		err := m.cfg.Reader.Commit(m.stop, m.pack(own))
		if err == nil {
			break
		}
		m.care.fail(fmt.Errorf("its cursor: %w", err), retryPause)
		if err := await.Pause(ctx, retryPause); err != nil {
			return err
		}
	}
	m.committed, m.soon, m.toldState = m.stop, false, false
	m.state, m.keep = nil, true // the output may save a newer one
	m.volume = 0
	if m.taken > m.committed {
		m.since = time.Now()
	}
	n := m.passing
	m.passing = Counts{}
	m.cfg.Passed(m.committed, n)
	return nil
}

// lastCommit commits if there is something to commit. That time was too short for it is no error:
// it is as if the process had been killed.
func (m *committer) lastCommit(ctx context.Context, patience time.Duration) error {
	if m.stop == m.committed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := m.commit(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// flush has the output flushed, which may hang: one that is too far behind meanwhile is not waited
// for any longer.
func (m *committer) flush(ctx context.Context) error {
	m.moved.Store(time.Now().UnixNano())
	defer m.moved.Store(0)
	if m.cfg.Behind == nil {
		return m.opened.out.Flush(ctx)
	}
	for {
		wait, cancel := context.WithTimeout(ctx, givePatience)
		err := m.opened.out.Flush(wait)
		late := wait.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil || m.cfg.Behind.Over(m.committed) != nil {
			return err
		}
	}
}

// flushIdle lets an output that gets nothing let go of what it has not needed for long.
func (m *committer) flushIdle(ctx context.Context) {
	if time.Since(m.idleAt) < idleFlush {
		return
	}
	if !m.idleAt.IsZero() {
		switch err := m.flush(ctx); {
		case errors.Is(err, output.ErrReopen):
			m.opened.broken = err
		case err != nil && ctx.Err() == nil:
			m.cfg.Report(err)
		}
	}
	m.idleAt = time.Now()
}
