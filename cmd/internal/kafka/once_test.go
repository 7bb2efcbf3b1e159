// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
)

// A journal is what a collector has and hands on: chunks behind tokens. Its letters are what was
// refused.
type journal struct {
	t      *testing.T
	chunks []*forward.Chunk

	mu      sync.Mutex
	letters map[string]int // by chunk and entry
}

func journalOf(t *testing.T, n, each int) *journal {
	j := &journal{t: t, letters: map[string]int{}}
	for i := range n {
		j.chunks = append(j.chunks, chunkOf(fmt.Sprint("id", i), i*each, each))
	}
	return j
}

// A life is a process that delivers a journal.
type life struct {
	*journal
	open func(*collector.OutputEnv) (collector.Output, error)
	out  collector.Transactional
}

// live begins a life; the URL's cluster has to be there.
func (j *journal) live(url string) *life {
	open, err := plan(url)
	must(j.t, err)
	return &life{journal: j, open: open}
}

// begin opens the output and returns where it stands.
func (l *life) begin(ctx context.Context) (next int, err error) {
	o, err := l.open(&collector.OutputEnv{
		Name: "bus", Log: slog.New(slog.DiscardHandler), Identity: "0123-bus", Chunks: 8, Bytes: 1 << 20,
		Failed: func(error, time.Duration) {}, Works: func() {},
	})
	if err != nil {
		return 0, err
	}
	l.out = o.(collector.Transactional)
	token, ok, err := l.out.Restore(ctx, func(_ context.Context, token []byte, c *forward.Chunk,
		rejected []collector.Rejected,
	) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		n := binary.BigEndian.Uint64(token)
		if l.chunks[n] != c {
			l.t.Errorf("chunk %d is another one", n)
		}
		for _, r := range rejected {
			l.letters[fmt.Sprint(n, "/", r.Entry)]++
		}
		return nil
	})
	if err != nil || !ok {
		return 0, err
	}
	return int(binary.BigEndian.Uint64(token)) + 1, nil
}

func (l *life) end() {
	if l.out != nil {
		must(l.t, l.out.Close(within(l.t)))
	}
}

// submit hands over chunks, not more than eight at a time, and returns when all are done.
func (l *life) submit(from int) []collector.Result {
	results := make([]collector.Result, len(l.chunks)-from)
	room := make(chan struct{}, 8)
	for i := range results {
		select {
		case room <- struct{}{}:
		case <-time.After(patience):
			l.t.Fatal("no chunk is done")
		}
		l.out.SubmitAt(binary.BigEndian.AppendUint64(nil, uint64(from+i)), l.chunks[from+i], func(r collector.Result) {
			results[i] = r
			<-room
		})
	}
	for range cap(room) {
		select {
		case room <- struct{}{}:
		case <-time.After(patience):
			l.t.Fatal("not all chunks are done")
		}
	}
	return results
}

// deliver submits all chunks, and opens the output again when it says so. It returns how often it
// did.
func (l *life) deliver() (reopened int, err error) {
	for ; ; reopened++ {
		from, err := l.begin(within(l.t))
		if err == nil {
			for _, r := range l.submit(from) {
				err = errors.Join(err, r.Err)
			}
		}
		if err == nil || !errors.Is(err, collector.ErrReopen) {
			return reopened, err
		}
		l.end()
		<-time.After(10 * time.Millisecond)
	}
}

