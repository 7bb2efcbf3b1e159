// SPDX-License-Identifier: Apache-2.0

// Package kafka is an output of the collector: it writes events to a topic of Apache Kafka.
//
//	kafka://b1:9092,b2:9092/topic?key={user.id}
//
//	chunk ──► records, one an event ──► franz-go: batches, idempotent, in order ──► brokers
//	            all of a chunk share one slab                 │
//	done   ◄── when the brokers have acked the last one ◄─────┘
//
// # Promises
//
// A chunk is done when every in-sync replica has each of its events. What the brokers do not take
// now is held and sent again, in the order of the calls: events of one key stay in order. A topic
// that is missing is waited for. An event that can never be taken, because it is too large, is
// refused by itself, and the others of its chunk are written.
//
// Not promised: once. franz-go's producer drops the repeats of its own sending again. But what was
// in flight when the collector was killed is sent again by the next process, and a consumer sees it
// twice, under the same id in the header spillway-id.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// Kind is the collector.OutputKind of kafka:// URLs.
func Kind(u *collector.URL, p *collector.Params) (func(*collector.OutputEnv) (collector.Output, error), error) {
	s, err := read(u, p)
	if err != nil {
		return nil, err
	}
	return func(env *collector.OutputEnv) (collector.Output, error) { return open(s, env) }, nil
}

// output is a topic.
type output struct {
	settings *settings
	env      *collector.OutputEnv
	client   *kgo.Client
	watching sync.WaitGroup
	stop     context.CancelFunc
	closed   chan struct{} // when the client is closed and all chunks are done
	closing  sync.Once

	submitting sync.Mutex // over encoder, and over the order of records
	encoder    *lines.Encoder
	slabs      sync.Pool // of *slab

	pending sync.WaitGroup // chunks
	waiting atomic.Int64   // the same, as a number
	acked   atomic.Int64   // records
	kept    atomic.Int64   // when the cursor was last asked for, in Unix nanoseconds
	shut    atomic.Bool
}

// watchEvery is how often somebody looks whether anything moves.
const watchEvery = 5 * time.Second

func open(s *settings, env *collector.OutputEnv) (*output, error) {
	options, err := s.options()
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	o := &output{settings: s, env: env, closed: make(chan struct{})}
	if o.encoder, err = lines.NewEncoder(&s.line); err != nil {
		return nil, err
	}
	o.slabs.New = func() any { return new(slab) }
	if o.client, err = kgo.NewClient(append(options, kgo.WithHooks(hooks{o}))...); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	var ctx context.Context
	ctx, o.stop = context.WithCancel(context.Background())
	o.watching.Go(func() { o.watch(ctx) })
	return o, nil
}

// A slab is the records of a chunk and their bytes.
type slab struct {
	o       *output
	done    func(collector.Result)
	left    atomic.Int64 // records that are with the client, and one while the chunk is being made
	records []kgo.Record
	headers []kgo.RecordHeader
	entries []int // of each record, its index in the chunk
	bytes   []byte

	mu       sync.Mutex
	rejected []collector.Rejected
	err      error
}

// slabKeeps is the largest slab that is kept for another chunk.
const slabKeeps = 4 << 20

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
	s := o.slabs.Get().(*slab)
	s.o, s.done = o, done
	s.fill(c)
	s.left.Store(int64(len(s.records)) + 1)
	for i := range s.records {
		o.client.Produce(context.Background(), &s.records[i], s.promise)
	}
	s.one()
}

// fill makes a record of each event.
func (s *slab) fill(c *forward.Chunk) {
	o := s.o
	now := time.Now()
	late := 0
	type span struct{ key, value, id int } // where these end in bytes
	var spans []span
	b := s.bytes[:0]
	entries := forward.ReadEntries(c.Entries)
	index := 0
	for e, ok := entries.Next(); ok; e, ok = entries.Next() {
		r := kgo.Record{Timestamp: now}
		if o.settings.stamp {
			if at := time.Unix(e.Sec, int64(e.Nsec)); at.After(now.Add(-oldest)) && at.Before(now.Add(newest)) {
				r.Timestamp = at
			} else {
				late++
			}
		}
		var at span
		b = o.settings.key.append(b, c.Tag, e.Record)
		at.key = len(b)
		if o.settings.msgpack {
			b = append(b, e.Record...)
		} else {
			b = o.encoder.AppendLine(b, c.Tag, e)
			b = b[:len(b)-1] // the newline
		}
		at.value = len(b)
		if o.settings.header != "" {
			b = append(append(b, c.ID...), ':')
			b = strconv.AppendInt(b, int64(index), 10)
		}
		at.id = len(b)
		spans, s.records, s.entries = append(spans, at), append(s.records, r), append(s.entries, index)
		index++
	}
	if err := entries.Err(); err != nil {
		for ; index < c.Events; index++ {
			s.rejected = append(s.rejected, collector.Rejected{Entry: index, Err: err})
		}
	}
	s.bytes = b
	if o.settings.header != "" {
		s.headers = append(s.headers[:0], make([]kgo.RecordHeader, len(s.records))...)
	}
	from := 0
	for i := range s.records {
		r, at := &s.records[i], spans[i]
		if at.key > from {
			r.Key = b[from:at.key:at.key]
		}
		r.Value = b[at.key:at.value:at.value]
		if o.settings.header != "" {
			s.headers[i] = kgo.RecordHeader{Key: o.settings.header, Value: b[at.value:at.id:at.id]}
			r.Headers = s.headers[i : i+1 : i+1]
		}
		from = at.id
	}
	if late > 0 {
		o.env.Log.Warn("events are too old or too new for their time to be the record's; it is the time of sending",
			"topic", o.settings.topic, "events", late)
	}
}

