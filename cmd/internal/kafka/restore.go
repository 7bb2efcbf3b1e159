// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/codes"
)

// Restore implements collector.Transactional. It ends what another client of this output has open,
// and then no other client writes the cursor that it reads.
func (o *once) Restore(ctx context.Context, refuse collector.Refuse) (token []byte, ok bool, err error) {
	o.refuse = refuse
	if err := o.init(ctx); err != nil {
		return nil, false, err
	}
	c, err := o.last(ctx)
	if err != nil {
		return nil, false, again(fmt.Errorf("kafka: topic %s: %w", o.cursors.topic, err))
	}
	switch {
	case c == nil:
		c = &cursor{Output: o.env.Identity}
	case c.ID != o.me.ID && o.me.made:
		o.me.lost = fmt.Errorf("kafka: exactly_once: %v has taken this output over, with a copy of the data directory; this one stops for good", &c.process)
		return nil, false, o.me.lost
	}
	if token, err = c.token(); err != nil {
		return nil, false, fmt.Errorf("kafka: topic %s: %w", o.cursors.topic, err)
	}
	if c.ID != o.me.ID { // an older process that is alive learns by this that it is the older one
		if err := o.take(ctx, token); err != nil {
			return nil, false, again(fmt.Errorf("kafka: topic %s: %w", o.cursors.topic, err))
		}
	}
	o.me.made = true
	o.over = make(chan struct{})
	go o.run()
	return token, len(token) > 0, nil
}

// init gets the producer's id.
func (o *once) init(ctx context.Context) error {
	_, _, err := o.client.ProducerID(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return fmt.Errorf("kafka: exactly_once: transaction_timeout=%v is more than the brokers' transaction.max.timeout.ms allows: %w", o.settings.txn.timeout, err)
	case errors.Is(err, kerr.UnsupportedVersion):
		return fmt.Errorf("kafka: exactly_once: the brokers are too old for it: %w", err)
	}
	if ctx.Err() != nil { // the client itself tries again and says nothing
		asking, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err = errors.Join(err, o.client.Ping(asking))
	}
	return again(fmt.Errorf("kafka: exactly_once: transactional id %s: %w", o.key, err))
}

// last reads the cursor.
func (o *once) last(ctx context.Context) (*cursor, error) {
	if err := o.cursors.find(ctx); err != nil {
		return nil, err
	}
	switch policy, err := o.cursors.policy(ctx); {
	case err != nil:
		codes.KafkaUnsure.Warn(o.env.Log, "nobody says whether the topic of cursors keeps them",
			"topic", o.cursors.topic, "error", err)
	case policy != compact:
		return nil, fmt.Errorf("its cleanup.policy is %s: cursors would expire; set it to %s", policy, compact)
	}
	return o.cursors.last(ctx, string(o.key))
}

// take writes the cursor as this process's.
func (o *once) take(ctx context.Context, token []byte) error {
	if err := o.client.BeginTransaction(); err != nil {
		return err
	}
	if err := o.client.ProduceSync(ctx, o.record(token)).FirstErr(); err != nil {
		return err
	}
	return o.client.EndTransaction(ctx, kgo.TryCommit)
}
