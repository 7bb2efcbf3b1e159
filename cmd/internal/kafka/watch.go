// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// watchEvery is how often somebody looks whether anything moves.
const watchEvery = 5 * time.Second

// watch says what is wrong while nothing is acked: the client itself tries again and says nothing.
func (p *producer) watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	before := int64(-1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		acked := p.acked.Load()
		if p.waiting.Load() > 0 && acked == before {
			if err := p.ask(ctx); ctx.Err() == nil {
				p.env.Failed(err, watchEvery)
			}
		}
		before = acked
	}
}

// ask asks the brokers about the topic, and returns why nothing may be acked.
func (p *producer) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	names := []string{p.settings.topic}
	if p.topics.template != nil {
		names = p.topics.list()
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none asks for all
	for i := range names {
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = &names[i]
		req.Topics = append(req.Topics, one)
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		topic := ""
		if t.Topic != nil {
			topic = *t.Topic
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("kafka: topic %s: %w", topic, err)
		}
		for j := range t.Partitions {
			if err := kerr.ErrorForCode(t.Partitions[j].ErrorCode); err != nil {
				return fmt.Errorf("kafka: topic %s, partition %d: %w", topic, t.Partitions[j].Partition, err)
			}
		}
	}
	return fmt.Errorf("kafka: topic %s: the brokers ack nothing", p.settings.topic)
}

// hooks are told what happens to connections.
type hooks struct{ p *producer }

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (h hooks) OnBrokerConnect(b kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if errors.Is(err, io.EOF) { // some brokers say no more
		err = fmt.Errorf("it hangs up while the connection is made, perhaps for TLS, user or password: %w", err)
	}
	if err != nil && !h.p.shut.Load() {
		h.p.env.Failed(fmt.Errorf("kafka: broker %s: %w", net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), err), 0)
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
