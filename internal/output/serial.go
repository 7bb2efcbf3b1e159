// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// A Deliverer delivers one chunk, which is its own to keep, and returns when the other side has it.
// It is called for one chunk at a time, in order. refused are entries that the other side refuses,
// however often they are sent; the others were delivered. After an error the chunk comes again,
// first: of what the error left delivered the other side may have it twice. It returns when ctx
// ends.
type Deliverer func(ctx context.Context, c *forward.Chunk) (refused []Rejected, err error)

// NewSerial returns an Output that hands chunks to a function, one after another, and tries again
// after errors, with pauses of backoff to maxPause that double. At 0 they are 100 ms and 10 s. A
// call that ignores ctx is left behind by Close. The name is for errors.
func NewSerial(name string, deliver Deliverer, t *Trip, backoff, maxPause time.Duration) Output {
	s := &serial{deliver: deliver}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.sinkQueue = newQueue(name, s, t, backoff, maxPause)
	s.together = 1
	return s
}

// serial is a queue and its sink.
type serial struct {
	*sinkQueue
	deliver Deliverer
	ctx     context.Context // of calls of deliver
	cancel  context.CancelFunc
}

// Close implements Output. What is being delivered may come again.
func (s *serial) Close(ctx context.Context) error {
	s.cancel()
	return s.sinkQueue.Close(ctx)
}

// write delivers the one job.
func (s *serial) write(jobs []*job, _ bool) ([]byte, error) {
	j := jobs[0]
	if !s.acquire() {
		return nil, errGone
	}
	c := j.chunk.Clone()                // Close may leave the call behind
	j.begun, j.repeated = true, j.begun // it may be there in part
	s.give()
	refused, err := s.deliver(s.ctx, c)
	if s.ctx.Err() != nil && err != nil {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	j.rejected = refused
	return nil, nil
}

func (s *serial) flush() error { return nil }

func (s *serial) drop() {}

func (s *serial) tick() bool { return false }

func (s *serial) close() error { return nil }
