// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// grace is how long Close waits for the lease when its time is up: nobody has it for long.
const grace = time.Second

// Close implements Output.
func (q *sinkQueue) Close(ctx context.Context) error {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	started := q.started
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
	select {
	case <-q.exited:
	case <-ctx.Done():
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
