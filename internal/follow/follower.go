// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// Config says what is followed and where it goes. Reader and Open are all it needs.
type Config struct {
	// Reader is the cursor. Run closes it.
	Reader *journal.Reader
	// Recent returns the chunk behind a position from memory, if it is there; nil: there is none.
	// It returns only what the journal has synced.
	Recent func(after journal.Position) (Recent, bool)
	// Identify appends the id of the record between two positions. It replaces an id that is not
	// Spillway's own. nil leaves ids as they are.
	Identify func(dst []byte, first, last journal.Position) []byte
	// Open makes the output; the follower resumes it. It is called again after ErrReopen.
	Open func() (output.Output, error)
	// Opaque says that the output does not look at entries: they stay compressed.
	Opaque bool
	// Guard has a second call of done left out and told, at the cost of some memory for each chunk.
	// It is for outputs whose code is not known.
	Guard bool
	// Eager commits as soon as the follower has caught up: somebody waits for that.
	Eager bool
	// Chunks and Bytes bound what is submitted and not passed by the finished prefix; 1024 and 4
	// MiB if 0. One chunk may be larger.
	Chunks int
	Bytes  int64
	// Piece is the longest chunk that is submitted; 4 MiB if 0. A longer one comes in pieces, each
	// a chunk of its own, with an id of its own, unless the output is Opaque or Transactional. One
	// event may be larger: an output.Longer gets it as a stream.
	Piece int64
	// Packs says that the output takes compressed entries, whatever it has them become: an event of
	// more than four pieces leaves so.
	Packs bool
	// Turn is waited for before an event or a record of more than Piece is in memory; nil: nothing
	// is.
	Turn *Turn

	// Caution remembers records on which the process died; nil: nothing does.
	Caution *Caution

	// Behind is when what has waited longest is given up; nil: never.
	Behind *Behind

	// Refuse makes refused entries dead letters, durable when it returns. nil drops them.
	Refuse func(ctx context.Context, refused []Refused) error
	// Passed is called after each commit with what the cursor has passed since the last one.
	Passed func(p journal.Position, n Counts)
	// Failed is told a step of the follower's own that failed, and the pause before the next try;
	// Worked that it works again. What the output tries again by itself, the output tells.
	Failed func(err error, pause time.Duration)
	Worked func()
	// Report is told of a record that is no chunk, and of what goes wrong beside: an output that
	// does not close, for instance.
	Report func(error)
}

// Counts are events, but for Chunks and Broken.
type Counts struct {
	Out        int64 // delivered
	HandedOver int64 // a fallback took them
	Repeated   int64 // of Out and HandedOver: the other side may have them twice
	Refused    int64 // dead letters, also of what was given up
	Aside      int64 // of Refused: given up because too much waited
	Dropped    int64 // given up because too much waited, and no dead letter
	Unreadable int64 // of records that are no chunk, as far as they say how many
	Restamped  int64 // they have another time there than their own
	Diverted   int64 // of Out: they went to another place than their own
	Bytes      int64 // what the output made of Out
	Chunks     int64 // finished
	Broken     int64 // records that are no chunk
}

func (n *Counts) add(m *Counts) {
	n.Out += m.Out
	n.HandedOver += m.HandedOver
	n.Repeated += m.Repeated
	n.Refused += m.Refused
	n.Aside += m.Aside
	n.Dropped += m.Dropped
	n.Unreadable += m.Unreadable
	n.Diverted += m.Diverted
	n.Restamped += m.Restamped
	n.Bytes += m.Bytes
	n.Chunks += m.Chunks
	n.Broken += m.Broken
}

