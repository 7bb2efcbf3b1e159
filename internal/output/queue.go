// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// A sinkQueue holds chunks for one writer: a goroutine that hands them to a sink, in order, tries
// again after errors, and lets the breaker's handler have what the sink cannot take.
//
//	Submit ─→ jobs ─→ writer ─→ sink (file, stream)
//	            └──→ breaker ─→ handler
//
// The sink may hang for as long as the kernel likes. So nobody waits for it with mu held, and what
// belongs to others (the bytes of chunks, done, record) is touched only with the lease: Close takes
// the lease when its time is up, and from then on a writer that comes back touches nothing.
type sinkQueue struct {
	name string
	sink sink
	min  time.Duration // backoff
	max  time.Duration

	together int // jobs of one write, at most; set before the first Submit

	brk   *breaker
	lease chan struct{} // full: somebody holds it
	gone  atomic.Bool   // the writer has been given up: the lease is not to be had any more; set by Close

	mu      sync.Mutex
	jobs    []*job
	free    []*job
	seq     uint64 // of the last job
	flushes []*flushing
	broken  error         // wraps ErrReopen: the sink is of no more use
	closing chan struct{} // closed by Close
	closed  bool
	started bool
	result  error // of Close

	wake   chan struct{} // for the writer
	exited chan struct{} // closed by the writer
	over   chan struct{} // closed when Close is through
}

// A sink is where lines go. It is used by the writer only.
type sink interface {
	// write writes jobs, and returns the state after the last of them, nil if it has none. After an
	// error all of them come again, first, unless drop is called. It touches chunks with the lease
	// only, and returns errGone if that cannot be had any more. last says that no other job waits.
	write(jobs []*job, last bool) (state []byte, err error)
	// flush makes what is written as durable as it can be.
	flush() error
	// drop forgets what is not written, but for the rest of a line that is written in part.
	drop()
	// tick is called now and then while there is nothing to write. It reports whether it wants to
	// be called again.
	tick() bool
	close() error
}

var errGone = errors.New("output: the writer was given up")

// Bounds of what is written together.
const (
	groupBytes = 1 << 20
	groupJobs  = 4096 // a chunk may be one line
)

const tickEvery = time.Minute

// The first and the longest pause between two attempts, where nothing else is said.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 10 * time.Second
)

// pauses are the first and the longest pause. One that is not given (0) is first or maxBackoff, and
// gives way to the other.
func pauses(shortest, longest, first time.Duration) (time.Duration, time.Duration) {
	switch {
	case shortest <= 0:
		longest = cmp.Or(longest, maxBackoff)
		shortest = min(first, longest)
	case longest <= 0:
		longest = max(maxBackoff, shortest)
	}
	return shortest, longest
}

func newQueue(name string, s sink, trip *Trip, shortest, longest time.Duration) *sinkQueue {
	shortest, longest = pauses(shortest, longest, minBackoff)
	q := &sinkQueue{
		name: name, sink: s, min: shortest, max: longest, together: groupJobs,
		lease: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		closing: make(chan struct{}), exited: make(chan struct{}), over: make(chan struct{}),
	}
	q.brk = newBreaker(trip, q.next, q.back)
	return q
}

// Submit implements Output.
func (q *sinkQueue) Submit(c *forward.Chunk, done func(Result)) { q.submit(ticket{chunk: c}, done) }

// submit is Submit with all that an output may be told of a chunk.
func (q *sinkQueue) submit(t ticket, done func(Result)) {
	q.mu.Lock()
	if q.closed || q.broken != nil {
		err := q.broken
		q.mu.Unlock()
		done(Result{Err: cmp.Or(err, ErrClosed)})
		return
	}
	q.seq++
	q.jobs = append(q.jobs, q.newJobLocked(t, done))
	if !q.started {
		q.started = true
		go q.run()
	}
	q.mu.Unlock()
	q.wakeWriter()
	if q.brk.state() != BreakerClosed {
		q.brk.more()
	}
}

