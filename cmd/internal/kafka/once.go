// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
)

// How this file is organised. One goroutine makes one transaction after another. What is submitted
// while one is open belongs to it; what comes while it ends waits for the next.
//
//	         begin            every, half a window, or Flush          done, of all
//	resting ───────► open ───────────────────────────────► ending ──────────────────► resting
//	                                                          │ an entry is refused:
//	                                                          └ abort, dead letter, the rest again
//
// Whatever else goes wrong ends this output: it is unknown then what the brokers have. The caller
// opens another one, which asks them (Restore).

// once is a topic, exactly once.
type once struct {
	producer
	me      *claim
	key     []byte // of the cursor, and the transactional id
	cursors cursorTopic
	refuse  collector.Refuse

	ctx    context.Context // of the transactions
	cancel context.CancelFunc
	over   chan struct{} // when the goroutine is; nil: it was not started
	closed chan struct{}
	ending sync.Once
	wake   chan struct{} // there is something to do for the goroutine

	mu     sync.Mutex
	open   bool    // a transaction takes records
	batch  []*slab // of it
	next   []*slab // of the one after it
	bytes  int64   // of the batch, as the caller counts
	hurry  bool    // something waits
	broken error   // why this output is over
	idle   []chan struct{}
}

func openOnce(s *settings, env *collector.OutputEnv, me *claim) (*once, error) {
	if env.Identity == "" {
		return nil, errors.New("kafka: exactly_once: the data directory has no identity, for the disk is full")
	}
	if me.lost != nil {
		return nil, me.lost
	}
	o := &once{
		me: me, key: []byte("spillway-" + env.Identity), closed: make(chan struct{}),
		wake: make(chan struct{}, 1),
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	if err := o.start(s, env, kgo.TransactionalID(string(o.key)), kgo.TransactionTimeout(s.txn.timeout),
		kgo.RecordPartitioner(cursorFirst{s.partitioner(), s.txn.cursors})); err != nil {
		return nil, err
	}
	o.cursors = cursorTopic{client: o.client, topic: s.txn.cursors, create: s.create}
	return o, nil
}

// cursorFirst puts cursors into their partition, and all else where it belongs.
type cursorFirst struct {
	kgo.Partitioner
	cursors string
}

// ForTopic implements kgo.Partitioner.
func (p cursorFirst) ForTopic(topic string) kgo.TopicPartitioner {
	if topic == p.cursors {
		return kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
			return func(*kgo.Record, int) int { return cursorPartition }
		}).ForTopic(topic)
	}
	return p.Partitioner.ForTopic(topic)
}

// Submit implements collector.Output. The collector calls SubmitAt.
func (o *once) Submit(_ *forward.Chunk, done func(collector.Result)) {
	done(collector.Result{Err: errors.New("kafka: exactly_once: a chunk without its position")})
}

// SubmitAt implements collector.Transactional.
func (o *once) SubmitAt(token []byte, c *forward.Chunk, done func(collector.Result)) {
	o.mu.Lock()
	if err := o.broken; err != nil {
		o.mu.Unlock()
		done(collector.Result{Err: err})
		return
	}
	defer o.mu.Unlock()
	o.waiting.Add(1)
	s := o.fill(c)
	s.done, s.chunk, s.token = done, c, append(s.token[:0], token...)
	if o.open {
		o.batch = append(o.batch, s)
		o.bytes += int64(len(c.Entries))
		o.produce(s)
	} else {
		o.next = append(o.next, s)
	}
	if !o.open || o.isFullLocked() {
		o.notify()
	}
}

// isFullLocked says that the transaction is to end: half of what the caller gives is in it.
func (o *once) isFullLocked() bool {
	return o.hurry || len(o.batch) >= max(o.env.Chunks/2, 1) || o.bytes >= max(o.env.Bytes/2, 1)
}

// notify has the goroutine look.
func (o *once) notify() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// produce hands the records of a slab to the client, in order. Those that are refused are left out.
func (o *once) produce(s *slab) {
	refused := 0 // of s.rejected, which is in the order of entries when records are sent again
	promise := func(r *kgo.Record, err error) {
		if err != nil {
			s.failed(r, err)
		}
	}
	for i := range s.records {
		for refused < s.given && s.rejected[refused].Entry < s.entries[i] {
			refused++ // no record was made of it
		}
		if refused < s.given && s.rejected[refused].Entry == s.entries[i] {
			continue
		}
		o.client.Produce(context.Background(), &s.records[i], promise)
	}
}

// run makes transactions until one fails.
func (o *once) run() {
	defer close(o.over)
	err := error(nil)
	for err == nil {
		if !o.await(nil) {
			err = collector.ErrClosed
			break
		}
		err = o.transact()
	}
	if o.shut.Load() {
		err = collector.ErrClosed
	} else {
		err = again(fmt.Errorf("kafka: topic %s: %w", o.settings.topic, err))
	}
	o.mu.Lock()
	o.broken, o.open = err, false
	left := slices.Concat(o.batch, o.next)
	o.batch, o.next = nil, nil
	o.releaseLocked()
	o.mu.Unlock()
	for _, s := range left {
		o.waiting.Add(-1)
		s.done(collector.Result{Err: err})
	}
}

// await waits until there is something for a transaction, or for the end of the one that is open.
// It reports false when the output closes.
func (o *once) await(end <-chan time.Time) bool {
	for {
		o.mu.Lock()
		ready := len(o.next) > 0
		if o.open {
			ready = o.isFullLocked()
		}
		o.mu.Unlock()
		if o.shut.Load() {
			return false
		}
		if ready {
			return true
		}
		select {
		case <-o.wake:
		case <-end:
			return true
		case <-o.ctx.Done():
			return false
		}
	}
}

