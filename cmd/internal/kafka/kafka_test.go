// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/urls"
	"github.com/spillwaylog/spillway/msgpack"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func cluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.SeedTopics(4, "logs")}, opts...)...)
	must(t, err)
	t.Cleanup(c.Close)
	abortOpen(c)
	return c
}

// abortOpen has a producer's new id abort what is open, as brokers do. kfake does so only where a
// request names the id and the epoch that are known.
func abortOpen(c *kfake.Cluster) {
	seen := map[string]bool{} // transactional ids
	c.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.InitProducerIDRequest)
		if r.TransactionalID != nil && seen[*r.TransactionalID] {
			h := fnv.New64() // kfake's id
			h.Write([]byte(*r.TransactionalID))
			r.ProducerID, r.ProducerEpoch = int64(h.Sum64())&math.MaxInt64, 0
		} else if r.TransactionalID != nil {
			seen[*r.TransactionalID] = true
		}
		return nil, nil, false
	})
}

// plan reads a URL as the collector does.
func plan(text string) (func(*collector.OutputEnv) (collector.Output, error), error) {
	u, err := urls.Parse(text, "kafka")
	if err != nil {
		return nil, err
	}
	p := u.Params()
	plan, err := Kind(u, p)
	if err = errors.Join(err, p.Err()); err != nil {
		return nil, err
	}
	return plan.Open, nil
}

// health is what an output says of itself.
type health struct {
	mu     sync.Mutex
	failed []string
	works  int
	held   int // times that brokers throttled it
	log    bytes.Buffer
}

// Write takes the output's messages.
func (h *health) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(b)
}

func (h *health) logged(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.log.String(), text)
}

func (h *health) said(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(strings.Join(h.failed, "\n"), text)
}

func opened(t *testing.T, text string) (collector.Output, *health) {
	t.Helper()
	open, err := plan(text)
	must(t, err)
	h := &health{}
	o, err := open(&collector.OutputEnv{
		Name: "bus", Log: slog.New(slog.NewTextHandler(h, nil)),
		Failed: func(err error, _ time.Duration) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.failed = append(h.failed, err.Error())
		},
		Works: func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.works++
		},
		Throttled: func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.held++
		},
	})
	must(t, err)
	t.Cleanup(func() { must(t, o.Close(within(t))) })
	return o, h
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// event is a packed entry whose record has a user, a number, and a pad.
func event(dst []byte, user string, n, pad int) []byte {
	dst = msgpack.AppendArrayHeader(dst, 2)
	dst = forward.AppendEventTime(dst, 1_795_000_000, uint32(n%1000))
	dst = msgpack.AppendMapHeader(dst, 3)
	dst = msgpack.AppendMapHeader(msgpack.AppendString(dst, "user"), 1)
	dst = msgpack.AppendString(msgpack.AppendString(dst, "id"), user)
	dst = msgpack.AppendInt(msgpack.AppendString(dst, "n"), int64(n))
	return msgpack.AppendString(msgpack.AppendString(dst, "pad"), strings.Repeat("p", pad))
}

const users = 7

// chunkOf has the events from … from+n-1, of several users in turn.
func chunkOf(id string, from, n int) *forward.Chunk {
	c := &forward.Chunk{Tag: "app", ID: []byte(id), UniqueID: true, Events: n}
	for i := range n {
		c.Entries = event(c.Entries, fmt.Sprint("u", (from+i)%users), from+i, 20)
	}
	return c
}

// submitAll submits chunks and returns their results, in order.
func submitAll(t *testing.T, o collector.Output, chunks ...*forward.Chunk) []collector.Result {
	t.Helper()
	results := make([]collector.Result, len(chunks))
	var all sync.WaitGroup
	for i, c := range chunks {
		all.Add(1)
		o.Submit(c, func(r collector.Result) {
			results[i] = r
			all.Done()
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("not all chunks are done")
	}
	return results
}

// consume reads n records of a topic.
func consume(t *testing.T, c *kfake.Cluster, topic string, n int, more ...kgo.Opt) []*kgo.Record {
	t.Helper()
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic),
		kgo.FetchMaxWait(100 * time.Millisecond),
	}
	client, err := kgo.NewClient(append(opts, more...)...)
	must(t, err)
	defer client.Close()
	var all []*kgo.Record
	ctx := within(t)
	for len(all) < n {
		f := client.PollFetches(ctx)
		must(t, ctx.Err())
		f.EachRecord(func(r *kgo.Record) { all = append(all, r) })
	}
	return all
}

// wantOrder checks that the events 0 … n-1 are there, each once, those of a user in order and in
// one partition.
func wantOrder(t *testing.T, records []*kgo.Record, n int) {
	t.Helper()
	next := map[string]int{}
	partition := map[string]int32{}
	for _, r := range records {
		var line struct {
			Tag  string
			User struct{ ID string }
			N    int
		}
		must(t, json.Unmarshal(r.Value, &line))
		user := line.User.ID
		if string(r.Key) != user || line.Tag != "app" {
			t.Fatalf("key %q, value %s", r.Key, r.Value)
		}
		if want := next[user]*users + int(user[1]-'0'); line.N != want {
			t.Fatalf("of %s comes %d, want %d", user, line.N, want)
		}
		if p, ok := partition[user]; ok && p != r.Partition {
			t.Fatalf("%s is in partitions %d and %d", user, p, r.Partition)
		}
		partition[user] = r.Partition
		next[user]++
	}
	if len(records) != n {
		t.Fatalf("%d records, want %d", len(records), n)
	}
}

