// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"time"

	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/journal"
)

// ErrHangs says that an output has chunks, reports no failure, and finishes none.
var ErrHangs = errors.New("it has not finished a chunk")

// A Follower hands a journal's records to one output.
//
// How it is organised: what is below calls what is above it in this picture, and never the other
// way round.
//
//	core                 configuration, where the follower stands, the inbox
//	care, opened         which record may end the process; the output as it was opened last
//	flights, splitter    memory of records on their way; a long record in pieces
//	sieve                what routes and steps leave of a record
//	fetcher, outcomes    records to flights; what became of flights, and dead letters
//	flow, committer      into the output's hands and back; the cursor
//	closer, giver        an output that ends; one that is too far behind
//	Follower             the loop (follower.go), trials (trial.go)
//
// All of it belongs to Run's goroutine, but for these: outputs put what they have finished into the
// inbox, and call opened.save and opened.refuseAt, from goroutines of their own; NoteFailure, Sent
// and Hangs touch only what is atomic, and Until what has a lock. That one is held while a record
// is read, for which a Turn may be waited for, so Turn.mu comes after it; inbox.mu is held alone.
// No output is called under any of them.
type Follower struct {
	*core
	care      *care
	opened    *opened
	flights   *flights
	splitter  *splitter
	flow      *flow
	committer *committer
	closer    *closer
	giver     *giver
}

// New returns a follower that begins where its reader stands.
func New(c *Config) *Follower {
	g := newCore(c)
	g.recall()
	sieve := &sieve{core: g}
	care, opened, flights := &care{core: g}, &opened{core: g, sieve: sieve}, &flights{core: g}
	splitter := newSplitter(g, opened)
	sieve.splitter = splitter
	fetcher := &fetcher{g, flights, splitter, sieve}
	outcomes := &outcomes{core: g, care: care, fetcher: fetcher}
	flow := &flow{
		core: g, care: care, opened: opened, flights: flights, splitter: splitter, sieve: sieve, fetcher: fetcher,
		outcomes: outcomes,
	}
	committer := &committer{core: g, care: care, opened: opened, outcomes: outcomes}
	closer := &closer{g, opened, flights, flow, committer}
	giver := &giver{
		core: g, care: care, opened: opened, flights: flights, splitter: splitter, sieve: sieve, fetcher: fetcher,
		flow: flow, committer: committer, closer: closer,
	}
	return &Follower{g, care, opened, flights, splitter, flow, committer, closer, giver}
}

// Start is where the cursor stood when the follower was made.
func (f *Follower) Start() journal.Position { return f.start }

// Sent is what was submitted so far; after errors some of it again. bytes is what became of it.
func (f *Follower) Sent() (events, chunks, bytes int64) {
	return f.sent.events.Load(), f.sent.chunks.Load(), f.sent.bytes.Load()
}

// Until says behind which position no record is taken any more; 0: there is none. Once it has
// returned none is; what was taken is finished. A follower that has come further stops where it is.
// It may be called at any time, and waits for a record that is just being read.
func (f *Follower) Until(p journal.Position) {
	f.until.mu.Lock()
	defer f.until.mu.Unlock()
	f.until.at, f.until.reached = p, false
}

// held says whether records wait that may not be taken.
func (f *Follower) held() bool {
	f.until.mu.Lock()
	defer f.until.mu.Unlock()
	return f.until.at != 0
}

// Hangs is since when the output has had chunks and finished none, if that is long.
func (f *Follower) Hangs() (since time.Time, hangs bool) {
	ns := f.moved.Load()
	since = time.Unix(0, ns)
	return since, ns > 0 && time.Since(since) > hangsAfter
}

// Open opens the output, so that a mistake shows before Run. Run does it otherwise.
func (f *Follower) Open(ctx context.Context) error { return f.opened.open(ctx) }

// Close lets go of the output and the reader. It is for a follower that is not run.
func (f *Follower) Close() error { return f.closer.close() }

// Run moves records until ctx is done. When drain is done before that, it stops as soon as it has
// caught up and all is finished and committed. It closes the output and the reader.
func (f *Follower) Run(ctx, drain context.Context) error {
	for ctx.Err() == nil {
		if f.round(ctx, drain) {
			return f.closer.finish(finishFor)
		}
	}
	return f.closer.finish(closeFor)
}

