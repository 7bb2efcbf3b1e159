// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway/collector"
)

// answerAll answers a request to produce, and writes nothing.
func answerAll(req kmsg.Request, code int16, throttle int32) kmsg.Response {
	r := req.(*kmsg.ProduceRequest)
	resp := r.ResponseKind().(*kmsg.ProduceResponse)
	resp.ThrottleMillis = throttle
	for i := range r.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = r.Topics[i].Topic, r.Topics[i].TopicID
		for j := range r.Topics[i].Partitions {
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition, p.ErrorCode = r.Topics[i].Partitions[j].Partition, code
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// refusing has brokers answer with an error, until end is called.
func refusing(c *kfake.Cluster, code int16) (end func()) {
	var over atomic.Bool
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if over.Load() {
			return nil, nil, false
		}
		return answerAll(req, code, 0), nil, true
	})
	return func() { over.Store(true) }
}

// TestErrors has things go wrong under load that pass: one message says what and where, nothing is
// refused, and when it is over all is there, once and in order.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		begin func(t *testing.T, c *kfake.Cluster) (end func())
		says  string // empty: nothing need be said
	}{
		"stalls": {func(_ *testing.T, c *kfake.Cluster) func() {
			release := make(chan struct{})
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				c.SleepControl(func() { <-release })
				return nil, nil, false
			})
			return func() { close(release) }
		}, "topic logs: the brokers ack nothing"},
		"too few replicas": {func(_ *testing.T, c *kfake.Cluster) func() {
			return refusing(c, kerr.NotEnoughReplicas.Code)
		}, "topic logs: the brokers ack nothing"},
		"another leader": {func(t *testing.T, c *kfake.Cluster) func() {
			for p := range int32(4) {
				must(t, c.MoveTopicPartition("logs", p, (c.LeaderFor("logs", p)+1)%3))
			}
			return func() {}
		}, ""},
		"a broker is gone": {func(t *testing.T, c *kfake.Cluster) func() {
			must(t, c.RemoveNode(c.LeaderFor("logs", 0)))
			return func() {}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			o, h := opened(t, "kafka://"+brokers(c)+"/logs?key={user.id}&linger=0s")
			const n, each = 60, 20
			results := make(chan collector.Result, n)
			submit := func(from, to int) {
				for i := from; i < to; i++ {
					o.Submit(chunkOf(fmt.Sprint("id", i), i*each, each), func(r collector.Result) { results <- r })
				}
			}
			submit(0, n/3)
			end := tt.begin(t, c)
			submit(n/3, n)
			if tt.says != "" {
				eventually(t, "it says "+tt.says, func() bool { return h.said(tt.says) })
			}
			end()
			for range n {
				if r := <-results; r.Err != nil || len(r.Rejected) > 0 {
					t.Fatalf("%+v", r)
				}
			}
			wantOrder(t, consume(t, c, "logs", n*each), n*each)
		})
	}
}

// TestNoRights has brokers that do not let this client write: it says so, nothing is refused, and
// it is to be opened again.
func TestNoRights(t *testing.T) {
	c := cluster(t)
	end := refusing(c, kerr.TopicAuthorizationFailed.Code)
	o, _ := opened(t, "kafka://"+brokers(c)+"/logs?key={user.id}")
	if r := submitAll(t, o, chunkOf("id", 0, 100))[0]; r.Err == nil || len(r.Rejected) > 0 ||
		r.Err.Error() != "kafka: topic logs: "+kerr.TopicAuthorizationFailed.Error()+"; "+collector.ErrReopen.Error() {
		t.Errorf("%+v", r)
	}
	end()
	o, _ = opened(t, "kafka://"+brokers(c)+"/logs?key={user.id}")
	if r := submitAll(t, o, chunkOf("id", 0, 100))[0]; r.Err != nil || len(r.Rejected) > 0 {
		t.Errorf("%+v", r)
	}
	wantOrder(t, consume(t, c, "logs", 100), 100)
}