// versions28 are what brokers of version 2.8 understand.
func versions28() *kversion.Versions { return kversion.V2_8_0() }

func brokers(c *kfake.Cluster) string { return strings.Join(c.ListenAddrs(), ",") }

func TestOutput(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd", "zstd, old brokers"} {
		t.Run(codec, func(t *testing.T) {
			var opts []kfake.Opt
			codec, _, old := strings.Cut(codec, ",")
			if old {
				opts = append(opts, kfake.MaxVersions(versions28()))
			}
			c := cluster(t, opts...)
			o, h := opened(t, "kafka://"+brokers(c)+"/logs?key={user.id}&compress="+codec)
			const n, each = 40, 50
			var chunks []*forward.Chunk
			for i := range n {
				chunks = append(chunks, chunkOf(fmt.Sprint("id", i), i*each, each))
			}
			for i, r := range submitAll(t, o, chunks...) {
				if r.Err != nil || len(r.Rejected) > 0 || r.Bytes == 0 {
					t.Fatalf("chunk %d: %+v", i, r)
				}
			}
			must(t, o.Flush(within(t)))
			records := consume(t, c, "logs", n*each)
			wantOrder(t, records, n*each)
			ids := map[string]bool{}
			for _, r := range records {
				if len(r.Headers) != 1 || r.Headers[0].Key != "spillway-id" {
					t.Fatalf("headers %v", r.Headers)
				}
				ids[string(r.Headers[0].Value)] = true
			}
			if len(ids) != n*each {
				t.Errorf("%d ids of %d events", len(ids), n*each)
			}
			if h.works == 0 || len(h.failed) > 0 {
				t.Errorf("it says %d times that it works, and %q", h.works, h.failed)
			}
		})
	}
}

func TestValues(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "raw", "plain"))
	o, h := opened(t, "kafka://"+brokers(c)+"/raw?value=msgpack&id_header=-&timestamp=event&key={tag}-{n}-{none}")
	chunk := &forward.Chunk{Tag: "app", ID: []byte("x"), Events: 3}
	now := time.Now()
	for _, at := range []time.Time{now, now.Add(-8 * 24 * time.Hour), now.Add(2 * time.Hour)} {
		chunk.Entries = forward.AppendEventTime(msgpack.AppendArrayHeader(chunk.Entries, 2), at.Unix(), 5)
		chunk.Entries = msgpack.AppendInt(msgpack.AppendString(msgpack.AppendMapHeader(chunk.Entries, 1), "n"), 1)
	}
	if r := submitAll(t, o, chunk)[0]; r.Err != nil || len(r.Rejected) > 0 || r.Restamped != 2 {
		t.Fatalf("%+v", r)
	}
	if h.logged("too old or too new") != 1 || h.logged("events=2") != 1 {
		t.Errorf("it says %s", h.log.String())
	}
	records := consume(t, c, "raw", 3)
	want := msgpack.AppendInt(msgpack.AppendString(msgpack.AppendMapHeader(nil, 1), "n"), 1)
	for i, r := range records {
		if string(r.Key) != "app-1-" || !bytes.Equal(r.Value, want) || len(r.Headers) != 0 {
			t.Errorf("record %d: key %q, value %x, headers %v", i, r.Key, r.Value, r.Headers)
		}
		if d := r.Timestamp.Sub(now).Abs(); d > time.Hour {
			t.Errorf("record %d has a time %v from now", i, d)
		}
	}
	if r := records[0]; r.Timestamp.Unix() != now.Unix() {
		t.Errorf("the time of an event is %v, of its record %v", now, r.Timestamp)
	}
}

// TestTooLarge has one event among a thousand that no broker takes: it is refused, and the others
// are there.
func TestTooLarge(t *testing.T) {
	c := cluster(t)
	o, h := opened(t, "kafka://"+brokers(c)+"/logs?key={user.id}")
	chunk := chunkOf("large", 0, 500)
	chunk.Entries = event(chunk.Entries, "u0", 999_999, 2<<20)
	chunk.Entries = append(chunk.Entries, chunkOf("", 500, 500).Entries...)
	chunk.Events = 1001
	r := submitAll(t, o, chunk)[0]
	if r.Err != nil || len(r.Rejected) != 1 || r.Rejected[0].Entry != 500 ||
		!errors.Is(r.Rejected[0].Err, kerr.MessageTooLarge) {
		t.Fatalf("%+v", r)
	}
	if h.logged("refused for good") != 1 || h.logged("topic logs") != 1 {
		t.Errorf("it says %s", h.log.String())
	}
	wantOrder(t, consume(t, c, "logs", 1000), 1000)
}

