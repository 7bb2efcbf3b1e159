// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// Config says what is followed and where it goes. Reader and Open are all it needs.
type Config struct {
	// Reader is the cursor. Run closes it.
	Reader *journal.Reader
	// Recent returns the chunk behind a position from memory, if it is there; nil: there is none.
	Recent func(after journal.Position) (Recent, bool)
	// Identify appends the id of the record between two positions. It replaces an id that is not
	// Spillway's own. nil leaves ids as they are.
	Identify func(dst []byte, first, last journal.Position) []byte
	// Open makes the output; the follower resumes it. It is called again after ErrReopen.
	Open func() (output.Output, error)
	// Opaque says that the output does not look at entries: they stay compressed.
	Opaque bool
	// Guard has a second call of done left out and told, at the cost of some memory for each chunk. It
	// is for outputs whose code is not known.
	Guard bool
	// Eager commits as soon as the follower has caught up: somebody waits for that.
	Eager bool
	// Chunks and Bytes bound what is in flight; 1024 and 4 MiB if 0. One chunk may be larger.
	Chunks int
	Bytes  int64

	// Refuse makes refused entries dead letters, durable when it returns. nil drops them.
	Refuse func(ctx context.Context, refused []Refused) error
	// Passed is called after each commit with what the cursor has passed since the last one.
	Passed func(p journal.Position, n Counts)
	// Failed is told a step of the follower's own that failed, and the pause before the next try;
	// Worked that it works again. What the output tries again by itself, the output tells.
	Failed func(err error, pause time.Duration)
	Worked func()
	// Report is told of a record that is no chunk.
	Report func(error)
}

// Counts are events, but for Chunks and Broken.
type Counts struct {
	Out        int64 // delivered
	HandedOver int64 // a fallback took them
	Repeated   int64 // of Out and HandedOver: the other side may have them twice
	Refused    int64 // dead letters
	Unreadable int64 // of records that are no chunk, as far as they say how many
	Bytes      int64 // what the output made of Out
	Chunks     int64 // finished
	Broken     int64 // records that are no chunk
}

