// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"

	"github.com/spillwaylog/spillway/internal/output"
)

// NeedsTrial says whether a record is to be tried before anything else runs.
func (f *Follower) NeedsTrial() bool { return f.care.needsTrial() }

// NoteFailure notes that the output fails: that a record stays in hand says nothing then. It may be
// called at any time.
func (f *Follower) NoteFailure() { f.care.outputFailed.Store(true) }

// Try takes up what is suspected, and all before it, and returns when that is done, or waits for
// something. It comes before Run.
func (f *Follower) Try(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, suspectedFor)
	defer cancel()
	last := f.cfg.Caution.Last.Finished
	f.care.trials = f.cfg.Caution.Last.Trials + 1
	for ctx.Err() == nil && f.finished <= last && (!f.takesWhole || f.taken <= last) && !f.care.failing &&
		!f.care.outputFailed.Load() && !f.waits() {
		f.round(ctx, context.Background())
	}
	f.care.trials = 0
	f.care.clearAlone()
}

// waits says that the record in a trial has left the process, which it cannot end any more.
func (f *Follower) waits() bool {
	w, ok := f.opened.out.(output.Waiter)
	return ok && f.care.noted.Trials > 0 && w.Waiting()
}