// transact makes one transaction.
func (o *once) transact() error {
	if err := o.client.BeginTransaction(); err != nil {
		return err
	}
	begin := time.Now()
	o.mu.Lock()
	o.open, o.batch, o.next, o.bytes = true, o.next, nil, 0
	for _, s := range o.batch {
		o.bytes += int64(len(s.chunk.Entries))
		o.produce(s)
	}
	o.mu.Unlock()
	every := time.NewTimer(o.settings.txn.every)
	defer every.Stop()
	if !o.await(every.C) {
		return collector.ErrClosed
	}
	o.mu.Lock()
	o.open = false
	o.mu.Unlock()
	if err := o.end(begin); err != nil {
		return err
	}
	o.env.Works()
	o.mu.Lock()
	batch := o.batch
	o.batch = nil
	if len(o.next) == 0 {
		o.releaseLocked()
	}
	o.mu.Unlock()
	for _, s := range batch {
		o.waiting.Add(-1)
		o.ack(s)
		done, result := s.done, o.result(s)
		o.recycle(s)
		done(result)
	}
	return nil
}

// end puts the cursor behind what is in the transaction, and commits both. What is refused comes
// first: it is a dead letter before the cursor passes it. The batch is run's own meanwhile.
func (o *once) end(begin time.Time) error {
	for {
		// Before the brokers give it up: on their side that looks as if another one had taken over.
		ctx, cancel := context.WithDeadline(o.ctx, begin.Add(o.settings.txn.timeout*3/4))
		defer cancel()
		var place error // of the cursor
		o.client.Produce(context.Background(), o.record(o.batch[len(o.batch)-1].token),
			func(_ *kgo.Record, err error) { place = err })
		if err := o.client.Flush(ctx); err != nil {
			if o.ctx.Err() == nil {
				err = fmt.Errorf("the brokers have not taken a transaction in %v, which is given up: %w",
					time.Since(begin).Round(time.Second), err)
			}
			return err
		}
		refused, err := o.rejected()
		if err != nil || place != nil {
			return fenced(errors.Join(err, place))
		}
		if !refused {
			if err := o.letters(ctx); err != nil { // of what no record was made of
				return err
			}
			return fenced(o.client.EndTransaction(ctx, kgo.TryCommit))
		}
		if err := o.client.EndTransaction(ctx, kgo.TryAbort); err != nil {
			return fenced(err)
		}
		if err := o.letters(ctx); err != nil {
			return err
		}
		begin = time.Now()
		if err := o.client.BeginTransaction(); err != nil {
			return err
		}
		for _, s := range o.batch {
			o.produce(s)
		}
	}
}

// fenced explains an error that has two reasons.
func fenced(err error) error {
	if errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) {
		return fmt.Errorf("another process writes as this one, or the brokers have ended a transaction that took too long: %w", err)
	}
	return err
}

// again says that an error may pass.
func again(err error) error { return fmt.Errorf("%w; %w", err, collector.ErrReopen) }

// record is the cursor's record.
func (o *once) record(token []byte) *kgo.Record {
	// Never fails.
	b, _ := json.Marshal(&cursor{Position: hex.EncodeToString(token), Output: o.env.Identity, process: o.me.process})
	return &kgo.Record{Topic: o.cursors.topic, Key: o.key, Value: b}
}

// rejected says whether records of the batch were refused that are no dead letters yet. Any other
// error of a record is returned.
func (o *once) rejected() (some bool, err error) {
	for _, s := range o.batch {
		s.mu.Lock()
		some = some || len(s.rejected) > max(s.given, s.unmade)
		if err == nil {
			err = s.err
		}
		s.mu.Unlock()
	}
	return some, err
}

// letters makes dead letters of what was refused.
func (o *once) letters(ctx context.Context) error {
	for _, s := range o.batch {
		if len(s.rejected) == s.given {
			continue
		}
		if err := o.refuse(ctx, s.token, s.chunk, s.rejected[s.given:]); err != nil {
			return fmt.Errorf("dead letters: %w", err)
		}
		slices.SortFunc(s.rejected, func(a, b collector.Rejected) int { return a.Entry - b.Entry })
		s.given = len(s.rejected)
	}
	return nil
}

// releaseLocked ends the waits for an idle output.
func (o *once) releaseLocked() {
	o.hurry = false
	for _, c := range o.idle {
		close(c)
	}
	o.idle = nil
}

// Flush implements collector.Output.
func (o *once) Flush(ctx context.Context) error {
	o.mu.Lock()
	if err := o.broken; err != nil || len(o.batch)+len(o.next) == 0 {
		o.mu.Unlock()
		return err
	}
	idle := make(chan struct{})
	o.idle, o.hurry = append(o.idle, idle), true
	o.mu.Unlock()
	o.notify()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeGrace is how long a transaction that ends may take yet when the output closes, and its abort
// after that.
const closeGrace = 300 * time.Millisecond

// Close implements collector.Output. A transaction that is open is aborted, so that consumers need
// not wait until the brokers end it.
func (o *once) Close(ctx context.Context) error {
	o.ending.Do(func() {
		o.shut.Store(true)
		o.notify()
		o.stop()
		go func() {
			defer close(o.closed)
			defer o.cancel()
			if o.over != nil {
				defer time.AfterFunc(closeGrace, o.cancel).Stop()
				<-o.over
				abort, cancel := context.WithTimeout(context.Background(), closeGrace)
				defer cancel()
				if o.client.AbortBufferedRecords(abort) == nil {
					_ = o.client.EndTransaction(abort, kgo.TryAbort) // else the brokers do it, later
				}
			}
			o.client.Close()
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
