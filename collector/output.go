// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// output is one end of the collector. A pump owns it and calls it from one
// goroutine.
type output interface {
	// take hands over a chunk whose bytes are valid during the call, and returns
	// how many bytes it became. It keeps trying until it has taken all of it;
	// after an error it may have taken a part, and is opened again.
	take(ctx context.Context, c *forward.Chunk) (bytes int64, err error)
	// flush makes what was taken visible; when durable is set it also makes it
	// as durable as the output can, and returns what the output must know after
	// a crash, which is committed together with the cursor.
	flush(durable bool) (state []byte, err error)
	close() error
}

// errReopen says that an output cannot go on as it is: it has to be opened
// again with what was last committed, and gets again what came after that.
var errReopen = errors.New("opening it again")

const (
	// commitEvery is how long an output may lag behind with its cursor. After
	// a crash it compares, or repeats, what it wrote since.
	commitEvery = time.Second
	// commitBytes bounds the same by volume.
	commitBytes = 64 << 20
	// hangsAfter is how long a write may take before that is said.
	hangsAfter = 10 * time.Second
	// reopenMost is the longest pause before an output is opened again.
	reopenMost = 30 * time.Second
	// idleFlush is how often an output is flushed that gets nothing, to let go
	// of what it has not needed for long.
	idleFlush = time.Minute
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
	open     func() (output, error)
	output   output
	closed   error // why there is no output
	eager    bool  // commit as soon as caught up: acks wait for it
	opaque   bool  // the output does not look at entries: they may still be compressed
	confirm  func(output int, p journal.Position)
	reporter *reporter

	failing failing
	holding func() holding // what waits for this output
	inside  atomic.Int64   // since when a call of the output has not returned, in nanoseconds since 1970; 0: none is made

	events, chunks, broken atomic.Int64 // handed to the output
	written                atomic.Int64 // bytes that it made of them
	out, unreadable        atomic.Int64 // events that the cursor has passed: the output has them, or nobody could read them

	chunk     forward.Chunk    // of the record being taken, kept for its tag
	inflater  forward.Inflater // of its entries
	taken     journal.Position // end of the last record taken; at first as committed
	committed journal.Position
	passing   passing   // what was taken since the last commit
	bytes     int64     // of it
	since     time.Time // of the first record taken after the last commit
	soon      bool      // the output wants a commit
	reopens   int       // since the last commit
	torn      bool      // the output may have taken a part of the record after taken
}

// passing is events between the cursor and what was taken.
type passing struct{ out, unreadable int64 }

// run moves chunks until ctx is done. When drain is done before that, it stops
// as soon as it has caught up.
func (p *pump) run(ctx, drain context.Context) error {
	for ctx.Err() == nil {
		caughtUp, err := p.step(ctx)
		if err == nil && caughtUp {
			if drain.Err() != nil {
				break
			}
			err = p.idle(ctx, drain)
		}
		if err != nil && ctx.Err() == nil {
			reopen := errors.Is(err, errReopen)
			patience := p.patience(reopen)
			p.fail(err, patience)
			if pause(ctx, patience) == nil && reopen {
				p.reopen()
			}
		}
	}
	return p.finish(ctx)
}

func (p *pump) flush(durable bool) ([]byte, error) {
	p.inside.Store(time.Now().UnixNano())
	defer p.inside.Store(0)
	return p.output.flush(durable)
}

// failure is what does not work: a try that failed, or one that does not return.
func (p *pump) failure() *Failure {
	if f := p.failing.current(); f != nil {
		return f
	}
	if ns := p.inside.Load(); ns > 0 {
		if since := time.Unix(0, ns); time.Since(since) > hangsAfter {
			return &Failure{Since: since, Err: errHangs}
		}
	}
	return nil
}

// errHangs says that an output does not come back from a write.
var errHangs = errors.New("a write has not returned")

// holding is what an output holds up while it fails.
type holding struct {
	backlog
	waits string // who waits for it
}

// fail notes that a try failed, and tells it if it is time.
func (p *pump) fail(err error, pause time.Duration) {
	f, tell := p.failing.fail(err, pause)
	if !tell {
		return
	}
	h := p.holding()
	p.reporter.failure("output broken", f, "output", p.name,
		"behind", h.events, "behind_bytes", h.bytes, "behind_for", h.age.Round(time.Second), "holds_up", h.waits)
}

// works notes that the output does what it is asked to.
func (p *pump) works() {
	if f := p.failing.over(); f != nil {
		p.reporter.recovered("output works again", *f, "output", p.name)
	}
}

