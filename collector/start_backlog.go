// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/journal"
)

// startBacklog counts, in the background, the events that the journal held for each
// output when the collector was opened. It reads them with a cursor of its own,
// so that what an output has passed is not freed under it.
//
//	journal   ────┬──────────────┬────────────┬─────────────►
//	          cursor of        cursor of     end, when
//	          output 0         output 1      it was opened
//	              ├──── found by 0 ───────────┤
//	                             ├─ found by 1 ┤
type startBacklog struct {
	reader *journal.Reader // nil: there is nothing to count
	next   func() (journal.Record, bool, error)
	end    journal.Position
	from   []journal.Position // of the outputs
	events []atomic.Int64     // of the outputs; written by run
	busy   atomic.Bool
}

// startBacklogCursor holds the journal while startBacklog reads it; a crash may leave it.
const startBacklogCursor = "found"

// openStartBacklog begins where the output furthest behind stands.
func openStartBacklog(j *journal.Journal, pumps []*pump) (*startBacklog, error) {
	f := &startBacklog{end: j.Synced(), events: make([]atomic.Int64, len(pumps))}
	lowest := f.end
	for _, p := range pumps {
		f.from = append(f.from, p.follower.Start())
		lowest = min(lowest, p.follower.Start())
	}
	if lowest >= f.end {
		return f, nil
	}
	// An output that has committed nothing stands before the oldest record.
	if err := j.PlaceCursor(startBacklogCursor, lowest, nil); err != nil {
		return nil, err
	}
	var err error
	if f.reader, err = j.Reader(startBacklogCursor); err != nil {
		return nil, errors.Join(err, j.RemoveCursor(startBacklogCursor))
	}
	f.next = f.reader.TryNext
	f.busy.Store(true)
	return f, nil
}

// run counts until it is done or ctx is. What cannot be read or committed is
// told and tried again, as outputs do: the journal skips what stays unreadable.
func (f *startBacklog) run(ctx context.Context, j *journal.Journal, report func(error)) {
	if f.reader == nil {
		return
	}
	for {
		err := f.read(ctx)
		if err == nil && ctx.Err() == nil {
			f.busy.Store(false)
			break
		}
		if err != nil {
			report(fmt.Errorf("counting what it holds: %w", err))
		}
		if await.Pause(ctx, retryPause) != nil {
			break
		}
	}
	// A cursor that stays would hold the journal until it is full.
	for err := f.close(j); err != nil; err = f.close(j) {
		report(fmt.Errorf("counting what it holds: %w", err))
		if await.Pause(ctx, retryPause) != nil {
			return
		}
	}
}

func (f *startBacklog) read(ctx context.Context) error {
	var c forward.Chunk
	passed := f.reader.Pos()
	for ctx.Err() == nil {
		rec, ok, err := f.next()
		if err != nil || !ok || rec.Pos > f.end {
			return err
		}
		if c.Parse(rec.Data) == nil {
			for i, from := range f.from {
				if rec.Pos > from {
					f.events[i].Add(int64(c.Events))
				}
			}
		}
		if rec.Pos>>32 != passed>>32 { // another segment: the one before may go
			if err := f.reader.Commit(rec.Pos, nil); err != nil {
				return err
			}
		}
		passed = rec.Pos
	}
	return nil
}

// counting says whether there may be more than of tells.
func (f *startBacklog) counting() bool { return f.busy.Load() }

// of is how much was found for an output so far: nothing for one that came later.
func (f *startBacklog) of(output int) int64 {
	if output >= len(f.events) {
		return 0
	}
	return f.events[output].Load()
}

func (f *startBacklog) close(j *journal.Journal) error {
	if f.reader == nil {
		return nil
	}
	err := errors.Join(f.reader.Close(), j.RemoveCursor(startBacklogCursor))
	if err == nil {
		f.reader = nil
	}
	return err
}