func (q *sinkQueue) wakeWriter() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run is the writer.
func (q *sinkQueue) run() {
	defer close(q.exited)
	var group []*job
	backoff := q.min
	for {
		group = q.group(group)
		if len(group) == 0 {
			break
		}
		state, err := q.sink.write(group, q.last(group))
		if err == nil && !q.finish(group, state) || errors.Is(err, errGone) {
			break
		}
		if err == nil {
			clear(group)
			group = group[:0]
			q.brk.worked()
			backoff = q.min
			continue
		}
		q.release(group)
		err = q.named(err)
		if errors.Is(err, ErrReopen) {
			q.brk.failed(err, true, 0)
			q.ruin(err)
			break
		}
		if backoff == q.min {
			q.brk.reportFailure(fmt.Errorf("%w; trying again", err), true)
		}
		q.brk.failed(err, true, backoff)
		if !q.pause(backoff) {
			break
		}
		backoff = min(2*backoff, q.max)
		q.brk.probe()
	}
	if err := q.sink.close(); err != nil {
		q.mu.Lock()
		q.result = fmt.Errorf("%s: %w", q.name, err)
		q.mu.Unlock()
	}
}

// named puts the queue's name before an error, where that is not plain.
func (q *sinkQueue) named(err error) error {
	if q.brk.trip.Health != nil {
		return err
	}
	return fmt.Errorf("%s: %w", q.name, err)
}

// last says whether nothing waits behind a group.
func (q *sinkQueue) last(group []*job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.jobs) == len(group)
}

// Flush implements Output.
func (q *sinkQueue) Flush(ctx context.Context) error {
	q.mu.Lock()
	if q.closed || q.broken != nil || !q.started {
		err := q.broken
		q.mu.Unlock()
		return err
	}
	w := newFlushing(q.seq, 1)
	q.flushes = append(q.flushes, w)
	q.mu.Unlock()
	q.wakeWriter()
	return w.wait(ctx)
}

// dueLocked takes the flushes that wait for no job any more.
func (q *sinkQueue) dueLocked() (due []*flushing) {
	q.flushes = slices.DeleteFunc(q.flushes, func(w *flushing) bool {
		if len(q.jobs) > 0 && q.jobs[0].seq <= w.seq {
			return false
		}
		due = append(due, w)
		return true
	})
	return due
}

// flushSink flushes the sink for callers that wait for that. It reports false if the sink is of no
// more use.
func (q *sinkQueue) flushSink(due []*flushing) bool {
	err := q.sink.flush()
	if err != nil {
		err = q.named(err)
	}
	broken := errors.Is(err, ErrReopen)
	if broken {
		q.brk.failed(err, true, 0)
		q.ruin(err)
	}
	for _, w := range due {
		w.end(err)
	}
	return !broken
}

// ruin gives all jobs back: the sink is of no more use.
func (q *sinkQueue) ruin(err error) {
	if !q.acquire() {
		return
	}
	defer q.give()
	q.mu.Lock()
	q.broken = err
	left, flushes := q.jobs, q.flushes
	q.jobs, q.flushes = nil, nil
	q.mu.Unlock()
	for _, j := range left {
		j.done(Result{Err: err})
	}
	for _, w := range flushes {
		w.end(err)
	}
}

// tell reports what is wrong.
func (q *sinkQueue) tell(err error) { q.brk.report(err) }

// group returns what is to be written together, old being the group of the attempt that failed. It
// waits until there is something, and returns nothing when the queue closes.
func (q *sinkQueue) group(old []*job) []*job {
	timer := time.NewTimer(tickEvery)
	defer timer.Stop()
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return nil
		}
		if due := q.dueLocked(); due != nil {
			q.mu.Unlock()
			if !q.flushSink(due) {
				return nil
			}
			continue
		}
		group, ready := q.fill(old)
		q.mu.Unlock()
		if ready {
			return group
		}
		old = group
		select {
		case <-q.wake:
		case <-q.closing:
		case <-timer.C:
			if len(old) == 0 && q.sink.tick() {
				timer.Reset(tickEvery)
			}
		}
	}
}