// TestBrokersFail has brokers answer with errors that pass, hang up, and lose the lead.
func TestBrokersFail(t *testing.T) {
	c := cluster(t)
	var mu sync.Mutex
	count := 0
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		c.KeepControl()
		count++
		switch count % 5 {
		case 1:
			return nil, errors.New("hang up"), true
		case 2:
			r := req.(*kmsg.ProduceRequest)
			resp := r.ResponseKind().(*kmsg.ProduceResponse)
			for i := range r.Topics {
				topic := kmsg.NewProduceResponseTopic()
				topic.Topic, topic.TopicID = r.Topics[i].Topic, r.Topics[i].TopicID
				for j := range r.Topics[i].Partitions {
					p := kmsg.NewProduceResponseTopicPartition()
					p.Partition, p.ErrorCode = r.Topics[i].Partitions[j].Partition, kerr.NotLeaderForPartition.Code
					topic.Partitions = append(topic.Partitions, p)
				}
				resp.Topics = append(resp.Topics, topic)
			}
			return resp, nil, true
		}
		return nil, nil, false
	})
	o, _ := opened(t, "kafka://"+brokers(c)+"/logs?key={user.id}&linger=0s")
	const n, each = 60, 20
	var chunks []*forward.Chunk
	for i := range n {
		chunks = append(chunks, chunkOf(fmt.Sprint("id", i), i*each, each))
	}
	for i, r := range submitAll(t, o, chunks...) {
		if r.Err != nil || len(r.Rejected) > 0 {
			t.Fatalf("chunk %d: %+v", i, r)
		}
	}
	wantOrder(t, consume(t, c, "logs", n*each), n*each)
}

// TestMissing has no broker, and then no topic, when the output is opened: what is submitted waits,
// and the output says what it waits for.
func TestMissing(t *testing.T) {
	port := needs.Port("127.0.0.1")
	o, h := opened(t, fmt.Sprintf("kafka://127.0.0.1:%d/late?key={user.id}&create=false", port))
	done := make(chan collector.Result, 1)
	o.Submit(chunkOf("id", 0, 100), func(r collector.Result) { done <- r })
	eventually(t, "it says that there is no broker", func() bool { return h.said("connection refused") })
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port))
	must(t, err)
	defer c.Close()
	eventually(t, "it says that there is no topic", func() bool { return h.said("UNKNOWN_TOPIC_OR_PARTITION") })
	select {
	case r := <-done:
		t.Fatalf("it is done without a topic: %+v", r)
	default:
	}
	admin, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	must(t, err)
	defer admin.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "late", 2, 1
	req.Topics = append(req.Topics, topic)
	_, err = req.RequestWith(within(t), admin)
	must(t, err)
	select {
	case r := <-done:
		if r.Err != nil || len(r.Rejected) > 0 {
			t.Fatalf("%+v", r)
		}
	case <-time.After(patience):
		t.Fatal("the topic is there, and nothing is done")
	}
	wantOrder(t, consume(t, c, "late", 100), 100)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so", what)
		}
	}
}

// TestClose has chunks pending when it closes: each is done, with ErrClosed.
func TestClose(t *testing.T) {
	o, _ := opened(t, "kafka://127.0.0.1:1/logs")
	const n = 20
	var mu sync.Mutex
	var results []collector.Result
	for i := range n {
		o.Submit(chunkOf(fmt.Sprint(i), 0, 10), func(r collector.Result) {
			mu.Lock()
			defer mu.Unlock()
			results = append(results, r)
		})
	}
	must(t, o.Close(within(t)))
	o.Submit(chunkOf("after", 0, 10), func(r collector.Result) { results = append(results, r) })
	if len(results) != n+1 {
		t.Fatalf("%d of %d chunks are done", len(results), n+1)
	}
	for _, r := range results {
		if !errors.Is(r.Err, collector.ErrClosed) {
			t.Errorf("%+v", r)
		}
	}
}

// TestWaiting has no broker first, and then one that takes a chunk and does not answer: only then
// is an answer all that is missing.
func TestWaiting(t *testing.T) {
	port := needs.Port("127.0.0.1")
	o, h := opened(t, fmt.Sprintf("kafka://127.0.0.1:%d/logs", port))
	waits := o.(collector.Waiter).Waiting
	if waits() {
		t.Error("it waits for nothing")
	}
	done := make(chan collector.Result, 1)
	o.Submit(chunkOf("id", 0, 10), func(r collector.Result) { done <- r })
	eventually(t, "it says that there is no broker", func() bool { return h.said("connection refused") })
	if waits() {
		t.Error("it waits for an answer without a broker")
	}
	c := cluster(t, kfake.NumBrokers(1), kfake.Ports(port))
	answer := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { <-answer })
		return nil, nil, false
	})
	eventually(t, "it waits for an answer", waits)
	close(answer)
	if r := <-done; r.Err != nil {
		t.Error(r.Err)
	}
	eventually(t, "it waits for nothing again", func() bool { return !waits() })
}
