// SPDX-License-Identifier: Apache-2.0

package follow_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A waiter keeps what it gets, and says that it waits.
type waiter struct{ outputOf }

func (waiter) Waiting() bool { return true }

// TestTrials has a process that ended in so many trials of a record begin anew: the record is tried
// again, and only after the third trial a dead letter.
func TestTrials(t *testing.T) {
	for trials := range 4 {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger(t)
			end := l.add(t, record(1, 10, false))
			var notes []follow.Note
			refused, got := 0, 0
			f := follow.New(&follow.Config{
				Reader: l.reader,
				Caution: &follow.Caution{
					Died: true, Last: follow.Note{Alone: true, Trials: trials}, End: end,
					Note: func(n follow.Note) { notes = append(notes, n) },
				},
				Refuse: func(context.Context, []follow.Refused) error { refused++; return nil },
				Report: func(error) {},
				Open: func() (output.Output, error) {
					return outputOf(func(_ *forward.Chunk,
						done func(output.Result),
					) {
						got++
						done(output.Result{})
					}), nil
				},
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if f.NeedsTrial() != (trials < 3) {
				t.Fatalf("after %d trials: NeedsTrial %v", trials, f.NeedsTrial())
			}
			if f.NeedsTrial() {
				f.Try(ctx)
				if want := (follow.Note{Alone: true, Trials: trials + 1}); len(notes) == 0 || notes[0] != want {
					t.Errorf("after %d trials it notes %+v, want first %+v", trials, notes, want)
				}
			}
			if err := f.Run(ctx, t.Context()); err != nil {
				t.Error(err)
			}
			if want := trials / 3; refused != want || got != 1-want {
				t.Errorf("after %d trials: refused %d, submitted %d", trials, refused, got)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTrialOfWhatWaits: a record that has left the process and waits for its ack is not suspected
// any more, so a kill meanwhile says nothing of it.
func TestTrialOfWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		end := l.add(t, record(1, 10, false))
		var last follow.Note
		f := follow.New(&follow.Config{
			Reader: l.reader,
			Caution: &follow.Caution{
				Died: true, Last: follow.Note{Alone: true}, End: end,
				Note: func(n follow.Note) { last = n },
			},
			Open: func() (output.Output, error) {
				return waiter{outputOf(func(*forward.Chunk, func(output.Result)) {})}, nil
			},
		})
		start := time.Now()
		f.Try(t.Context())
		if took := time.Since(start); took > time.Second { // of the bubble's time
			t.Errorf("the trial of a record that waits for an ack takes %v", took)
		}
		if last.Alone {
			t.Errorf("it is still suspected: %+v", last)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := f.Run(ctx, t.Context()); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestNotes: how far a follower has come is noted each half window, and not each time that a record
// is done, for a note takes a system call.
func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		var ends []journal.Position
		for i := range uint32(100) {
			ends = append(ends, l.add(t, record(i, 10, false)))
		}
		var notes []follow.Note
		f := follow.New(&follow.Config{
			Reader: l.reader, Chunks: 20,
			Caution: &follow.Caution{Note: func(n follow.Note) { notes = append(notes, n) }},
			Open: func() (output.Output, error) {
				return outputOf(func(_ *forward.Chunk, done func(output.Result)) { done(output.Result{}) }), nil
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := f.Run(ctx, t.Context()); err != nil {
			t.Error(err)
		}
		at := -1
		for _, n := range notes {
			now := slices.Index(ends, n.Finished)
			if now-at < 10 || n.Alone {
				t.Errorf("%+v, record %d, after record %d", n, now, at)
			}
			at = now
		}
		if at < 89 || len(notes) > 10 {
			t.Errorf("%d notes, the last at record %d", len(notes), at)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
