// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestClientsKafkaKill kills the collector, one of three real brokers, or both, under acked load.
// With transactions each acked event is in the topic once for those who read what is committed;
// without, none is missing. Either way those of a key are in order.
func TestClientsKafkaKill(t *testing.T) {
	t.Parallel()
	cluster := startBrokers(t, 3)
	t.Run("exactly once", func(t *testing.T) {
		kafkaKill(t, cluster, "once", "&exactly_once=true", needs.Rounds(t, "SPILLWAY_KILLS", 3, 3))
	})
	t.Run("at least once", func(t *testing.T) {
		kafkaKill(t, cluster, "least", "", needs.Rounds(t, "SPILLWAY_KILLS_AGAIN", 1, 1))
	})
}

func kafkaKill(t *testing.T, cluster brokers, topic, how string, rounds int) {
	s, _ := rig.NewSetup(t)
	port := needs.Port("127.0.0.1")
	s.Listen = []string{fmt.Sprintf("forward://127.0.0.1:%d", port)}
	s.To = []string{"bus=kafka://" + cluster.addrs() + "/" + topic + "?key={user}" + how}
	c := rig.StartCollector(t, s)

	const users = 4
	var acked [users]atomic.Int64
	var posting sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer posting.Wait()
	hard, giveUp := context.WithCancel(context.Background())
	defer giveUp() // a test that has failed waits for nothing
	defer stop()
	for u := range users {
		posting.Go(func() {
			logger, err := spillway.Open(s.Listen[0], &spillway.Options{
				Name: "kafka-kill", Tag: "app", Shm: "none", WaitDelivered: true, MaxWait: 10 * time.Minute,
				FlushInterval: time.Millisecond,
				Diagnostics:   func(error) {}, // that the collector dies
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer context.AfterFunc(hard, func() { _ = logger.Close(hard) })()
			for n := int64(0); ctx.Err() == nil; n++ {
				if err := logger.Post("app", map[string]any{"user": fmt.Sprint("u", u), "n": n}); err != nil {
					if hard.Err() == nil {
						t.Error(err)
					}
					break
				}
				acked[u].Store(n + 1)
			}
			if err := logger.Close(hard); err != nil && hard.Err() == nil {
				t.Error(err)
			}
		})
	}
	sum := func() (n int64) {
		for u := range users {
			n += acked[u].Load()
		}
		return n
	}
	moves := func() {
		before := sum()
		rig.Eventually(t, "events are acked", func() bool { return sum() > before+users })
	}
	r := rig.Random(t)
	for round := range rounds {
		moves()
		<-time.After(time.Duration(r.IntN(500)) * time.Millisecond) // the moment of the kill
		b := cluster[r.IntN(len(cluster))]
		if round%3 != 1 {
			c.Kill()
			c.Forget()
		}
		if round%3 != 0 {
			b.kill()
			b.start()
		}
		if round%3 != 1 {
			c = rig.StartCollector(t, s)
		}
		if round%3 != 0 {
			b.serves() // never are two of three down
		}
	}
	moves()
	stop()
	posting.Wait()

	var next map[string]int64
	var repeats, records int
	rig.Eventually(t, "all that was acked is in the topic", func() bool {
		next, repeats, records = map[string]int64{}, 0, 0
		for _, line := range cluster.consume(t, topic, "%s") {
			var e struct {
				User string
				N    int64
			}
			if json.Unmarshal([]byte(line), &e) != nil {
				return false
			}
			records++
			switch want := next[e.User]; {
			case e.N < want:
				repeats++
			case e.N > want:
				t.Fatalf("of %s comes %d, want %d", e.User, e.N, want)
			default:
				next[e.User]++
			}
		}
		for u := range users {
			if next[fmt.Sprint("u", u)] < acked[u].Load() {
				return false
			}
		}
		return true
	})
	if repeats > 0 && how != "" {
		t.Errorf("%d of %d records came twice", repeats, records)
	}
	rig.Figure(t, "%d rounds, %d events acked, %d records, %d of them repeats", rounds, sum(), records, repeats)
	c.Stop()
}
