// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"time"
)

// await waits until no more than so many chunks are in flight, something is urgent, or a commit may
// be due.
func (f *Follower) await(ctx context.Context, left int) {
	patience := commitEvery
	if f.step.care.trials > 0 {
		patience = waitingEvery
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !f.inbox.listen(f.step.inFlight, left, cancel) {
		return
	}
	defer f.inbox.deafen()
	<-wait.Done()
}

// rest waits for more to read, having caught up.
func (f *Follower) rest(ctx, drain context.Context) {
	s := &f.step
	patience := idleFlush
	switch {
	case s.taken == s.committed:
		f.works()
		f.flushIdle(ctx)
		if s.broken != nil {
			return
		}
	case s.stop == s.committed: // not before something is done
		patience = commitEvery
	case f.cfg.Eager && (s.inFlight == 0 || !s.resumer):
		f.tryCommit(ctx)
		return
	default:
		patience = max(commitEvery-time.Since(s.since), time.Millisecond)
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := -1 // only what is urgent
	draining := drain.Err() != nil
	switch {
	case draining:
		left = 0
	case f.cfg.Eager && s.inFlight > 0:
		left = s.inFlight - 1
	}
	if !f.inbox.listen(s.inFlight, left, cancel) {
		return
	}
	defer f.inbox.deafen()
	if draining {
		<-wait.Done()
		return
	}
	defer context.AfterFunc(drain, cancel)()
	err := f.cfg.Reader.Wait(wait)
	switch {
	case wait.Err() != nil:
	case err != nil:
		f.pauseAfter(ctx, err)
	case !f.cfg.Eager:
		_ = pause(wait, batchPause)
	}
}

// pauseAfter tells of a failed step, and waits before the next try.
func (f *Follower) pauseAfter(ctx context.Context, err error) {
	f.fail(err, retryPause)
	_ = pause(ctx, retryPause)
}

// pause waits for d; an error only if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