// committed reads n records of a topic that are committed.
func committed(t *testing.T, c *kfake.Cluster, topic string, n int) []*kgo.Record {
	t.Helper()
	return consume(t, c, topic, n, kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
}

const exactly = "&exactly_once=true&commit_every=20ms"

// TestOnce delivers a journal over several processes, each of which goes on where the one before it
// was killed, in the middle of a transaction or not.
func TestOnce(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("old=", old), func(t *testing.T) {
			var opts []kfake.Opt
			if old {
				opts = append(opts, kfake.MaxVersions(versions28()))
			}
			c := cluster(t, opts...)
			const n, each = 300, 10
			j := journalOf(t, n, each)
			url := "kafka://" + brokers(c) + "/logs?key={user.id}" + exactly
			for from := 0; from < n; {
				l := j.live(url)
				at, err := l.begin(within(t))
				must(t, err)
				if at < from {
					t.Fatalf("it stands at %d, and was told that %d is done", at, from)
				}
				from = at
				var done atomic.Int64
				count := min(1+rand.IntN(60), n-at)
				var all sync.WaitGroup
				for i := range count {
					all.Add(1)
					l.out.SubmitAt(binary.BigEndian.AppendUint64(nil, uint64(at+i)), j.chunks[at+i],
						func(r collector.Result) {
							if r.Err == nil {
								done.Add(1)
							}
							all.Done()
						})
				}
				if rand.IntN(2) == 0 {
					must(t, l.out.Flush(within(t)))
				}
				kill(l.out.(*once))
				all.Wait()
				from += int(done.Load())
			}
			wantOrder(t, committed(t, c, "logs", n*each), n*each)
		})
	}
}

// kill ends an output as the end of its process does: nothing is aborted.
func kill(o *once) {
	o.shut.Store(true)
	o.cancel()
	o.stop()
	o.client.Close()
	<-o.over
	o.ending.Do(func() { close(o.closed) })
}

// TestOnceFails has brokers hang up, and say of commits that they are another producer's, or
// nothing of use: each time the output asks where it stands.
func TestOnceFails(t *testing.T) {
	c := cluster(t)
	var produced, ended atomic.Int64
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, errors.New("hang up"), produced.Add(1)%40 == 0
	})
	c.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		n := ended.Add(1)
		if n%4 != 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ErrorCode = []int16{
			kerr.ProducerFenced.Code, kerr.UnknownServerError.Code,
			kerr.InvalidProducerEpoch.Code,
		}[n/4%3]
		return resp, nil, true
	})
	const n, each = 400, 10
	l := journalOf(t, n, each).live("kafka://" + brokers(c) + "/logs?key={user.id}" + exactly)
	reopened, err := l.deliver()
	must(t, err)
	l.end()
	t.Logf("opened again %d times", reopened)
	if reopened == 0 {
		t.Error("nothing failed")
	}
	wantOrder(t, committed(t, c, "logs", n*each), n*each)
}

// TestOnceLost: of two processes with one identity the younger one goes on, and the older one stops
// for good and names it.
func TestOnceLost(t *testing.T) {
	c := cluster(t)
	const n, each = 60, 10
	j := journalOf(t, n, each)
	url := "kafka://" + brokers(c) + "/logs?key={user.id}" + exactly
	older, younger := j.live(url), j.live(url)
	_, err := older.begin(within(t))
	must(t, err)
	var first sync.WaitGroup
	for i := range 20 {
		first.Add(1)
		older.out.SubmitAt(binary.BigEndian.AppendUint64(nil, uint64(i)), j.chunks[i], func(r collector.Result) {
			must(t, r.Err)
			first.Done()
		})
	}
	first.Wait()
	from, err := younger.begin(within(t))
	must(t, err)
	if from != 20 {
		t.Fatalf("it begins with chunk %d", from)
	}
	for _, r := range older.submit(from) {
		if !errors.Is(r.Err, collector.ErrReopen) || !strings.Contains(r.Err.Error(), "another process") {
			t.Fatalf("%v", r.Err)
		}
	}
	older.end()
	// It takes the producer away from the younger one, but not the output.
	_, err = older.deliver()
	if err == nil || errors.Is(err, collector.ErrReopen) ||
		!strings.Contains(err.Error(), "has taken this output over") {
		t.Fatalf("%v", err)
	}
	older.end()
	if _, again := older.begin(within(t)); !errors.Is(again, err) { // without a word to the brokers
		t.Errorf("%v", again)
	}
	for _, r := range younger.submit(from) {
		err = r.Err
	}
	if err != nil {
		younger.end()
		_, err = younger.deliver()
	}
	must(t, err)
	younger.end()
	wantOrder(t, committed(t, c, "logs", n*each), n*each)
}