const (
	// commitEvery is how long the cursor may stay behind what is done. After a crash the output
	// compares, or repeats, what it did since.
	commitEvery = time.Second
	// commitBytes bounds the same by volume.
	commitBytes = 64 << 20
	// retryPause is how long a failed commit waits for the disk to get well.
	retryPause = 200 * time.Millisecond
	// reopenMost is the longest pause before an output is opened again.
	reopenMost = 30 * time.Second
	// batchPause is how long a follower that has caught up lets records gather.
	batchPause = 8 * time.Millisecond
	// idleFlush is how often an output is flushed that gets nothing, to let go of what it has not
	// needed for long.
	idleFlush = time.Minute
	// finishFor is how long an output may take to close that has done all: it may compress a file.
	finishFor = 6 * time.Second
	// closeFor is how long another one may.
	closeFor = 900 * time.Millisecond
	// hangsAfter is how long an output may have chunks and finish none before that is said.
	hangsAfter = 10 * time.Second
)

// ErrHangs says that an output has chunks, reports no failure, and finishes none.
var ErrHangs = errors.New("it has not finished a chunk")

// A Follower hands a journal's records to one output. Run is its only goroutine; outputs add to
// the inbox from theirs.
type Follower struct {
	cfg   Config
	start journal.Position // where the cursor stood when the follower was made
	moved atomic.Int64     // since when the output owes something, in nanoseconds since 1970; 0: it does not
	sent  struct{ events, chunks, bytes atomic.Int64 }
	inbox inbox
	step  step // Run's own
}

// step is what only Run touches.
type step struct {
	opened
	flights
	place
	due
	giving
	split   split
	cutting bool // there is a split
	care    care
	ctx     context.Context // of Run
	failing bool            // Failed was told last
	idleAt  time.Time       // of the last Flush with nothing to commit
}

// place is where the follower stands: committed ≤ stop ≤ finished ≤ taken.
type place struct {
	committed journal.Position // the cursor
	stop      journal.Position // up to where the cursor may move
	finished  journal.Position // end of the longest finished prefix
	taken     journal.Position // end of the last record read
	state     []byte           // of stop
	keep      bool             // the state of stop is the one that the cursor has
}

// due is what the next commit makes good.
type due struct {
	counts  Counts    // up to finished, beyond stop
	passing Counts    // up to stop, beyond committed
	volume  int64     // submitted since the last commit
	since   time.Time // the first of it
	soon    bool      // the next commit is urgent

	letters     []Refused // up to finished, beyond committed
	letterBytes int64     // of them, since the last were passed on
}

// New returns a follower that begins where its reader stands.
func New(c *Config) *Follower {
	f := &Follower{cfg: *c}
	if f.cfg.Chunks <= 0 {
		f.cfg.Chunks = 1024
	}
	if f.cfg.Bytes <= 0 {
		f.cfg.Bytes = 4 << 20
	}
	if f.cfg.Piece <= 0 {
		f.cfg.Piece = 4 << 20
	}
	if f.cfg.Passed == nil {
		f.cfg.Passed = func(journal.Position, Counts) {}
	}
	if f.cfg.Failed == nil {
		f.cfg.Failed = func(error, time.Duration) {}
	}
	if f.cfg.Worked == nil {
		f.cfg.Worked = func() {}
	}
	if f.cfg.Report == nil {
		f.cfg.Report = func(error) {}
	}
	f.start, _ = f.cfg.Reader.Committed()
	s := &f.step
	if f.cfg.Turn != nil {
		f.cfg.Reader.OnLarge(2*f.cfg.Piece, func() {
			if s.split.large == nil && s.ctx != nil {
				s.split.large = f.cfg.Turn.Take(s.ctx)
			}
		})
	}
	s.committed = f.start
	s.rewind(f.start)
	return f
}

// Start is where the cursor stood when the follower was made.
func (f *Follower) Start() journal.Position { return f.start }

// Sent is what was submitted so far; after trouble some of it again. bytes is what became of it.
func (f *Follower) Sent() (events, chunks, bytes int64) {
	return f.sent.events.Load(), f.sent.chunks.Load(), f.sent.bytes.Load()
}

// Hangs is since when the output has had chunks and finished none, if that is long.
func (f *Follower) Hangs() (since time.Time, hangs bool) {
	ns := f.moved.Load()
	since = time.Unix(0, ns)
	return since, ns > 0 && time.Since(since) > hangsAfter
}

