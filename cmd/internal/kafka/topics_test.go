// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// entriesOf is a chunk of records, each of JSON.
func entriesOf(t *testing.T, id, tag string, records ...string) *forward.Chunk {
	t.Helper()
	c := &forward.Chunk{Tag: tag, ID: []byte(id), UniqueID: true, Events: len(records)}
	for _, text := range records {
		c.Entries = forward.AppendEventTime(msgpack.AppendArrayHeader(c.Entries, 2), 1_795_000_000, 0)
		var err error
		c.Entries, _, err = msgpack.AppendFromJSONText(c.Entries, []byte(text))
		must(t, err)
	}
	return c
}

// misled are events of several topics, of which some are none: entries and a piece of the reason.
var misled = map[int]string{
	1: "the topic of the event is empty", 2: "of 300 bytes, is no name", 3: "does not allow topic \"secret\"",
	5: "does not allow topic", 6: "max_topics=2 are reached, and topic \"logs.c\"", 8: "max_topics=2",
}

func misledChunk(t *testing.T) *forward.Chunk {
	var records []string
	for i, topic := range []string{
		"logs.a", "", strings.Repeat("x", 300), "secret", "logs.b", "spillway-cursors",
		"logs.c", "logs.a", "logs.d",
	} {
		records = append(records, fmt.Sprintf(`{"topic":%q,"n":%d}`, topic, i))
	}
	return entriesOf(t, "id", "app.web", records...)
}

const toTopics = "/{topic}?topics=logs.*,spillway-*&max_topics=2&value={n}&key={user|nobody}&header=service:{tag[1]}&header=trace:{trace}"

// wantTopics wants the good events of misled in their topics.
func wantTopics(t *testing.T, c *kfake.Cluster, level kgo.IsolationLevel) {
	t.Helper()
	for topic, want := range map[string]string{"logs.a": "0 7", "logs.b": "4"} {
		var got []string
		for _, r := range consume(t, c, topic, len(strings.Fields(want)), kgo.FetchIsolationLevel(level)) {
			got = append(got, string(r.Value))
			if len(r.Headers) != 2 || r.Headers[0].Key != "spillway-id" || r.Headers[1].Key != "service" ||
				string(r.Headers[1].Value) != "web" {
				t.Errorf("headers %v", r.Headers)
			}
			if string(r.Key) != "nobody" {
				t.Errorf("key %q", r.Key)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %q, want %q", topic, got, want)
		}
	}
}

// TestTopics has the topic made of events: what is none, is not allowed, or is one too many is
// refused by itself.
func TestTopics(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "logs.a", "logs.b", "logs.c", "logs.d", "secret"))
	url := strings.Replace(toTopics, "topics=logs.*,spillway-*", "topics=logs.*", 1)
	o, _ := opened(t, "kafka://"+brokers(c)+url)
	r := submitAll(t, o, misledChunk(t))[0]
	if r.Err != nil || len(r.Rejected) != len(misled) {
		t.Fatalf("%+v", r)
	}
	for _, refused := range r.Rejected {
		if want := misled[refused.Entry]; want == "" || !strings.Contains(refused.Err.Error(), want) {
			t.Errorf("entry %d: %v, want %q", refused.Entry, refused.Err, want)
		}
	}
	if a, b := r.Rejected[4].Err, r.Rejected[5].Err; a.Error() != b.Error() { // one dead letter
		t.Errorf("%v, and then %v", a, b)
	}
	wantTopics(t, c, kgo.ReadUncommitted())
}

// TestOnceTopics is the same in a transaction, which is not aborted for events that were never
// sent.
func TestOnceTopics(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "logs.a", "logs.b", "logs.c", "logs.d", "secret"))
	var mu sync.Mutex
	aborted := 0
	c.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		if !req.(*kmsg.EndTxnRequest).Commit {
			aborted++
		}
		return nil, nil, false
	})
	j := &journal{t: t, letters: map[string]int{}, chunks: []*forward.Chunk{misledChunk(t)}}
	l := j.live("kafka://" + brokers(c) + toTopics + exactly)
	_, err := l.deliver()
	must(t, err)
	l.end()
	for entry := range misled {
		if n := j.letters[fmt.Sprint("0/", entry)]; n != 1 {
			t.Errorf("entry %d is a dead letter %d times", entry, n)
		}
	}
	if len(j.letters) != len(misled) || aborted != 0 {
		t.Errorf("%d dead letters, %d transactions aborted", len(j.letters), aborted)
	}
	wantTopics(t, c, kgo.ReadCommitted())
}

// TestMillionTopics: however many topics events ask for, memory is for those that there may be.
func TestMillionTopics(t *testing.T) {
	all := topics{choice: &choice{allowed: []string{"*"}, limit: defaultTopics}}
	for i := range 1_000_000 {
		all.of(fmt.Append(nil, "t", i))
	}
	if n := len(all.names); n != defaultTopics {
		t.Errorf("%d topics", n)
	}
}

