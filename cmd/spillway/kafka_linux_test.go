// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
)

// TestKafkaKill kills a collector that writes to Kafka, at random moments and under acked load. No
// event that was acked is missing in the topic, those of a key come in order, and what comes twice
// is what was in flight, under the same id. In transactions nothing comes twice.
func TestKafkaKill(t *testing.T) {
	needs.Time(t, "starts processes")
	t.Parallel()
	t.Run("at least once", func(t *testing.T) { t.Parallel(); kafkaKill(t, "", kgo.ReadUncommitted()) })
	t.Run("exactly once", func(t *testing.T) {
		t.Parallel()
		kafkaKill(t, "&exactly_once=true&commit_every=20ms", kgo.ReadCommitted())
	})
}

func kafkaKill(t *testing.T, how string, reads kgo.IsolationLevel) {
	kills := needs.Rounds(t, "SPILLWAY_KILLS", 8, 25)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(4, "logs"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	abortOpen(cluster)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var log bytes.Buffer
	start := func() *exec.Cmd {
		cmd := exec.Command(self, "serve", "--listen", "forward://"+addr, "--data", filepath.Join(dir, "data"),
			"--to", "bus=kafka://"+strings.Join(cluster.ListenAddrs(), ",")+"/logs?key={user}"+how, "--status-every",
			"0")
		cmd.Env = append(os.Environ(), asCommand+"=1")
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	const users = 4
	var acked [users]atomic.Int64
	var posting sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for u := range users {
		posting.Go(func() {
			logger, err := spillway.Open("forward://"+addr, &spillway.Options{
				Name: "kafka-kill", Tag: "app", Shm: "none", WaitDelivered: true, MaxWait: 5 * time.Minute,
				FlushInterval: time.Millisecond,
				Diagnostics:   func(error) {}, // that the collector dies
			})
			if err != nil {
				t.Error(err)
				return
			}
			for n := int64(0); ctx.Err() == nil; n++ {
				if err := logger.Post("app", map[string]any{"user": fmt.Sprint("u", u), "n": n}); err != nil {
					t.Error(err)
					break
				}
				acked[u].Store(n + 1)
			}
			if err := logger.Close(t.Context()); err != nil {
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
	for range kills {
		cmd := start()
		eventually(t, "events are acked", func() bool { return sum() > 0 })
		<-time.After(time.Duration(50+rand.IntN(250)) * time.Millisecond)
		_ = cmd.Process.Kill() // it runs
		_ = cmd.Wait()         // killed
	}
	cmd := start()
	before := sum()
	eventually(t, "events are acked again", func() bool { return sum() > before })
	stop()
	posting.Wait()

	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("logs"),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.FetchIsolationLevel(reads))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	next := map[string]int64{}
	ids := map[string]string{}
	records, repeats := 0, 0
	eventually(t, "all that was acked is in the topic", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			var e struct {
				User string
				N    int64
			}
			if err := json.Unmarshal(r.Value, &e); err != nil {
				t.Fatalf("%q: %v", r.Value, err)
			}
			records++
			id := string(r.Headers[0].Value)
			what, known := ids[id]
			switch {
			case known && what != string(r.Value):
				t.Fatalf("id %s is of %s and of %s", id, what, r.Value)
			case known:
				repeats++
			case e.N != next[e.User]:
				t.Fatalf("of %s comes %d, want %d", e.User, e.N, next[e.User])
			default:
				next[e.User]++
			}
			ids[id] = string(r.Value)
		})
		for u := range users {
			if next[fmt.Sprint("u", u)] < acked[u].Load() {
				return false
			}
		}
		return true
	})
	_ = cmd.Process.Signal(os.Interrupt) // it runs
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
	if repeats > 0 && how != "" {
		t.Errorf("%d records came twice", repeats)
	}
	t.Logf("%d kills, %d events acked, %d records, %d of them repeats", kills, sum(), records, repeats)
}

// abortOpen has a producer's new id abort what is open, as brokers do. kfake does so only where a
// request names the id and the epoch that are known.
func abortOpen(c *kfake.Cluster) {
	seen := map[string]bool{} // transactional ids
	c.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.InitProducerIDRequest)
		if r.TransactionalID != nil && seen[*r.TransactionalID] {
			h := fnv.New64() // kfake's id
			h.Write([]byte(*r.TransactionalID))
			r.ProducerID, r.ProducerEpoch = int64(h.Sum64())&math.MaxInt64, 0
		} else if r.TransactionalID != nil {
			seen[*r.TransactionalID] = true
		}
		return nil, nil, false
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so", what)
		}
	}
}
