// SPDX-License-Identifier: Apache-2.0

// Package kafka is an output of the collector: it writes events to a topic of Apache Kafka.
//
//	kafka://b1:9092,b2:9092/topic?key={user.id}
//
//	chunk ──► records, one an event ──► franz-go: batches, idempotent, in order ──► brokers
//	            all of a chunk share one slab                 │
//	done   ◄── when the brokers have acked the last one ◄─────┘
//
// With exactly_once=true the records of many chunks and the cursor behind them are one transaction:
//
//	SubmitAt ──► open transaction: records … │ cursor │ flush │ commit ──► done, of all of them
//	        └──► waits for the next one      └─ in the topic spillway-cursors
//
// # Promises
//
// A chunk is done when every in-sync replica has each of its events. What the brokers do not take
// now is held and sent again, in the order of the calls: events of one key stay in order. A topic
// that is missing is waited for. An event that can never be taken, because it is too large, is
// refused by itself, and the others of its chunk are written.
//
// In a transaction each event is there once, for consumers that read what is committed, whatever is
// killed. The collector asks the topic of cursors where it stands, and no file of its own.
//
// Not promised: once without transactions. franz-go's producer drops the repeats of its own sending
// again. But what was in flight when the collector was killed is sent again by the next process,
// and a consumer sees it twice, under the same id in the header spillway-id.
package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
)

// window is what is on its way to the brokers, as entries. With 4 MiB the client runs dry while the
// brokers have it: that takes a tenth of the pace.
const window = 8 << 20

// Kind is the collector.OutputKind of kafka:// URLs.
func Kind(u *collector.URL, p *collector.Params) (*collector.OutputPlan, error) {
	s, err := read(u, p)
	if err != nil {
		return nil, err
	}
	plan := &collector.OutputPlan{Reach: s.reach, Transactional: s.once, Bytes: window}
	if s.once {
		me := newProcess()
		plan.Open = func(env *collector.OutputEnv) (collector.Output, error) { return openOnce(s, env, me) }
	} else {
		plan.Open = func(env *collector.OutputEnv) (collector.Output, error) { return open(s, env) }
	}
	return plan, nil
}

// output is a topic, at least once.
type output struct {
	producer
	closed  chan struct{} // when the client is closed and all chunks are done
	closing sync.Once

	submitting sync.Mutex     // over the order of records
	pending    sync.WaitGroup // chunks
	kept       atomic.Int64   // when the cursor was last asked for, in Unix nanoseconds
}

func open(s *settings, env *collector.OutputEnv) (*output, error) {
	o := &output{closed: make(chan struct{})}
	if err := o.start(s, env); err != nil {
		return nil, err
	}
	return o, nil
}

// Submit implements collector.Output.
func (o *output) Submit(c *forward.Chunk, done func(collector.Result)) {
	o.submitting.Lock()
	defer o.submitting.Unlock()
	if o.shut.Load() {
		done(collector.Result{Err: collector.ErrClosed})
		return
	}
	o.pending.Add(1)
	o.waiting.Add(1)
	o.written.Store(false)
	s := o.fill(c)
	s.done = done
	s.left.Store(int64(len(s.records)) + 1)
	promise := func(r *kgo.Record, err error) {
		if err != nil {
			s.failed(r, err)
		}
		o.one(s)
	}
	for i := range s.records {
		o.client.Produce(context.Background(), &s.records[i], promise)
	}
	o.one(s)
}

// one counts a record, and ends the chunk with the last.
func (o *output) one(s *slab) {
	if s.left.Add(-1) > 0 {
		return
	}
	done := s.done
	var result collector.Result
	switch err := s.err; {
	case err == nil:
		result = o.result(s)
		result.Soon = o.soon()
		o.env.Works()
	case o.shut.Load():
		result = collector.Result{Err: collector.ErrClosed}
	default: // the client goes on with later records: only another one keeps their order
		result = collector.Result{Err: fmt.Errorf("kafka: %w; %w", err, collector.ErrReopen)}
	}
	o.ack(s)
	if result.Err == nil { // a client that was closed may read it yet
		o.recycle(s)
	}
	done(result)
	o.waiting.Add(-1)
	o.pending.Done()
}

// Waiting implements collector.Waiter. The client does not say when the last record of a chunk has
// left. But what could end this process is over when the first ones leave: the chunk was rendered,
// and those were compressed.
func (o *output) Waiting() bool { return o.waiting.Load() > 0 && o.written.Load() }

// keepEvery is how often the cursor is kept: what comes after it is written again after a kill.
const keepEvery = 100 * time.Millisecond

// soon says that the cursor is to be kept now.
func (o *output) soon() bool {
	now, before := time.Now().UnixNano(), o.kept.Load()
	return now-before >= int64(keepEvery) && o.kept.CompareAndSwap(before, now)
}

// Flush implements collector.Output.
func (o *output) Flush(ctx context.Context) error {
	if err := o.client.Flush(ctx); err != nil {
		return fmt.Errorf("kafka: topic %s: %w", o.settings.topic, err)
	}
	return nil
}

// Close implements collector.Output.
func (o *output) Close(ctx context.Context) error {
	o.closing.Do(func() {
		o.submitting.Lock()
		o.shut.Store(true)
		o.submitting.Unlock()
		o.stop()
		go func() {
			defer close(o.closed)
			o.client.Close() // which ends what is buffered
			o.pending.Wait()
			o.watching.Wait()
		}()
	})
	select {
	case <-o.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kafka: topic %s: connections are %w", o.settings.topic, collector.ErrLeft)
	}
}
