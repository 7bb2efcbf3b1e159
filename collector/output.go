// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// output is one end of the collector. A pump owns it and calls it from one
// goroutine.
type output interface {
	// take hands over a chunk whose bytes are valid during the call. It keeps
	// trying until it has taken all of it, or ctx ends.
	take(ctx context.Context, c *forward.Chunk) error
	// flush makes what was taken visible; when durable is set it also makes it
	// as durable as the output can, and returns what the output must know after
	// a crash, which is committed together with the cursor.
	flush(durable bool) (state []byte, err error)
	close() error
}

const (
	// commitEvery is how long an output may lag behind with its cursor. After
	// a crash it compares, or repeats, what it wrote since.
	commitEvery = time.Second
	// commitBytes bounds the same by volume.
	commitBytes = 64 << 20
)

// pump moves chunks from the journal to one output.
//
//	journal ──► next ──► output.take ──► output.flush ──► cursor.Commit
//	              ▲  caught up: flush(visible), wait │ each second, or at once
//	              └───────────────────────────────────┘ when acks wait for it
type pump struct {
	name     string // the output's URL
	index    int    // in deliveries
	reader   *journal.Reader
	output   output
	eager    bool // commit as soon as caught up: acks wait for it
	confirm  func(output int, p journal.Position)
	reporter *reporter

	events, chunks, broken atomic.Int64

	taken     journal.Position // end of the last record taken; at first as committed
	committed journal.Position
	bytes     int64     // taken since the last commit
	since     time.Time // of the first record taken after the last commit
}

// run moves chunks until ctx is done. When drain is done before that, it stops
// as soon as it has caught up.
func (p *pump) run(ctx, drain context.Context) error {
	p.confirm(p.index, p.committed)
	for {
		rec, ok, err := p.reader.TryNext()
		switch {
		case err != nil:
			p.reporter.trouble("journal", fmt.Errorf("reading for %s: %w", p.name, err))
			if pause(ctx, retryPause) != nil {
				return p.finish(ctx)
			}
		case ok:
			if p.take(ctx, rec) != nil {
				return p.finish(ctx)
			}
		case !p.idle(ctx, drain):
			return p.finish(ctx)
		}
	}
}

// take hands one record to the output.
func (p *pump) take(ctx context.Context, rec journal.Record) error {
	var c forward.Chunk
	if err := c.Parse(rec.Data); err != nil {
		// The journal's checksum was right, so this was written so: by a
		// newer version, or by a fault of ours. It stays in the segment's
		// bytes only until that is recycled, so say where it was.
		p.broken.Add(1)
		p.reporter.trouble("journal", fmt.Errorf("%s: record at %d is no chunk: %w; skipped", p.name, rec.Pos, err))
	} else {
		if err := p.output.take(ctx, &c); err != nil {
			return err
		}
		p.events.Add(int64(c.Events))
		p.chunks.Add(1)
	}
	if p.bytes == 0 {
		p.since = time.Now()
	}
	p.taken = rec.Pos
	p.bytes += int64(len(rec.Data)) + 1
	if p.bytes >= commitBytes && !p.commit() {
		return pause(ctx, retryPause)
	}
	return ctx.Err()
}

// idle does what is left to do when there is nothing to read: show what was
// taken, commit it when it is time, and wait. It returns false at the end.
func (p *pump) idle(ctx, drain context.Context) bool {
	if ctx.Err() != nil || drain.Err() != nil {
		return false
	}
	wait := ctx
	if p.taken > p.committed {
		if _, err := p.output.flush(false); err != nil {
			p.reporter.trouble("output", fmt.Errorf("%s: %w; trying again", p.name, err))
			return pause(ctx, retryPause) == nil
		}
		left := commitEvery - time.Since(p.since)
		if p.eager || left <= 0 {
			if !p.commit() {
				return pause(ctx, retryPause) == nil
			}
		} else {
			var cancel context.CancelFunc
			wait, cancel = context.WithTimeout(ctx, left)
			defer cancel()
		}
	}
	wait, cancel := context.WithCancel(wait)
	defer cancel()
	defer context.AfterFunc(drain, cancel)()
	if err := p.reader.Wait(wait); err != nil && wait.Err() == nil {
		p.reporter.trouble("journal", fmt.Errorf("waiting for %s: %w", p.name, err))
		return pause(ctx, retryPause) == nil
	}
	return true
}

// commit makes what was taken durable and moves the cursor.
func (p *pump) commit() bool {
	state, err := p.output.flush(true)
	if err == nil {
		err = p.reader.Commit(p.taken, state)
	}
	if err != nil {
		p.reporter.trouble("output", fmt.Errorf("%s: %w; trying again", p.name, err))
		return false
	}
	p.committed, p.bytes = p.taken, 0
	p.confirm(p.index, p.committed)
	return true
}

// record makes an output's state durable without moving the cursor.
func (p *pump) record(state []byte) error {
	return p.reader.Commit(p.committed, state)
}

// finish commits what was taken and lets go. What fails now is told: the
// journal still has it.
func (p *pump) finish(ctx context.Context) error {
	if p.taken > p.committed {
		p.commit()
	}
	if err := p.output.close(); err != nil {
		p.reporter.trouble("output", fmt.Errorf("%s: %w", p.name, err))
	}
	return p.reader.Close()
}