// TestMurmur2 has partitions as Java's client chooses them: these are the hashes in its own tests.
func TestMurmur2(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(7, "seven"))
	o, _ := opened(t, "kafka://"+brokers(c)+"/seven?key={k}")
	hashes := map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"abc": 479470107,
	}
	var records []string
	for key := range hashes {
		records = append(records, fmt.Sprintf(`{"k":%q}`, key))
	}
	if r := submitAll(t, o, entriesOf(t, "id", "app", records...))[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, r := range consume(t, c, "seven", len(hashes)) {
		if want := (hashes[string(r.Key)] & 0x7fffffff) % 7; r.Partition != want {
			t.Errorf("%q is in partition %d, want %d", r.Key, r.Partition, want)
		}
	}
}

// TestManual has events say their partition: what is no number, or that of no partition, is
// refused.
func TestManual(t *testing.T) {
	c := cluster(t)
	o, _ := opened(t, "kafka://"+brokers(c)+"/logs?partitioner=manual&partition={shard}&value={n}")
	r := submitAll(t, o, entriesOf(t, "id", "app",
		`{"shard":3,"n":0}`, `{"shard":4,"n":1}`, `{"shard":"x","n":2}`, `{"n":3}`, `{"shard":-1,"n":4}`,
		`{"shard":"0","n":5}`))[0]
	if r.Err != nil || len(r.Rejected) != 4 {
		t.Fatalf("%+v", r)
	}
	for _, r := range r.Rejected {
		if r.Entry < 1 || r.Entry > 4 || !strings.Contains(r.Err.Error(), "partition") {
			t.Errorf("entry %d: %v", r.Entry, r.Err)
		}
	}
	for _, r := range consume(t, c, "logs", 2) {
		if want := map[string]int32{"0": 3, "5": 0}[string(r.Value)]; r.Partition != want {
			t.Errorf("%s is in partition %d, want %d", r.Value, r.Partition, want)
		}
	}
}

// TestAcks has brokers see what acks the output asks for, and whether it is idempotent.
func TestAcks(t *testing.T) {
	for acks, want := range map[string]int16{"all": -1, "leader": 1, "none": 0} {
		t.Run(acks, func(t *testing.T) {
			c := cluster(t)
			asked := make(chan int16, 100)
			ids := make(chan bool, 100)
			c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				asked <- req.(*kmsg.ProduceRequest).Acks
				return nil, nil, false
			})
			c.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				ids <- true
				return nil, nil, false
			})
			o, _ := opened(t, "kafka://"+brokers(c)+"/logs?key={user.id}&partitioner=sticky&acks="+acks)
			if r := submitAll(t, o, chunkOf("id", 0, 10))[0]; r.Err != nil || len(r.Rejected) > 0 {
				t.Fatalf("%+v", r)
			}
			if got := <-asked; got != want {
				t.Errorf("it asks for acks %d, want %d", got, want)
			}
			if (len(ids) > 0) != (acks == "all") {
				t.Errorf("it asked %d times for a producer's id", len(ids))
			}
			if got := len(consume(t, c, "logs", 10)); got != 10 {
				t.Errorf("%d records", got)
			}
		})
	}
}

// TestNotices: what comes with each chunk is told once a minute, with how often it came.
func TestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notice
		var told []int
		for range 1000 {
			if all, tell := n.more(3); tell {
				told = append(told, all)
			}
			if _, tell := n.more(0); tell {
				t.Error("it tells nothing")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			<-ctx.Done()
			cancel()
		}
		if want := "[3 1800]"; fmt.Sprint(told) != want {
			t.Errorf("it tells %v, want %s", told, want)
		}
	})
}

var _ collector.Waiter = (*output)(nil)

// TestTopicID: a broker that knows no ids, in a cluster that is being renewed, says nothing of a
// topic being another one.
func TestTopicID(t *testing.T) {
	name, ids := "logs", map[string][16]byte{}
	for i, tt := range []struct {
		id   byte
		anew bool
	}{{0, false}, {1, false}, {0, false}, {1, false}, {2, true}} {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.TopicID = &name, [16]byte{tt.id}
		if err := state(&topic, ids, true); errors.Is(err, errMadeAgain) != tt.anew {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestTopicIDLate: a topic that had records, and is gone when its id is first asked for, is another
// one when it is there again. One that nothing went to was never there.
func TestTopicIDLate(t *testing.T) {
	for _, was := range []bool{false, true} {
		name, ids := "logs", map[string][16]byte{}
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.ErrorCode = &name, kerr.UnknownTopicOrPartition.Code
		if err := state(&topic, ids, was); !errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.Errorf("was %t: %v", was, err)
		}
		topic.TopicID, topic.ErrorCode = [16]byte{1}, 0
		if err := state(&topic, ids, true); errors.Is(err, errMadeAgain) != was {
			t.Errorf("was %t: %v", was, err)
		}
	}
}
