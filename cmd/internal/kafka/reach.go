// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway/internal/credentials"
)

// maxReached is how many brokers are tried.
const maxReached = 100

// reach is collector.OutputPlan's: the brokers answer, with TLS and login, each at the address that
// the first one says; the topic is there, or may be made. None is made by that.
func (s *settings) reach(ctx context.Context) error {
	if err := s.broker.Open(&credentials.Reports{Warn: func(error) {}, Renewed: func([]string) {}}); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	var dials dialed
	client, err := kgo.NewClient(append(s.options(), kgo.WithHooks(&dials), kgo.RequestRetries(2))...)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	want := map[string]bool{} // whether it may be made
	if s.choice.template == nil {
		want[s.topic] = s.create
	}
	if s.once {
		want[s.txn.cursors] = s.create
	}
	resp, err := metadataOf(slices.Collect(maps.Keys(want))).RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("kafka: %w", dials.explain(err))
	}
	var errs []error
	for i := range resp.Brokers[:min(len(resp.Brokers), maxReached)] {
		b := &resp.Brokers[i]
		if _, err := client.Broker(int(b.NodeID)).RetriableRequest(ctx, kmsg.NewPtrApiVersionsRequest()); err != nil {
			errs = append(errs, fmt.Errorf("kafka: broker %d, which says that it is at %s:%d: %w", b.NodeID, b.Host,
				b.Port, dials.explain(err)))
		}
		if ctx.Err() != nil {
			break
		}
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		err := kerr.ErrorForCode(t.ErrorCode)
		if errors.Is(err, kerr.UnknownTopicOrPartition) && want[*t.Topic] {
			err = s.mayMake(ctx, client, *t.Topic)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("kafka: topic %s: %w", *t.Topic, err))
		}
	}
	return errors.Join(errs...)
}

// mayMake asks whether a topic could be made. It is not.
func (s *settings) mayMake(ctx context.Context, client *kgo.Client, name string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	req.Topics, req.ValidateOnly, req.TimeoutMillis = append(req.Topics, t), true, 5000
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("it is missing, and whether it can be made is not known: %w", err)
	}
	for i := range resp.Topics {
		err := kerr.ErrorForCode(resp.Topics[i].ErrorCode)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("it is missing, and cannot be made: %w", err)
		}
	}
	return nil
}

// dialed keeps why a connection failed last: the client tries again until there is no more time,
// and says only that.
type dialed struct {
	mu  sync.Mutex
	err error
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (d *dialed) OnBrokerConnect(b kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		d.mu.Lock()
		d.err = fmt.Errorf("%s: %w", address(b), err)
		d.mu.Unlock()
	}
}

// explain adds why a connection failed to what is only about time.
func (d *dialed) explain(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return d.err
	}
	return err
}
