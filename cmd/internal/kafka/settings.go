// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/lines"
)

// settings are what a URL says.
type settings struct {
	brokers []string // host:port
	topic   string   // or the template as it is written
	choice  choice
	key     template
	headers []header
	msgpack bool     // values are records as MessagePack; else lines of JSON
	value   template // of the value; nil: one of these
	line    lines.Options
	stamp   bool   // records carry the time of the event
	id      string // header of the event's id; empty: there is none
	acks    string
	spread  string   // how keys choose a partition
	number  template // of the partition, where spread is manual
	linger  time.Duration
	batch   int64 // bytes
	codec   kgo.CompressionCodec
	create  bool
	once    bool
	txn     struct {
		every, timeout time.Duration
		cursors        string // topic
	}
	broker *credentials.Broker
}

// A header is one of each record.
type header struct {
	name  string
	value template
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

const defaultPort = "9092"

// read reads a URL. It touches nothing.
func read(u *collector.URL, p *collector.Params) (*settings, error) {
	s := &settings{}
	hosts, topic, ok := strings.Cut(strings.TrimPrefix(u.Path, "//"), "/")
	if !ok || !strings.HasPrefix(u.Path, "//") {
		return nil, u.Errorf("write kafka://broker:9092,broker/topic")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		broker, err := hostPort(host)
		if err != nil {
			return nil, u.Errorf("broker %q: %v", host, err)
		}
		s.brokers = append(s.brokers, broker)
	}
	s.topic = topic
	err := s.readTopics(u, p)
	if err != nil {
		return nil, err
	}
	if s.key, err = parseTemplate(p.String("key", "")); err != nil {
		return nil, u.Errorf("key: %v", err)
	}
	for _, text := range p.Strings("header") {
		name, value, ok := strings.Cut(text, ":")
		if !ok || name == "" {
			return nil, u.Errorf("header: write name:template, as in app:{app}")
		}
		h := header{name: name}
		if h.value, err = parseTemplate(value); err != nil {
			return nil, u.Errorf("header %s: %v", name, err)
		}
		s.headers = append(s.headers, h)
	}
	switch value := p.String("value", "json"); {
	case value == "msgpack":
		s.msgpack = true
	case strings.Contains(value, "{"):
		if s.value, err = parseTemplate(value); err != nil {
			return nil, u.Errorf("value: %v", err)
		}
	case value != "json":
		return nil, u.Errorf("value is json, msgpack, or a template such as {message}")
	}
	if s.line, err = lines.FromParams(p.String); err != nil {
		return nil, u.Errorf("%v", err)
	}
	s.stamp = p.Choice("timestamp", "now", "event") == "event"
	if s.id = p.String("id_header", "spillway-id"); s.id == "-" {
		s.id = ""
	}
	s.acks = p.Choice("acks", "all", "leader", "none")
	s.spread = p.Choice("partitioner", murmur2, sticky, manual)
	if s.number, err = parseTemplate(p.String("partition", "")); err != nil {
		return nil, u.Errorf("partition: %v", err)
	}
	s.linger = p.Duration("linger", 5*time.Millisecond)
	s.batch = p.Size("batch_bytes", 1_000_000)
	s.codec = codecs[p.Choice("compress", "none", "gzip", "snappy", "lz4", "zstd")]
	s.create = p.Bool("create", true)
	s.once = p.Bool("exactly_once", false)
	every, timeout, cursors := p.String("commit_every", ""), p.String("transaction_timeout",
		""), p.String("cursor_topic", "")
	s.txn.every = p.Duration("commit_every", 100*time.Millisecond)
	s.txn.timeout = p.Duration("transaction_timeout", time.Minute)
	s.txn.cursors = p.String("cursor_topic", "spillway-cursors")
	if s.broker, err = credentials.ReadBroker(u, p); err != nil && p.Err() == nil {
		return nil, err
	}
	switch {
	case p.Err() != nil:
		return nil, p.Err()
	case s.once && s.acks != "all":
		return nil, u.Errorf("exactly_once=true needs acks=all")
	case (s.spread == manual) != (s.number != nil):
		return nil, u.Errorf("partitioner=manual and partition= belong together: a template of the partition's number")
	case s.linger < 0 || s.linger > time.Minute:
		return nil, u.Errorf("linger is 0s to 1m")
	case s.batch < 1<<10 || s.batch > 1<<30:
		return nil, u.Errorf("batch_bytes is 1KiB to 1GiB")
	case !s.once && every+timeout+cursors != "":
		return nil, u.Errorf("commit_every, transaction_timeout and cursor_topic belong to exactly_once=true")
	case !isTopic(s.txn.cursors) || s.txn.cursors == s.topic:
		return nil, u.Errorf("cursor_topic is a topic, and not that of the events")
	case s.txn.timeout < 5*time.Second || s.txn.timeout > time.Hour:
		return nil, u.Errorf("transaction_timeout is 5s to 1h")
	case s.txn.every < time.Millisecond || s.txn.every > s.txn.timeout/2:
		return nil, u.Errorf("commit_every is 1ms to half of transaction_timeout")
	}
	if s.once {
		s.choice.cursors = s.txn.cursors
	}
	return s, nil
}

// readTopics reads which topics events go to.
func (s *settings) readTopics(u *collector.URL, p *collector.Params) (err error) {
	c := &s.choice
	allowed := p.String("topics", "")
	c.limit = int(p.Int("max_topics", defaultTopics, 1, maxTopics))
	if c.template, err = parseTemplate(s.topic); err != nil {
		return u.Errorf("topic: %v", err)
	}
	if !c.template.varies() {
		c.template = nil
	}
	switch {
	case c.template == nil && !isTopic(s.topic):
		return u.Errorf("a topic has 1 to 249 letters, digits, '.', '_' and '-'")
	case c.template == nil && (allowed != "" || u.Has("max_topics")):
		return u.Errorf("topics and max_topics belong to a topic with placeholders, as in logs.{tag[0]}")
	case c.template == nil:
		return nil
	case allowed == "":
		return u.Errorf("a topic with placeholders needs topics=, patterns of the topics that there may be, as in topics=logs.*")
	}
	if c.allowed, err = parseAllowed(allowed); err != nil {
		return u.Errorf("topics: %v", err)
	}
	return nil
}

func hostPort(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.Trim(text, "[]"), defaultPort
		if strings.Count(text, ":") == 1 {
			return "", err
		}
	}
	if host == "" || port == "" {
		return "", errors.New("it has no host or no port")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("port %q is no number from 0 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}

// Ways to choose a partition.
const (
	murmur2 = "murmur2" // as Java's client: by the key, and for records without one a batch at a time
	sticky  = "sticky"  // a batch at a time, whatever the key is
	manual  = "manual"  // as the record says
)

func (s *settings) partitioner() kgo.Partitioner {
	switch s.spread {
	case sticky:
		return kgo.StickyPartitioner()
	case manual:
		return kgo.ManualPartitioner()
	}
	return kgo.UniformBytesPartitioner(64<<10, true, true, nil)
}

// idempotent says that the brokers drop what the client sends again.
func (s *settings) idempotent() bool { return s.acks == "all" }

// dialTimeout bounds how long a connection takes, a handshake of TLS with it.
const dialTimeout = 10 * time.Second

// options are those of the client.
func (s *settings) options() []kgo.Opt {
	o := []kgo.Opt{
		kgo.SeedBrokers(s.brokers...), kgo.ClientID("spillway"), kgo.RecordPartitioner(s.partitioner()),
		kgo.ProducerLinger(s.linger), kgo.ProducerBatchMaxBytes(int32(s.batch)), kgo.ProducerBatchCompression(s.codec),
		kgo.MaxBufferedRecords(1<<31 - 1), // the follower bounds what is in flight
		kgo.UnknownTopicRetries(-1), kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
			return s.broker.Dial(ctx, &net.Dialer{Timeout: dialTimeout}, network, host)
		}),
	}
	switch s.acks {
	case "leader":
		o = append(o, kgo.RequiredAcks(kgo.LeaderAck()))
	case "none":
		o = append(o, kgo.RequiredAcks(kgo.NoAck()))
	}
	if !s.idempotent() {
		o = append(o, kgo.DisableIdempotentWrite()) // which has one request in flight, so that order stays
	}
	if s.choice.template == nil {
		o = append(o, kgo.DefaultProduceTopic(s.topic))
	}
	if s.create {
		o = append(o, kgo.AllowAutoTopicCreation())
	}
	switch s.broker.Mechanism() {
	case credentials.Plain:
		o = append(o, kgo.SASL(plain.Plain(func(context.Context) (a plain.Auth, _ error) {
			a.User, a.Pass = s.broker.Login()
			return a, nil
		})))
	case credentials.ScramSHA256:
		o = append(o, kgo.SASL(scram.Sha256(s.scram)))
	case credentials.ScramSHA512:
		o = append(o, kgo.SASL(scram.Sha512(s.scram)))
	case credentials.OAuthBearer:
		o = append(o, kgo.SASL(oauth.Oauth(func(context.Context) (a oauth.Auth, _ error) {
			_, a.Token = s.broker.Login()
			return a, nil
		})))
	}
	return o
}

func (s *settings) scram(context.Context) (a scram.Auth, _ error) {
	a.User, a.Pass = s.broker.Login()
	return a, nil
}