// TestOnceRefused has events that are too large for the client, and a batch that is too large for a
// broker: they are dead letters, once each, before the cursor passes them.
func TestOnceRefused(t *testing.T) {
	c := cluster(t)
	var refuse atomic.Bool
	var entries atomic.Int64 // that the broker refused
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.ProduceRequest)
		isEvent := func(p kmsg.ProduceRequestTopicPartition) bool {
			return bytes.Contains(p.Records, []byte(`"tag":"app"`))
		}
		if !slices.ContainsFunc(r.Topics,
			func(t kmsg.ProduceRequestTopic) bool { return slices.ContainsFunc(t.Partitions, isEvent) }) ||
			!refuse.CompareAndSwap(true, false) {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.ProduceResponse)
		for i := range r.Topics {
			topic := kmsg.NewProduceResponseTopic()
			topic.Topic, topic.TopicID = r.Topics[i].Topic, r.Topics[i].TopicID
			for j := range r.Topics[i].Partitions {
				of := r.Topics[i].Partitions[j]
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode = of.Partition, kerr.NotLeaderForPartition.Code // the cursor goes again
				if isEvent(of) {
					p.ErrorCode = kerr.MessageTooLarge.Code
					var batch kmsg.RecordBatch
					must(t, batch.ReadFrom(of.Records))
					entries.Add(int64(batch.NumRecords))
				}
				topic.Partitions = append(topic.Partitions, p)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	const n, each = 30, 20
	j := journalOf(t, n, each)
	for _, i := range []int{3, 4, 17} {
		ch := j.chunks[i]
		ch.Entries = append(event(nil, "u0", 999_999, 2<<20), ch.Entries...)
		ch.Events++
	}
	l := j.live("kafka://" + brokers(c) + "/logs?key={user.id}&compress=none" + exactly)
	from, err := l.begin(within(t))
	must(t, err)
	rejected := 0
	for i, r := range l.submit(from) {
		if r.Err != nil {
			t.Fatalf("chunk %d: %v", i, r.Err)
		}
		rejected += len(r.Rejected)
	}
	if rejected != 3 || len(l.letters) != 3 || l.letters["3/0"] != 1 || l.letters["4/0"] != 1 ||
		l.letters["17/0"] != 1 {
		t.Errorf("%d rejected, letters %v", rejected, l.letters)
	}
	wantOrder(t, committed(t, c, "logs", n*each), n*each)
	refuse.Store(true)
	l.end()

	// What is refused once more is another process's matter: its own journal begins behind.
	k := journalOf(t, n, each)
	k.chunks = append(k.chunks, chunkOf("more", n*each, each))
	m := k.live("kafka://" + brokers(c) + "/logs?key={user.id}&compress=none" + exactly)
	from, err = m.begin(within(t))
	must(t, err)
	if from != n {
		t.Fatalf("it begins with chunk %d", from)
	}
	r := m.submit(from)[0]
	if r.Err != nil || len(r.Rejected) != int(entries.Load()) || len(m.letters) != len(r.Rejected) ||
		len(r.Rejected) == 0 {
		t.Errorf("%+v, %d letters; the broker refused %d", r, len(m.letters), entries.Load())
	}
	m.end()
	committed(t, c, "logs", n*each+each-len(r.Rejected))
}

// TestOnceMissing: without a broker the output says so in time, and that it may be tried again; a
// topic whose cursors expire is refused, and so is a data directory without an identity.
func TestOnceMissing(t *testing.T) {
	j := journalOf(t, 1, 1)
	l := j.live("kafka://127.0.0.1:1/logs?exactly_once=true")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := l.begin(ctx); !errors.Is(err, collector.ErrReopen) ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
	l.end()

	c := cluster(t, kfake.SeedTopics(3, "expiring"))
	l = j.live("kafka://" + brokers(c) + "/logs?cursor_topic=expiring" + exactly)
	if _, err := l.begin(within(t)); !errors.Is(err, collector.ErrReopen) ||
		!strings.Contains(err.Error(), "cursors would expire") {
		t.Errorf("%v", err)
	}
	l.end()
	l = j.live("kafka://" + brokers(c) + "/logs?cursor_topic=elsewhere&create=false" + exactly)
	if _, err := l.begin(within(t)); !errors.Is(err, collector.ErrReopen) ||
		!strings.Contains(err.Error(), "UNKNOWN_TOPIC_OR_PARTITION") {
		t.Errorf("%v", err)
	}
	l.end()
	open, err := plan("kafka://b/logs?exactly_once=true")
	must(t, err)
	if _, err := open(&collector.OutputEnv{}); err == nil || !strings.Contains(err.Error(), "has no identity") {
		t.Errorf("%v", err)
	}
}

// TestOnceTimeout asks for more than the brokers allow: that never gets better.
func TestOnceTimeout(t *testing.T) {
	c := cluster(t)
	c.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = kerr.InvalidTransactionTimeout.Code
		return resp, nil, true
	})
	l := journalOf(t, 1, 1).live("kafka://" + brokers(c) + "/logs?transaction_timeout=1h" + exactly)
	if _, err := l.begin(within(t)); errors.Is(err, collector.ErrReopen) ||
		!strings.Contains(fmt.Sprint(err), "transaction.max.timeout.ms") {
		t.Errorf("%v", err)
	}
	l.end()
}