// fill takes away from a group what the handler took, adds what waits of the same origin, and holds
// all of it. It is not ready while the handler has one of them.
func (q *sinkQueue) fill(group []*job) (_ []*job, ready bool) {
	taken := false
	for _, j := range group {
		taken = taken || j.taken
		if j.offered {
			return group, false
		}
	}
	if taken {
		q.sink.drop()
		group = slices.DeleteFunc(group, func(j *job) bool { return j.taken })
		for _, j := range group {
			j.repeated = j.repeated || j.begun
			j.restart()
		}
	}
	size := 0
	for _, j := range group {
		size += j.size()
	}
	for _, j := range q.jobs[min(len(group), len(q.jobs)):] {
		if j.offered || len(group) >= q.together || len(group) > 0 &&
			(size+j.size() > groupBytes || j.origin != group[0].origin) {
			break
		}
		group = append(group, j)
		size += j.size()
	}
	for _, j := range group {
		j.held = true
	}
	return group, len(group) > 0
}

// finish tells that jobs, the first of the queue, are done. One state is for all of them: to make
// and store one for each would cost more than to write them, where they are short.
func (q *sinkQueue) finish(group []*job, state []byte) bool {
	if !q.acquire() {
		return false
	}
	defer q.give()
	q.mu.Lock()
	clear(q.jobs[copy(q.jobs, q.jobs[len(group):]):])
	q.jobs = q.jobs[:len(q.jobs)-len(group)]
	q.mu.Unlock()
	for i, j := range group {
		r := Result{
			MaybeRepeated: j.repeated, Bytes: j.bytes, Soon: j.soon, Rejected: j.rejected, Diverted: j.diverted,
			Torn: j.torn,
		}
		if i == len(group)-1 {
			r.State = state
		}
		j.done(r)
	}
	q.recycle(group)
	return true
}

// release lets the handler have jobs.
func (q *sinkQueue) release(group []*job) {
	q.mu.Lock()
	for _, j := range group {
		j.held = false
	}
	q.mu.Unlock()
}

// pause waits before the next attempt, and reports whether there is to be one.
func (q *sinkQueue) pause(d time.Duration) bool {
	t := time.NewTimer(d - rand.N(d/2+1)) // so that many processes on one full disk do not try at once
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-q.closing:
		return false
	}
}

// next gives the handler a chunk.
func (q *sinkQueue) next(round uint64) *forward.Chunk {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.brk.state() != BreakerOpen {
		return nil
	}
	for _, j := range q.jobs {
		if !j.held && !j.offered && j.round != round && j.long == nil {
			j.offered, j.round = true, round
			return j.chunk
		}
	}
	return nil
}

// back is told what the handler did with it.
func (q *sinkQueue) back(c *forward.Chunk, err error) {
	q.mu.Lock()
	i := slices.IndexFunc(q.jobs, func(j *job) bool { return j.chunk == c && j.offered })
	if i < 0 { // Close gave it up
		q.mu.Unlock()
		return
	}
	j := q.jobs[i]
	j.offered = false
	if err == nil {
		j.taken = true
		q.jobs = slices.Delete(q.jobs, i, i+1)
	}
	q.mu.Unlock()
	if err == nil {
		j.done(Result{HandedOver: true, MaybeRepeated: j.begun || j.repeated})
	}
	q.wakeWriter()
}

// acquire takes the lease. It reports false if it cannot be had any more.
func (q *sinkQueue) acquire() bool {
	q.lease <- struct{}{}
	if q.gone.Load() {
		q.give()
		return false
	}
	return true
}

func (q *sinkQueue) give() { <-q.lease }
