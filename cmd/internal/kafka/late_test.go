// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
)

// TestTemplateDeleted has a topic of a template deleted after its first records, before its id is
// known, and made again: what comes later is not sent to the one that is gone.
func TestTemplateDeleted(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(4, "others"))
	var deleted atomic.Bool
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.MetadataRequest)
		if deleted.Load() || r.AllowAutoTopicCreation || len(r.Topics) == 0 { // of the client itself, or the test
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.MetadataResponse)
		for i := range r.Topics {
			one := kmsg.NewMetadataResponseTopic()
			one.Topic, one.ErrorCode = r.Topics[i].Topic, kerr.LeaderNotAvailable.Code
			resp.Topics = append(resp.Topics, one)
		}
		return resp, nil, true
	})
	url := "kafka://" + brokers(c) + "/{tag}?topics=logs,others&key={user.id}&linger=0s"
	o, h := opened(t, url)
	to := func(tag string, n int) *forward.Chunk {
		chunk := chunkOf(fmt.Sprint(tag, n), n*users, users)
		chunk.Tag = tag
		return chunk
	}
	for n, tag := range []string{"others", "logs"} {
		must(t, submitAll(t, o, to(tag, n))[0].Err)
	}
	deleteTopic(t, c)
	deleted.Store(true)
	const n = 5
	results := make(chan collector.Result, n)
	for i := range n {
		o.Submit(to("logs", i), func(r collector.Result) { results <- r })
	}
	eventually(t, "it says that there is no topic",
		func() bool { return h.said("topic logs: UNKNOWN_TOPIC_OR_PARTITION") })
	createTopic(t, c)
	for range n {
		if r := nextOf(t, results); !errors.Is(r.Err, collector.ErrReopen) || len(r.Rejected) > 0 {
			t.Fatalf("%+v", r)
		}
	}
	o, _ = opened(t, url)
	for i := range n {
		must(t, submitAll(t, o, to("logs", i))[0].Err)
	}
	if records := consume(t, c, "logs", n*users); len(records) != n*users {
		t.Errorf("%d records, want %d", len(records), n*users)
	}
}

// nextOf is a result that must come.
func nextOf(t *testing.T, results chan collector.Result) (r collector.Result) {
	t.Helper()
	select {
	case r = <-results:
	case <-within(t).Done():
		t.Fatal("a chunk is not done")
	}
	return r
}