func (n *Counts) add(m *Counts) {
	n.Out += m.Out
	n.HandedOver += m.HandedOver
	n.Repeated += m.Repeated
	n.Refused += m.Refused
	n.Unreadable += m.Unreadable
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
	batchPause = 4 * time.Millisecond
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

// tokenLen is the length of a token: the position, its high byte first.
const tokenLen = 8

// A Follower hands a journal's records to one output. Run is its only goroutine; outputs add to
// the inbox from theirs.
type Follower struct {
	cfg   Config
	start journal.Position // where the cursor stood when the follower was made
	moved atomic.Int64     // when a chunk was last finished, or the first one submitted, in nanoseconds since 1970; 0: none is in flight
	sent  struct{ events, chunks, bytes atomic.Int64 }

	inbox struct {
		sync.Mutex
		done  []*flight
		gen   int    // of the output whose results count
		left  int    // of those awaited that are not done
		awake func() // ends the wait that runs, as soon as something is done; nil: nobody waits for that
	}

	step step // Run's own
}

// step is what only Run touches.
type step struct {
	out       output.Output
	gen       int // of out
	resumer   bool
	at        output.Transactional // out, if it is one
	broken    error                // why out is of no more use, or why there is none
	window    queue                // of what was submitted, in order
	bytes     int64                // of what is in flight
	inFlight  int
	taken     journal.Position // end of the last record read
	finished  journal.Position // end of the longest finished prefix
	stop      journal.Position // up to where the cursor may move: at most finished
	state     []byte           // of stop
	keep      bool             // the state of stop is the one that the cursor has
	committed journal.Position

	counts  Counts    // up to finished, beyond stop
	passing Counts    // up to stop, beyond committed
	letters []Refused // beyond committed
	volume  int64     // submitted since the last commit
	since   time.Time // the first of it
	soon    bool      // the output wants a commit
	reopens int       // since the last commit
	failing bool      // Failed was told last
	idleAt  time.Time // of the last Flush with nothing to commit
	spare   spares
	landed  []*flight // taken from the inbox

	inflater forward.Inflater
	token    [tokenLen]byte
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
	s.taken, s.finished, s.stop, s.committed, s.keep = f.start, f.start, f.start, f.start, true
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

// Open opens the output, so that a mistake shows before Run. Run does it otherwise.
func (f *Follower) Open(ctx context.Context) error {
	out, err := f.open(ctx)
	if err == nil {
		f.use(out)
	}
	return err
}

// Run moves records until ctx is done. When drain is done before that, it stops as soon as it has
// caught up and all is finished. It closes the output and the reader.
func (f *Follower) Run(ctx, drain context.Context) error {
	s := &f.step
	if s.out == nil {
		s.broken = errNotOpen
	}
	for ctx.Err() == nil {
		f.collect()
		if s.broken != nil {
			f.reopen(ctx)
			continue
		}
		if f.due() {
			if s.resumer && s.inFlight > 0 {
				f.await(ctx, 0)
				continue
			}
			if s.stop > s.committed {
				f.tryCommit(ctx)
				continue
			}
		}
		if s.inFlight > 0 && (s.inFlight >= f.cfg.Chunks || s.bytes >= f.cfg.Bytes) {
			f.await(ctx, s.inFlight/2)
			continue
		}
		more, err := f.next()
		switch {
		case err != nil:
			f.pauseAfter(ctx, err)
		case more:
		case s.inFlight == 0 && drain.Err() != nil:
			return f.finish(ctx)
		default:
			f.rest(ctx, drain)
		}
	}
	return f.finish(ctx)
}

// due says whether the cursor is to be committed now.
func (f *Follower) due() bool {
	s := &f.step
	return s.taken > s.committed && (s.volume >= commitBytes || s.soon || time.Since(s.since) >= commitEvery)
}

// rest waits for more to read, having caught up.
func (f *Follower) rest(ctx, drain context.Context) {
	s := &f.step
	patience := idleFlush
	if s.taken == s.committed && time.Since(s.idleAt) >= idleFlush {
		f.flushIdle(ctx)
	}
	if s.taken > s.committed {
		switch {
		case (f.cfg.Eager || drain.Err() != nil) && s.inFlight == 0 || s.soon && s.stop > s.committed:
			if s.stop > s.committed {
				f.tryCommit(ctx)
				return
			}
		case f.cfg.Eager && !s.resumer && s.stop > s.committed:
			f.tryCommit(ctx)
			return
		}
		if patience = commitEvery - time.Since(s.since); patience <= 0 { // due, but the output is not done
			patience = commitEvery
		}
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	draining := drain.Err() != nil
	if draining || f.cfg.Eager {
		if !f.listen(max(s.inFlight-1, 0), cancel) {
			return
		}
		defer f.deafen()
	}
	if draining { // there will be no more to read
		<-wait.Done()
		return
	}
	defer context.AfterFunc(drain, cancel)()
	err := f.cfg.Reader.Wait(wait)
	switch {
	case wait.Err() != nil:
	case err != nil:
		f.pauseAfter(ctx, err)
	case !f.cfg.Eager && drain.Err() == nil:
		_ = pause(ctx, batchPause)
	}
}

// await waits until no more than so many chunks are in flight.
func (f *Follower) await(ctx context.Context, left int) {
	wait, cancel := context.WithTimeout(ctx, commitEvery) // for what is due meanwhile
	defer cancel()
	if !f.listen(left, cancel) {
		return
	}
	defer f.deafen()
	<-wait.Done()
}

// listen has awake called when no more than left chunks are in flight. It reports false if that is
// so already.
func (f *Follower) listen(left int, awake func()) bool {
	f.inbox.Lock()
	defer f.inbox.Unlock()
	more := f.step.inFlight - len(f.inbox.done) - left
	if f.step.inFlight > 0 && more <= 0 || len(f.inbox.done) > 0 && f.cfg.Eager {
		return false
	}
	f.inbox.left, f.inbox.awake = more, awake
	return true
}

func (f *Follower) deafen() {
	f.inbox.Lock()
	defer f.inbox.Unlock()
	f.inbox.awake = nil
}

// errNotOpen stands for an output that was not opened yet.
var errNotOpen = errors.New("not open")

// reopen closes the output and opens another one where the cursor stands.
func (f *Follower) reopen(ctx context.Context) {
	s := &f.step
	if !errors.Is(s.broken, errNotOpen) {
		wait := retryPause << min(s.reopens, 10)
		s.reopens++
		f.fail(s.broken, min(wait, reopenMost))
		f.close()
		if pause(ctx, min(wait, reopenMost)) != nil {
			return
		}
	}
	if s.broken = f.cfg.Reader.SkipTo(s.committed); s.broken != nil {
		return
	}
	out, err := f.open(ctx)
	if s.broken = err; err == nil {
		f.use(out)
	}
}

// close gives the output up, and forgets what it had.
func (f *Follower) close() {
	s := &f.step
	if s.out == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	if err := s.out.Close(ctx); err != nil {
		f.cfg.Report(err)
	}
	f.collect()
	f.forget()
}

// forget drops what is beyond the cursor.
func (f *Follower) forget() {
	s := &f.step
	s.out, s.at = nil, nil
	f.inbox.Lock()
	f.inbox.gen++
	s.gen = f.inbox.gen
	for _, x := range f.inbox.done { // since they were collected last
		x.done = true
	}
	f.inbox.done = nil
	f.inbox.Unlock()
	for s.window.len() > 0 {
		if x := s.window.pop(); x.done { // else an output that was left behind may still read it
			f.recycle(x)
		}
	}
	s.bytes, s.inFlight, s.volume, s.soon = 0, 0, 0, false
	s.taken, s.finished, s.stop = s.committed, s.committed, s.committed
	s.counts, s.passing, s.letters, s.state = Counts{}, Counts{}, nil, nil
	s.keep = true
	f.moved.Store(0)
}

// open opens and resumes the output.
func (f *Follower) open(ctx context.Context) (output.Output, error) {
	out, err := f.cfg.Open()
	if err != nil {
		return nil, err
	}
	switch o := out.(type) {
	case output.Resumer:
		var states [][]byte
		if _, state := f.cfg.Reader.Committed(); len(state) > 0 {
			states = append(states, state)
		}
		err = o.Resume(f.save, states...)
	case output.Transactional:
		err = f.restore(ctx, o)
	}
	if err == nil {
		return out, nil
	}
	closing, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	return nil, errors.Join(err, out.Close(closing))
}

// restore goes to where a Transactional output stands.
func (f *Follower) restore(ctx context.Context, o output.Transactional) error {
	s := &f.step
	token, ok, err := o.Restore(ctx)
	if err != nil || !ok {
		return err
	}
	if len(token) != tokenLen {
		return fmt.Errorf("a token of %d bytes is none of a follower's", len(token))
	}
	p := journal.Position(binary.BigEndian.Uint64(token))
	if p < s.committed {
		f.cfg.Report(fmt.Errorf("the output stands at %v, before the cursor's %v: what lies between is not repeated", p, s.committed))
		return nil
	}
	if err := f.cfg.Reader.SkipTo(p); err != nil {
		return err
	}
	s.taken, s.finished, s.stop = p, p, p
	return nil
}

// use begins with an output that was opened.
func (f *Follower) use(out output.Output) {
	s := &f.step
	s.out, s.broken = out, nil
	_, s.resumer = out.(output.Resumer)
	s.at, _ = out.(output.Transactional)
}

// save makes an output's state durable without moving the cursor. The output calls it from a
// goroutine of its own.
func (f *Follower) save(state []byte) error {
	p, _ := f.cfg.Reader.Committed()
	return f.cfg.Reader.Commit(p, state)
}

// Close lets go of the output and the reader. It is for a follower that is not run.
func (f *Follower) Close() error {
	s := &f.step
	var err error
	if s.out != nil {
		closing, cancel := context.WithTimeout(context.Background(), closeFor)
		defer cancel()
		err = s.out.Close(closing)
		s.out = nil
	}
	return errors.Join(err, f.cfg.Reader.Close())
}

// finish commits what may be committed, and lets go. A part of a record cannot be committed; the
// next start finds it in the output as it would after a crash.
func (f *Follower) finish(ctx context.Context) error {
	s := &f.step
	var errs []error
	last := func() {
		f.collect()
		if s.out != nil && s.broken == nil && s.stop > s.committed && (!s.resumer || s.inFlight == 0) {
			if err := f.commit(ctx); ctx.Err() == nil || !errors.Is(err, ctx.Err()) { // else there was no time for it
				errs = append(errs, err)
			}
		}
	}
	last()
	if s.out != nil {
		patience := closeFor
		if ctx.Err() == nil {
			patience = finishFor
		}
		closing, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		errs = append(errs, s.out.Close(closing))
		s.broken = nil // Close gave chunks up; those before them may be done
		if !s.resumer {
			last()
		}
		f.forget()
	}
	return errors.Join(append(errs, f.cfg.Reader.Close())...)
}

func (f *Follower) fail(err error, wait time.Duration) {
	f.step.failing = true
	f.cfg.Failed(err, wait)
}

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
