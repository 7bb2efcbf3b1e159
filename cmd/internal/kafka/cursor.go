// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// How this file is organised. The cursor of an output is the last record of its key in the first
// partition of a compacted topic, and always that of the last transaction that was committed. It
// cannot expire, as offsets of a consumer group do.
//
//	key    spillway-<journal>-<output>     also the transactional id
//	value  {"position":"…","journal":"…","process":"…","host":"…","pid":…}

// cursorPartition is where cursors are: how many partitions the topic has changes nothing.
const cursorPartition = 0

// A cursor is the value of a record.
type cursor struct {
	Position string `json:"position,omitempty"` // the token, in hexadecimal; empty: nothing is there yet
	Output   string `json:"output"`             // the identity
	process
}

// A process writes cursors.
type process struct {
	ID   string `json:"process"` // random
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

func (p *process) String() string {
	return fmt.Sprintf("process %d on %s (%s)", p.PID, p.Host, p.ID)
}

func newProcess() *claim {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	return &claim{process: process{ID: hex.EncodeToString(id[:]), Host: host, PID: os.Getpid()}}
}

// A claim is what a process knows of its right to a cursor, over all the clients that it has had.
type claim struct {
	process
	made bool  // the cursor was this process's
	lost error // and is another one's now: this one has to stop
}

// token is the position as the caller knows it.
func (c *cursor) token() ([]byte, error) {
	token, err := hex.DecodeString(c.Position)
	if err != nil {
		return nil, fmt.Errorf("a cursor with position %q: %w", c.Position, err)
	}
	return token, nil
}

// A cursorTopic is the topic that cursors are in.
type cursorTopic struct {
	client *kgo.Client
	topic  string
	create bool
	id     [16]byte // of the topic
	leader int32    // of the partition
}

// find waits until the topic has a leader, and has it made if it is missing.
func (s *cursorTopic) find(ctx context.Context) error {
	asked := false
	for {
		err := s.look(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, kerr.UnknownTopicOrPartition) && s.create && !asked {
			if err := s.make(ctx); err != nil {
				return err
			}
			asked = true
			continue
		}
		var ke *kerr.Error
		if !errors.As(err, &ke) || !ke.Retriable || !asked && errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// look asks for the topic's id and the partition's leader.
func (s *cursorTopic) look(ctx context.Context) error {
	resp, err := metadataOf([]string{s.topic}).RequestWith(ctx, s.client)
	if err != nil {
		return err
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return err
		}
		s.id = t.TopicID
		for j := range t.Partitions {
			if p := &t.Partitions[j]; p.Partition == cursorPartition {
				s.leader = p.Leader
				return kerr.ErrorForCode(p.ErrorCode)
			}
		}
	}
	return kerr.UnknownTopicOrPartition
}

// make creates the topic. The brokers say how many replicas it has.
func (s *cursorTopic) make(ctx context.Context) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = s.topic, 1, -1
	// Small: all of it is read at a start.
	for _, kv := range [][2]string{{"cleanup.policy", compact}, {"segment.bytes", "16777216"}} {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = kv[0], &kv[1]
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	req.TimeoutMillis = 30_000
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return err
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			if t.ErrorMessage != nil {
				err = fmt.Errorf("%w: %s", err, *t.ErrorMessage)
			}
			return fmt.Errorf("creating it: %w", err)
		}
	}
	return nil
}

const compact = "compact"

// policy is the topic's cleanup.policy. Without compact cursors expire.
func (s *cursorTopic) policy(ctx context.Context) (string, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, s.topic, []string{"cleanup.policy"}
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return "", err
	}
	for i := range resp.Resources {
		if err := kerr.ErrorForCode(resp.Resources[i].ErrorCode); err != nil {
			return "", err
		}
		for _, c := range resp.Resources[i].Configs {
			if c.Name == "cleanup.policy" && c.Value != nil {
				return *c.Value, nil
			}
		}
	}
	return "", errors.New("the brokers do not say")
}

// last returns the last cursor of a key that was committed, nil if there is none. It reads to the
// end of the partition as it is now, which may mean waiting for transactions of others: that of a
// collector that was killed is open until the brokers end it.
func (s *cursorTopic) last(ctx context.Context, key string) (*cursor, error) {
	at, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	var found []byte
	for end := int64(-1); end < 0 || at < end; {
		p, err := s.fetch(ctx, at)
		if err != nil {
			return nil, err
		}
		if end < 0 {
			end = p.HighWatermark
		}
		records, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			Offset: at, IsolationLevel: kgo.ReadCommitted(), Topic: s.topic, Partition: cursorPartition,
		}, p, kgo.DefaultDecompressor(), nil)
		if records.Err != nil {
			return nil, records.Err
		}
		for _, r := range records.Records {
			if string(r.Key) == key {
				found = r.Value
			}
		}
		if next == at && len(p.RecordBatches) == 0 && p.LastStableOffset >= end { // compaction took the rest
			break
		}
		at = max(at, next)
	}
	if found == nil {
		return nil, nil
	}
	c := &cursor{}
	if err := json.Unmarshal(found, c); err != nil {
		return nil, fmt.Errorf("the record of %s is no cursor: %w", key, err)
	}
	return c, nil
}

// begin is the partition's first offset.
func (s *cursorTopic) begin(ctx context.Context) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = s.topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = cursorPartition, -2
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return 0, err
	}
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			return p.Offset, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return 0, kerr.UnknownTopicOrPartition
}

// fetch asks the leader for what is committed from an offset on.
func (s *cursorTopic) fetch(ctx context.Context, at int64) (*kmsg.FetchResponseTopicPartition, error) {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = -1, 500, 1, 16<<20, 1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = s.topic, s.id
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = cursorPartition, at, 16<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := s.client.Broker(int(s.leader)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
		return nil, err
	}
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			return p, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return nil, kerr.UnknownTopicOrPartition
}
