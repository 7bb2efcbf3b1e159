// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway/internal/codes"
)

// watchEvery is how often watch looks whether anything moves.
const watchEvery = 5 * time.Second

// watch says what is wrong while nothing is acked: the client itself tries again and says nothing.
// It keeps the ids of topics. One that was deleted and made again has another one, and the client
// would send to the old one for ever: it is closed, and the output opened again.
func (p *producer) watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	ids := map[string][16]byte{}
	known := func(name string) bool { return ids[name] != [16]byte{} }
	for before := int64(-1); ; {
		acked := p.acked.Load()
		stuck := p.waiting.Load() > 0 && acked == before
		names, was := p.names()
		if stuck || slices.ContainsFunc(names, func(name string) bool { return !known(name) }) {
			err := p.ask(ctx, names, was, ids)
			if stuck && ctx.Err() == nil {
				p.env.Failed(err, watchEvery)
			}
			if errors.Is(err, errMadeAgain) {
				p.client.Close()
				return
			}
		}
		before = acked
		for looks := false; !looks; {
			select {
			case <-ctx.Done():
				return
			case <-p.news:
				names, was := p.names()
				if names = slices.DeleteFunc(names, known); len(names) > 0 {
					_ = p.ask(ctx, names, was, ids) // of use are the ids
				}
			case <-ticker.C:
				looks = true
			}
		}
	}
}

// lookSoon has watch ask for the ids of topics that are new. The sooner it has them, the less may
// be deleted before.
func (p *producer) lookSoon() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

var errMadeAgain = errors.New("it was deleted and made again")

// names are the topics that events went to, and which of them have been there.
func (p *producer) names() (names []string, was map[string]bool) {
	if p.topics.template != nil {
		return p.topics.list()
	}
	return []string{p.settings.topic}, map[string]bool{p.settings.topic: p.acked.Load() > 0}
}

// ask asks the brokers about topics, and returns why nothing may be acked.
func (p *producer) ask(ctx context.Context, names []string, was map[string]bool, ids map[string][16]byte) error {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	resp, err := metadataOf(names).RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	err = fmt.Errorf("kafka: topic %s: the brokers ack nothing", p.settings.topic)
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if wrong := state(t, ids, t.Topic != nil && was[*t.Topic]); wrong != nil {
			err = fmt.Errorf("kafka: topic %w", wrong)
		}
		if errors.Is(err, errMadeAgain) {
			break
		}
	}
	return err
}

// metadataOf asks about topics.
func metadataOf(names []string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // nil asks for all
	for i := range names {
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = &names[i]
		req.Topics = append(req.Topics, one)
	}
	return req
}

// gone is in place of the id of a topic that was deleted before its id was known.
var gone = [16]byte{15: 1}

// state is what is wrong with a topic. Its id is kept. was says that it was there before.
func state(t *kmsg.MetadataResponseTopic, ids map[string][16]byte, was bool) error {
	if t.Topic == nil {
		return nil
	}
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		if was && ids[*t.Topic] == [16]byte{} && errors.Is(err, kerr.UnknownTopicOrPartition) {
			ids[*t.Topic] = gone
		}
		return fmt.Errorf("%s: %w", *t.Topic, err)
	}
	if t.TopicID != [16]byte{} { // else the broker knows no ids, as before Kafka 2.8
		if before := ids[*t.Topic]; before != t.TopicID && before != [16]byte{} {
			return fmt.Errorf("%s: %w", *t.Topic, errMadeAgain)
		}
		ids[*t.Topic] = t.TopicID
	}
	for j := range t.Partitions {
		if err := kerr.ErrorForCode(t.Partitions[j].ErrorCode); err != nil {
			return fmt.Errorf("%s, partition %d: %w", *t.Topic, t.Partitions[j].Partition, err)
		}
	}
	return nil
}

// hooks are told what happens to connections.
type hooks struct{ p *producer }

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (h hooks) OnBrokerConnect(b kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if errors.Is(err, io.EOF) { // some brokers say no more
		err = fmt.Errorf("it hangs up while the connection is made, perhaps for TLS, user or password: %w", err)
	}
	if err != nil && !h.p.shut.Load() {
		h.p.env.Failed(fmt.Errorf("kafka: broker %s: %w", address(b), err), 0)
	}
}

func address(b kgo.BrokerMetadata) string { return net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))) }

// OnBrokerThrottle implements kgo.HookBrokerThrottle.
func (h hooks) OnBrokerThrottle(b kgo.BrokerMetadata, pause time.Duration, _ bool) {
	h.p.env.Throttled()
	if n, tell := h.p.throttled.more(1); tell {
		codes.KafkaThrottled.Warn(h.p.env.Log, "a broker throttles this output: a quota of it is used up", "topic",
			h.p.settings.topic, "broker", address(b), "pause", pause, "times", n)
	}
}

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (h hooks) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key == int16(kmsg.Produce) && err == nil {
		h.p.written.Store(true)
	}
}

// OnBrokerDisconnect implements kgo.HookBrokerDisconnect.
func (h hooks) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { h.p.written.Store(false) }