// patience is how long to wait after an error. What is opened again gets all
// again that was not committed, and may keep what it had: so that is done less
// and less often while nothing can be committed.
func (p *pump) patience(reopen bool) time.Duration {
	if !reopen {
		return retryPause
	}
	p.reopens++
	return min(retryPause<<min(p.reopens-1, 10), reopenMost)
}

// step takes one record, or finds that there is none.
func (p *pump) step(ctx context.Context) (caughtUp bool, err error) {
	if p.output == nil {
		return false, fmt.Errorf("%w; %w", p.closed, errReopen)
	}
	if p.bytes >= commitBytes || p.soon || p.bytes > 0 && time.Since(p.since) >= commitEvery {
		if err := p.commit(ctx); err != nil {
			return false, err
		}
	}
	rec, ok, err := p.reader.TryNext()
	if err != nil || !ok {
		return true, err
	}
	err = p.chunk.Parse(rec.Data)
	if err == nil && !p.opaque {
		err = p.inflater.Inflate(&p.chunk)
	}
	if err != nil {
		// The journal's checksum was right, so it was written so: by a newer
		// version, or by a fault of ours.
		p.broken.Add(1)
		p.passing.unreadable += int64(p.chunk.Events)
		p.reporter.trouble("journal", fmt.Errorf("%s: the record that ends at %v is no chunk: %w; left out", p.name, rec.Pos, err))
	} else {
		p.inside.Store(time.Now().UnixNano())
		n, err := p.output.take(ctx, &p.chunk)
		p.inside.Store(0)
		if err != nil {
			p.torn = true
			return false, fmt.Errorf("%w; %w", err, errReopen)
		}
		p.written.Add(n)
		p.passing.out += int64(p.chunk.Events)
		p.events.Add(int64(p.chunk.Events))
		p.chunks.Add(1)
	}
	if p.bytes == 0 {
		p.since = time.Now()
	}
	p.taken = rec.Pos
	p.bytes += int64(max(len(rec.Data), len(p.chunk.Entries))) + 1
	return false, nil
}

// idle does what is left to do when there is nothing to read: show what was
// taken, commit it when it is time, and wait.
func (p *pump) idle(ctx, drain context.Context) error {
	if _, err := p.flush(false); err != nil {
		return err
	}
	if p.reopens == 0 {
		p.works()
	}
	patience := idleFlush
	if p.taken > p.committed {
		patience = commitEvery - time.Since(p.since)
		if p.eager || p.soon || patience <= 0 {
			return p.commit(ctx)
		}
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(drain, cancel)()
	if err := p.reader.Wait(wait); err != nil && wait.Err() == nil {
		return err
	}
	return nil
}

// commit makes what was taken durable and moves the cursor.
func (p *pump) commit(ctx context.Context) error {
	state, err := p.flush(true)
	if err != nil {
		return err
	}
	// The output counts on this state from now on, so nothing may come between.
	for {
		err := p.reader.Commit(p.taken, state)
		if err == nil {
			break
		}
		p.fail(fmt.Errorf("its cursor: %w", err), retryPause)
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
	}
	p.committed, p.bytes, p.soon, p.reopens = p.taken, 0, false, 0
	p.works()
	p.out.Add(p.passing.out)
	p.unreadable.Add(p.passing.unreadable)
	p.passing = passing{}
	p.confirm(p.index, p.committed)
	return nil
}

// record makes an output's state durable without moving the cursor.
func (p *pump) record(state []byte) error {
	return p.reader.Commit(p.committed, state)
}

// reopen begins again with what was last committed.
func (p *pump) reopen() {
	if p.output != nil {
		if err := p.output.close(); err != nil {
			p.reporter.trouble("output", fmt.Errorf("%s: %w", p.name, err))
		}
		p.output = nil
	}
	if p.closed = p.reader.SkipTo(p.committed); p.closed != nil {
		return
	}
	output, err := p.open()
	if p.closed = err; err != nil {
		return
	}
	p.output, p.taken, p.bytes, p.soon, p.torn = output, p.committed, 0, false, false
	p.passing = passing{}
}

// finish commits what was taken and lets go. What fails now is told: the
// journal still has it. A part of a record cannot be committed; the next start
// finds it in the output as it would after a crash.
func (p *pump) finish(ctx context.Context) error {
	var errs []error
	if p.output != nil {
		if p.taken > p.committed && !p.torn {
			errs = append(errs, p.commit(ctx))
		}
		errs = append(errs, p.output.close())
		p.output = nil
	}
	return errors.Join(append(errs, p.reader.Close())...)
}