// round does one step, and reports whether all is done that there is to do.
func (f *Follower) round(ctx, drain context.Context) (over bool) {
	f.splitter.ctx = ctx
	if f.opened.out == nil && f.opened.broken == nil {
		f.opened.broken = errNotOpen
	}
	f.flow.collect()
	if f.giver.over(drain) != nil {
		f.giver.giveUpOldest(ctx)
		return false
	}
	if f.opened.broken != nil {
		f.reopen(ctx, drain)
		return false
	}
	if f.committer.isDue() {
		if f.opened.resumer && f.flights.inFlight > 0 {
			f.flow.await(ctx, 0)
			return false
		}
		if f.stop > f.committed {
			f.committer.tryCommit(ctx)
			return false
		}
	}
	if f.splitter.split.pinned {
		if f.flights.inFlight > 0 {
			f.flow.await(ctx, 0)
			return false
		}
		f.splitter.split.pinned = false
		if !f.splitter.cutting {
			f.splitter.endSplit()
		}
	}
	if f.flights.isFull() {
		f.flow.await(ctx, f.flights.inFlight*3/4) // the output does not run dry, and not each chunk wakes
		return false
	}
	careful := f.care.careful() && !f.splitter.cutting && !f.flow.sieve.pending()
	if careful && !f.care.alone(f.takesWhole, f.flights.window.Len()) {
		f.flow.await(ctx, 0)
		return false
	}
	more, err := f.flow.next()
	if careful && !more {
		f.care.clearAlone()
	}
	switch {
	case err != nil:
		f.care.pauseAfter(ctx, err)
	case more && careful:
		f.care.singles++
		f.care.bytes += f.flights.bytes
		f.made()
	case more:
	case f.flights.inFlight == 0 && drain.Err() != nil && f.stop > f.committed:
		f.committer.tryCommit(ctx)
	case f.flights.inFlight == 0 && drain.Err() != nil:
		return true
	default:
		f.rest(ctx, drain)
	}
	return false
}

// made says that the output has made of a record what it sends. One that gathers records for a
// transaction does so before Submit returns: nothing of what waits for the transaction is in hand,
// and a careful start need not wait for it.
func (f *Follower) made() {
	if f.takesWhole {
		f.care.clearAlone()
	}
}

// rest waits for more to read, having caught up.
func (f *Follower) rest(ctx, drain context.Context) {
	patience := idleFlush
	switch {
	case f.taken == f.committed:
		f.care.works()
		f.committer.flushIdle(ctx)
		if f.opened.broken != nil {
			return
		}
	case f.stop == f.committed: // not before something is done
		patience = commitEvery
	case f.cfg.Eager && (f.flights.inFlight == 0 || !f.opened.resumer):
		f.committer.tryCommit(ctx)
		return
	default:
		patience = max(commitEvery-time.Since(f.since), time.Millisecond)
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := -1 // only what is urgent
	draining := drain.Err() != nil
	switch {
	case draining:
		left = 0
	case f.cfg.Eager && f.flights.inFlight > 0:
		left = f.flights.inFlight - 1
	}
	if !f.inbox.listen(f.flights.inFlight, left, cancel) {
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
		f.care.pauseAfter(ctx, err)
	case !f.cfg.Eager || f.held():
		_ = await.Pause(wait, batchPause)
	}
}

// reopen closes the output and opens another one where the cursor stands.
func (f *Follower) reopen(ctx, drain context.Context) {
	if why := f.opened.broken; !errors.Is(why, errNotOpen) {
		f.closer.giveUp(ctx)
		wait := min(retryPause<<min(f.opened.reopens, 10), maxReopenPause)
		f.opened.reopens++
		f.care.fail(why, wait)
		if f.pauseReopen(ctx, drain, wait) != nil {
			return
		}
	}
	if f.opened.broken = f.back(); f.opened.broken == nil {
		f.opened.broken = f.opened.open(ctx)
	}
}

// pauseReopen waits before the output is opened again. What waits too long meanwhile is given up.
func (f *Follower) pauseReopen(ctx, drain context.Context, d time.Duration) error {
	if f.cfg.Behind == nil {
		return await.Pause(ctx, d)
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := await.Pause(ctx, min(lookEvery, time.Until(end))); err != nil {
			return err
		}
		if f.giver.over(drain) != nil {
			f.giver.giveUpOldest(ctx)
		}
	}
	return nil
}
