// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// grace is how long Close waits when its time is up, for what does not last: for the lease, and for
// a writer that has nothing to write and needs only hear of the end.
const grace = time.Second

// Close implements Output.
func (q *sinkQueue) Close(ctx context.Context) error {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	started, idle := q.started, len(q.jobs)+len(q.flushes) == 0
	q.mu.Unlock()
	if !first {
		select {
		case <-q.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return q.outcome()
	}
	close(q.closing)
	errs := []error{q.brk.close(ctx)}
	if !started {
		close(q.exited)
		errs = append(errs, q.sink.close())
	}
	if !q.ended(ctx, idle) {
		q.gone.Store(true) // first: a process that was stopped for a while finds the time of grace over
		select {
		case q.lease <- struct{}{}:
			q.give()
		case <-time.After(grace):
		}
		errs = append(errs, fmt.Errorf("output: %s: %w: a write is still under way: %w", q.name, ErrLeft,
			context.Cause(ctx)))
	}
	q.mu.Lock()
	left, flushes := q.jobs, q.flushes
	q.jobs, q.flushes = nil, nil
	q.result = errors.Join(append(errs, q.result)...)
	q.mu.Unlock()
	for _, j := range left {
		j.done(Result{Err: ErrClosed})
	}
	for _, w := range flushes {
		w.end(ErrClosed)
	}
	close(q.over)
	return q.outcome()
}

// ended waits for the writer's end.
func (q *sinkQueue) ended(ctx context.Context, idle bool) bool {
	select {
	case <-q.exited:
		return true
	case <-ctx.Done():
	}
	if !idle {
		return false
	}
	select {
	case <-q.exited:
		return true
	case <-time.After(grace):
		return false
	}
}

func (q *sinkQueue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

func (q *sinkQueue) outcome() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.result
}