// TestThrottle has a broker that says that a quota is used up: it is told, not with each answer.
func TestThrottle(t *testing.T) {
	c := cluster(t)
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return answerAll(req, 0, 1), nil, true
	})
	o, h := opened(t, "kafka://"+brokers(c)+"/logs?linger=0s")
	for i := range 20 {
		if r := submitAll(t, o, chunkOf("id", i, 1))[0]; r.Err != nil || len(r.Rejected) > 0 {
			t.Fatalf("%+v", r)
		}
	}
	if n := h.logged("a broker throttles"); n < 1 || n > 10 || h.logged("broker=127.0.0.1:") != n {
		t.Errorf("it says %s", h.log.String())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held < 20 { // metadata may be answered so, too
		t.Errorf("it counts %d, want 20", h.held)
	}
}

// TestDeleted has the topic deleted under load, and made again: what was in it is gone with it, all
// else waits, and is then there in order.
func TestDeleted(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", exactly} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			const n, each = 60, 2 * users
			j := journalOf(t, n, each)
			url := "kafka://" + brokers(c) + "/logs?key={user.id}&linger=0s" + how
			if how == "" {
				deletedLeast(t, c, j, url)
			} else {
				deletedOnce(t, c, j, url)
			}
		})
	}
}

// deletedLeast delivers a journal whose topic is made after the output is opened, and deleted after
// a third of it.
func deletedLeast(t *testing.T, c *kfake.Cluster, j *journal, url string) {
	n := len(j.chunks)
	deleteTopic(t, c)
	o, h := opened(t, url)
	createTopic(t, c)
	for _, r := range submitAll(t, o, j.chunks[:n/3]...) {
		must(t, r.Err)
	}
	deleteTopic(t, c)
	results := make(chan collector.Result, n)
	for _, chunk := range j.chunks[n/3:] {
		o.Submit(chunk, func(r collector.Result) { results <- r })
	}
	eventually(t, "it says that there is no topic",
		func() bool { return h.said("topic logs: UNKNOWN_TOPIC_OR_PARTITION") })
	if len(results) > 0 {
		t.Fatal("something is done without a topic")
	}
	createTopic(t, c)
	for range n - n/3 {
		if r := <-results; !errors.Is(r.Err, collector.ErrReopen) || len(r.Rejected) > 0 {
			t.Fatalf("%+v", r)
		}
	}
	if !h.said("topic logs: " + errMadeAgain.Error()) {
		t.Errorf("it says %q", h.failed)
	}
	o, _ = opened(t, url)
	for _, r := range submitAll(t, o, j.chunks...) {
		if r.Err != nil || len(r.Rejected) > 0 {
			t.Fatalf("%+v", r)
		}
	}
	total := n * j.chunks[0].Events
	wantOrder(t, consume(t, c, "logs", total), total)
}

// deletedOnce is the same with transactions: only what was not committed comes.
func deletedOnce(t *testing.T, c *kfake.Cluster, j *journal, url string) {
	all := j.chunks
	j.chunks = all[:len(all)/3]
	l := j.live(url)
	_, err := l.deliver()
	must(t, err)
	deleteTopic(t, c)
	j.chunks = all
	over := make(chan []collector.Result)
	go func() { over <- l.submit(len(all) / 3) }()
	eventually(t, "it waits", func() bool { return l.out.(*once).waiting.Load() > 0 })
	createTopic(t, c)
	failed := false
	for _, r := range <-over {
		failed = failed || errors.Is(r.Err, collector.ErrReopen)
	}
	l.end()
	if failed {
		_, err = l.deliver()
		must(t, err)
		l.end()
	}
	records := committed(t, c, "logs", (len(all)-len(all)/3)*all[0].Events)
	seen := map[string]bool{}
	for _, r := range records {
		if seen[string(r.Value)] {
			t.Fatalf("twice: %s", r.Value)
		}
		seen[string(r.Value)] = true
	}
}

func deleteTopic(t *testing.T, c *kfake.Cluster) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	one := kmsg.NewDeleteTopicsRequestTopic()
	one.Topic = kmsg.StringPtr("logs")
	req.Topics, req.TopicNames = append(req.Topics, one), []string{"logs"}
	resp, err := req.RequestWith(within(t), admin(t, c))
	must(t, err)
	must(t, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
}

func createTopic(t *testing.T, c *kfake.Cluster) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "logs", 4, 1
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(within(t), admin(t, c))
	must(t, err)
	must(t, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
}

func admin(t *testing.T, c *kfake.Cluster) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	must(t, err)
	t.Cleanup(client.Close)
	return client
}
