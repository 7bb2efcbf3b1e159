// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/lines"
)

// A producer is what both kinds of output have: a client, and records made of chunks.
type producer struct {
	settings *settings
	env      *collector.OutputEnv
	client   *kgo.Client
	encoder  *lines.Encoder // with the lock of Submit
	slabs    sync.Pool      // of *slab
	topics   topics
	watching sync.WaitGroup
	stop     context.CancelFunc

	restamped, refused notice // of events
	throttled          notice // of answers

	waiting atomic.Int64  // chunks
	acked   atomic.Int64  // records
	news    chan struct{} // a topic is new, or had its first record
	written atomic.Bool   // records of the last chunk, to a connection that stands
	shut    atomic.Bool
}

// start makes the client.
func (p *producer) start(s *settings, env *collector.OutputEnv, more ...kgo.Opt) error {
	err := s.broker.Open(&credentials.Reports{
		Warn: func(err error) { codes.Credentials.Warn(env.Log, "credentials", "error", err) },
		Renewed: func(files []string) {
			codes.Renewed.Info(env.Log, "credentials renewed", "files", strings.Join(files, ", "))
		},
	})
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	p.settings, p.env, p.topics.choice = s, env, &s.choice
	if p.encoder, err = lines.NewEncoder(&s.line); err != nil {
		return err
	}
	p.news = make(chan struct{}, 1)
	p.slabs.New = func() any { return new(slab) }
	options := append(append(s.options(), kgo.WithHooks(hooks{p})), more...)
	if p.client, err = kgo.NewClient(options...); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.watching.Go(func() { p.watch(ctx) })
	return nil
}

// A notice is something that is told once a minute at most, with how often it came.
type notice struct {
	mu    sync.Mutex
	count int
	told  time.Time
}

const noticeEvery = time.Minute

// more counts, and says whether to tell now, of how many.
func (n *notice) more(count int) (all int, tell bool) {
	if count == 0 {
		return 0, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count += count
	now := time.Now()
	if !n.told.IsZero() && now.Sub(n.told) < noticeEvery {
		return 0, false
	}
	all, n.count, n.told = n.count, 0, now
	return all, true
}