// TestOnceOthers: a cursor that was committed before another collector's transaction began is read
// behind it, once that has ended.
func TestOnceOthers(t *testing.T) {
	c := cluster(t)
	j := journalOf(t, 20, 5)
	url := "kafka://" + brokers(c) + "/logs?key={user.id}" + exactly
	l := j.live(url)
	from, err := l.begin(within(t))
	must(t, err)
	other, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID("other"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, err)
	defer other.Close()
	must(t, other.BeginTransaction())
	must(t, other.ProduceSync(t.Context(), &kgo.Record{
		Topic: "spillway-cursors", Key: []byte("other"),
		Value: []byte("{}"),
	}).FirstErr())
	for _, r := range l.submit(from) {
		must(t, r.Err)
	}
	l.end()
	l = j.live(url)
	type began struct {
		at  int
		err error
	}
	stands := make(chan began)
	go func() {
		at, err := l.begin(within(t))
		stands <- began{at, err}
	}()
	select {
	case b := <-stands:
		t.Fatalf("it does not wait: %+v", b)
	case <-time.After(100 * time.Millisecond):
	}
	must(t, other.EndTransaction(t.Context(), kgo.TryAbort))
	if b := <-stands; b.err != nil || b.at != 20 {
		t.Errorf("%+v", b)
	}
	l.end()
}

// TestOnceClose aborts what is open, so that a consumer need not wait for the brokers to do it.
func TestOnceClose(t *testing.T) {
	c := cluster(t)
	l := journalOf(t, 5, 5).live("kafka://" + brokers(c) + "/logs?exactly_once=true&commit_every=10s")
	from, err := l.begin(within(t))
	must(t, err)
	var all sync.WaitGroup
	for i := range 3 {
		all.Add(1)
		l.out.SubmitAt(binary.BigEndian.AppendUint64(nil, uint64(from+i)), l.chunks[i], func(r collector.Result) {
			if !errors.Is(r.Err, collector.ErrClosed) {
				t.Errorf("%v", r.Err)
			}
			all.Done()
		})
	}
	l.end()
	all.Wait()
	l.out.SubmitAt([]byte("12345678"), l.chunks[0], func(r collector.Result) {
		if !errors.Is(r.Err, collector.ErrClosed) {
			t.Errorf("%v", r.Err)
		}
	})
	l.end()
	again := l.live("kafka://" + brokers(c) + "/logs?key={user.id}" + exactly)
	_, err = again.deliver()
	must(t, err)
	again.end()
	wantOrder(t, committed(t, c, "logs", 25), 25)
}