// Times of events that may be those of records: Kafka deletes a segment by its newest record, and
// refuses what is far ahead.
const (
	oldest = 7 * 24 * time.Hour
	newest = time.Hour
)

// promise is told what became of a record.
func (s *slab) promise(r *kgo.Record, err error) {
	if err != nil {
		s.failed(r, err)
	}
	s.one()
}

func (s *slab) failed(r *kgo.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isRefusal(err) {
		if s.err == nil {
			s.err = err
		}
		return
	}
	for i := range s.records {
		if &s.records[i] == r {
			err = fmt.Errorf("topic %s: %w", s.o.settings.topic, err)
			s.rejected = append(s.rejected, collector.Rejected{Entry: s.entries[i], Err: err})
			return
		}
	}
}

// isRefusal says that a record is refused however often it is sent.
func isRefusal(err error) bool {
	for _, forGood := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord} {
		if errors.Is(err, forGood) {
			return true
		}
	}
	return false
}

// one counts a record, and ends the chunk with the last.
func (s *slab) one() {
	if s.left.Add(-1) > 0 {
		return
	}
	o, done := s.o, s.done
	result := collector.Result{Rejected: s.rejected, Bytes: int64(len(s.bytes)), Soon: o.soon()}
	switch err := s.err; {
	case err == nil:
		o.env.Works()
	case o.shut.Load():
		result = collector.Result{Err: collector.ErrClosed}
	default: // the client goes on with later records: only another one keeps their order
		result = collector.Result{Err: fmt.Errorf("kafka: topic %s: %w; %w", o.settings.topic, err, collector.ErrReopen)}
	}
	o.acked.Add(int64(len(s.records)))
	clear(s.records)
	clear(s.headers)
	s.o, s.done, s.rejected, s.err = nil, nil, nil, nil
	s.records, s.entries = s.records[:0], s.entries[:0]
	if result.Err == nil && cap(s.bytes) <= slabKeeps { // a client that was closed may read it yet
		o.slabs.Put(s)
	}
	done(result)
	o.waiting.Add(-1)
	o.pending.Done()
}

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

// watch says what is wrong while nothing is acked: the client itself tries again and says nothing.
func (o *output) watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	before := int64(-1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		acked := o.acked.Load()
		if o.waiting.Load() > 0 && acked == before {
			if err := o.ask(ctx); ctx.Err() == nil {
				o.env.Failed(err, watchEvery)
			}
		}
		before = acked
	}
}

// ask asks the brokers about the topic, and returns why nothing may be acked.
func (o *output) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	topic := o.settings.topic
	req := kmsg.NewPtrMetadataRequest()
	one := kmsg.NewMetadataRequestTopic()
	one.Topic = &topic
	req.Topics = append(req.Topics, one)
	resp, err := req.RequestWith(ctx, o.client)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("kafka: topic %s: %w", topic, err)
		}
		for j := range t.Partitions {
			if err := kerr.ErrorForCode(t.Partitions[j].ErrorCode); err != nil {
				return fmt.Errorf("kafka: topic %s, partition %d: %w", topic, t.Partitions[j].Partition, err)
			}
		}
	}
	return fmt.Errorf("kafka: topic %s: the brokers ack nothing", topic)
}

// hooks are told what happens to connections.
type hooks struct{ o *output }

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (h hooks) OnBrokerConnect(b kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if errors.Is(err, io.EOF) { // some brokers say no more
		err = fmt.Errorf("it hangs up while the connection is made, perhaps for TLS, user or password: %w", err)
	}
	if err != nil && !h.o.shut.Load() {
		h.o.env.Failed(fmt.Errorf("kafka: broker %s: %w", net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), err), 0)
	}
}
