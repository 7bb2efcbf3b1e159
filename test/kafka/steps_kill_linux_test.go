// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// kafkaRoutes lead events through steps that remember others, to a topic. Tags stay, as an output
// with transactions wants it.
const kafkaRoutes = `
routes:
  - match: throttled
    to: [bus]
    do:
      - throttle: {events: 3, per: 10s, by: [k], keys: 40, count: left_out}
      - remove: pad
  - match: alike
    to: [bus]
    do:
      - dedup: {window: 1m, by: [k, tag], keys: 500}
  - match: again
    to: [bus]
    do:
      - remove: [n, pad]
      - dedup: {window: 20s, count: times}
`

const kafkaEnds = 64

// kafkaLast is the last chunk. It has events for each partition, for the brokers end a transaction
// in one partition after the other.
func kafkaLast(seed uint64) *forward.Chunk {
	c := &forward.Chunk{
		Tag: "alike", ID: fmt.Appendf(nil, "remembered-%d-last", seed), UniqueID: true,
		Events: kafkaEnds,
	}
	for i := range c.Events {
		c.Entries = forward.AppendEventTime(append(c.Entries, 0x92), 1_800_000_000, 0)
		c.Entries = msgpack.AppendMapHeader(c.Entries, 2)
		c.Entries = msgpack.AppendString(msgpack.AppendString(c.Entries, "k"), fmt.Sprint("end", i))
		c.Entries = msgpack.AppendString(msgpack.AppendString(c.Entries, "part"), "end")
	}
	return c
}

// TestClientsKafkaRemembers kills collectors whose steps remember events that have passed, and that
// write transactions to a real broker. Each partition has exactly what it has of a collector that
// was not killed.
func TestClientsKafkaRemembers(t *testing.T) {
	t.Parallel()
	cluster := startBrokers(t, 1)
	r := rig.Random(t)
	seed := r.Uint64()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Minute, errors.New("the kill test takes too long"))
	defer cancel()
	start := func(topic string) (*rig.Setup, *forward.Client, *rig.Collector) {
		s, out := rig.NewSetup(t)
		s.Listen = []string{"forward://" + needs.Address()}
		config := filepath.Join(filepath.Dir(out), "spillway.yaml")
		url := "kafka://" + cluster.addrs() + "/" + topic + "?key={k}&exactly_once=true"
		rig.Must(t, os.WriteFile(config, fmt.Appendf(nil, "outputs: {bus: %q}\n%s", url, kafkaRoutes), 0o600))
		s.To, s.Args = nil, []string{"-c", config}
		client := &forward.Client{
			Address:    strings.TrimPrefix(s.Listen[0], "forward://"),
			MinBackoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
		}
		t.Cleanup(func() { client.Close() })
		return s, client, rig.StartCollector(t, s)
	}
	some := func(from int) (chunks []*forward.Chunk) {
		for i := range 8 {
			chunks = append(chunks, rig.StepsChunk(seed, from+i))
		}
		return chunks
	}
	records := func(topic string) (all [4][]string) {
		rig.Eventually(t, "the last events are in "+topic, func() bool {
			all = [4][]string{}
			ends := 0
			for _, line := range cluster.consume(t, topic, "%p %s") {
				var partition int
				if _, err := fmt.Sscan(line, &partition); err != nil {
					return false
				}
				all[partition] = append(all[partition], line)
				ends += strings.Count(line, `"part":"end"`)
			}
			return ends == kafkaEnds
		})
		return all
	}

	setup, killed, c := start("killed")
	stop, sent := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for running := true; running; {
			select {
			case <-stop:
				running = false
			default:
				if err := rig.SendAll(ctx, killed, some(n)...); err != nil {
					t.Error(err)
					running = false
				}
				n += 8
			}
		}
		sent <- n
	}()
	rounds := needs.Rounds(t, "SPILLWAY_KILLS", 3, 3)
	for range rounds {
		rig.Pause(c, r, []time.Duration{400, 1500, 3000}[r.IntN(3)]*time.Millisecond)
		c.Kill()
		c.Forget()
		c = rig.StartCollector(t, setup)
	}
	close(stop)
	n := <-sent
	rig.Must(t, rig.SendAll(ctx, killed, kafkaLast(seed)))
	got := records("killed")
	c.Stop()

	_, whole, c := start("whole")
	for i := 0; i < n; i += 8 {
		rig.Must(t, rig.SendAll(ctx, whole, some(i)...))
	}
	rig.Must(t, rig.SendAll(ctx, whole, kafkaLast(seed)))
	want := records("whole")
	c.Stop()
	total := 0
	for p := range want {
		total += len(want[p])
		if slices.Equal(got[p], want[p]) {
			continue
		}
		at := 0
		for at < min(len(got[p]), len(want[p])) && got[p][at] == want[p][at] {
			at++
		}
		t.Errorf("partition %d has %d records, want %d; the first that differs is number %d: %s, want %s", p,
			len(got[p]), len(want[p]), at, recordAt(got[p], at), recordAt(want[p], at))
	}
	rig.Figure(t, "%d kills, %d chunks, %d records", rounds, n, total)
}

// recordAt is a record of those, or says that there is none.
func recordAt(records []string, at int) string {
	if at < len(records) {
		return records[at]
	}
	return "none"
}