// Run moves records until ctx is done. When drain is done before that, it stops as soon as it has
// caught up and all is finished and committed. It closes the output and the reader.
func (f *Follower) Run(ctx, drain context.Context) error {
	for ctx.Err() == nil {
		if f.round(ctx, drain) {
			return f.finish(finishFor)
		}
	}
	return f.finish(closeFor)
}

// round does one step, and reports whether all is done that there is to do.
func (f *Follower) round(ctx, drain context.Context) (over bool) {
	s := &f.step
	s.ctx = ctx
	if s.out == nil && s.broken == nil {
		s.broken = errNotOpen
	}
	f.collect()
	if f.over(drain) != nil {
		f.giveUpOldest(ctx)
		return false
	}
	if s.broken != nil {
		f.reopen(ctx, drain)
		return false
	}
	if f.isDue() {
		if s.resumer && s.inFlight > 0 {
			f.await(ctx, 0)
			return false
		}
		if s.stop > s.committed {
			f.tryCommit(ctx)
			return false
		}
	}
	if s.split.pinned {
		if s.inFlight > 0 {
			f.await(ctx, 0)
			return false
		}
		s.split.pinned = false
		if !s.cutting {
			f.endSplit()
		}
	}
	if f.isFull() {
		f.await(ctx, s.inFlight/2)
		return false
	}
	careful := f.careful()
	if careful && !f.alone() {
		f.await(ctx, 0)
		return false
	}
	more, err := f.next()
	if careful && !more {
		f.excuse()
	}
	switch {
	case err != nil:
		f.pauseAfter(ctx, err)
	case more && careful:
		s.care.singles++
		s.care.bytes += s.bytes
		f.made()
	case more:
	case s.inFlight == 0 && drain.Err() != nil && s.stop > s.committed:
		f.tryCommit(ctx)
	case s.inFlight == 0 && drain.Err() != nil:
		return true
	default:
		f.rest(ctx, drain)
	}
	return false
}

// isDue says whether the cursor is to be committed now.
func (f *Follower) isDue() bool {
	s := &f.step
	return s.taken > s.committed && (s.volume >= commitBytes || s.soon || time.Since(s.since) >= commitEvery)
}

// finish commits what may be committed, and lets go. A part of a record cannot be committed; the
// next start finds it in the output as it would after a crash.
func (f *Follower) finish(patience time.Duration) error {
	s := &f.step
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f.collect()
	var errs []error
	if s.out != nil {
		if !s.resumer || s.inFlight == 0 && s.broken == nil {
			errs = append(errs, f.lastCommit(ctx, closeFor/3))
		}
		errs = append(errs, s.out.Close(ctx))
		f.collect()
		if !s.resumer { // Close gave chunks up; those before them may be done
			errs = append(errs, f.lastCommit(ctx, closeFor))
		}
		f.forget()
	}
	return errors.Join(append(errs, f.cfg.Reader.Close())...)
}

// lastCommit commits if there is something to commit. That time was too short for it is no error:
// it is as if the process had been killed.
func (f *Follower) lastCommit(ctx context.Context, patience time.Duration) error {
	if f.step.stop == f.step.committed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f.commit(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// Close lets go of the output and the reader. It is for a follower that is not run.
func (f *Follower) Close() error {
	s := &f.step
	var err error
	if s.out != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeFor)
		defer cancel()
		err = s.out.Close(ctx)
		f.forget()
	}
	return errors.Join(err, f.cfg.Reader.Close())
}

// fail tells of a step that failed.
func (f *Follower) fail(err error, wait time.Duration) {
	f.excuse()
	f.step.failing = true
	f.cfg.Failed(err, wait)
}

// works tells that steps work again, if one has failed.
func (f *Follower) works() {
	if f.step.failing {
		f.step.failing = false
		f.cfg.Worked()
	}
}
