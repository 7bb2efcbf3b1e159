// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestClientsKafka goes from a program's line to a topic of a real Kafka, by ways that others go:
// each line is there once, in order for its key.
func TestClientsKafka(t *testing.T) {
	t.Parallel()
	cluster := startBrokers(t, 1)
	t.Run("rsyslog", func(t *testing.T) { kafkaSyslog(t, cluster) })
	t.Run("logger", func(t *testing.T) { kafkaLogger(t, cluster) })
	t.Run("standard input", func(t *testing.T) { kafkaStdin(t, cluster) })
	t.Run("too large", func(t *testing.T) { kafkaLarge(t, cluster) })
	t.Run("speed", func(t *testing.T) { kafkaSpeed(t, cluster) })
}

// services log lines, each from a process of its own.
var services = []string{"shop", "billing", "search"}

const tasks = 2000 // of each service

// work runs the services to their end.
func work(t *testing.T, args ...string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "pipeline")
	if out, err := exec.Command("go", "build", "-o", program,
		"testdata/pipeline/main.go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var running sync.WaitGroup
	for _, service := range services {
		running.Go(func() {
			cmd := exec.Command(program, append([]string{service, strconv.Itoa(tasks)}, args...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", service, err, out)
			}
		})
	}
	running.Wait()
}

// wantTasks wants what is committed in a topic to be each task of each service once, in order.
func wantTasks(t *testing.T, cluster brokers, topic string) {
	t.Helper()
	var lines []string
	rig.Eventually(t, "all tasks are in the topic", func() bool {
		lines = cluster.consume(t, topic, "%k %s")
		return len(lines) >= len(services)*tasks
	})
	next := map[string]int{}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, " ")
		var task struct {
			Service string
			Msg     string
			Task    string `json:"task_id"`
		}
		if err := json.Unmarshal([]byte(value), &task); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if key != task.Service || task.Msg != "the task is done" || task.Task != strconv.Itoa(next[key]) {
			t.Fatalf("%s: want task %d", line, next[key])
		}
		next[key]++
	}
	if len(lines) != len(services)*tasks {
		t.Errorf("%d lines, want %d", len(lines), len(services)*tasks)
	}
}

// kafkaSyslog has the services log to rsyslog, and that forward to a collector.
func kafkaSyslog(t *testing.T, cluster brokers) {
	port := needs.Port("127.0.0.1")
	s, _ := rig.NewSetup(t)
	s.Listen = []string{fmt.Sprintf("syslog+tcp://127.0.0.1:%d", port)}
	s.To = []string{"bus=kafka://" + cluster.addrs() + "/syslog?key={app}&value={message}&exactly_once=true"}
	c := rig.StartCollector(t, s)
	work(t, "syslog", rig.StartRsyslog(t, rig.ForwardTo(port, "octet-counted", "RSYSLOG_SyslogProtocol23Format")))
	wantTasks(t, cluster, "syslog")
	c.Stop()
}

// kafkaLogger has the services log to the collector itself.
func kafkaLogger(t *testing.T, cluster brokers) {
	s, _ := rig.NewSetup(t)
	s.To = []string{"bus=kafka://" + cluster.addrs() + "/forward?key={service}&exactly_once=true"}
	c := rig.StartCollector(t, s)
	work(t, "forward", "forward://"+c.Addr, t.TempDir())
	wantTasks(t, cluster, "forward")
	c.Stop()
}

// kafkaLarge has an event of 2 MB among a thousand good ones. It is a dead letter, which replay
// delivers when the limits are raised.
func kafkaLarge(t *testing.T, cluster brokers) {
	s, _ := rig.NewSetup(t)
	url := "bus=kafka://" + cluster.addrs() + "/large?key={n}&exactly_once=true"
	s.To = []string{url}
	c := rig.StartCollector(t, s)
	chunk := &forward.Chunk{Tag: "large", Events: 1001}
	for n := range chunk.Events {
		b := forward.AppendEventTime(msgpack.AppendArrayHeader(chunk.Entries, 2), 1_795_000_000, 0)
		b = msgpack.AppendInt(msgpack.AppendString(msgpack.AppendMapHeader(b, 2), "n"), int64(n))
		pad := 10
		if n == 500 {
			pad = 2_000_000
		}
		chunk.Entries = msgpack.AppendString(msgpack.AppendString(b, "pad"), strings.Repeat("p", pad))
	}
	client := &forward.Client{Address: c.Addr}
	rig.Must(t, client.Send(t.Context(), chunk))
	rig.Must(t, client.Close())
	numbers := func(want int) map[string]int {
		seen := map[string]int{}
		rig.Eventually(t, fmt.Sprintf("%d events are in the topic", want), func() bool {
			clear(seen)
			lines := cluster.consume(t, "large", "%k")
			for _, key := range lines {
				seen[key]++
			}
			return len(lines) >= want
		})
		return seen
	}
	if seen := numbers(1000); len(seen) != 1000 || seen["500"] != 0 {
		t.Errorf("%d different events, %d of them the large one", len(seen), seen["500"])
	}
	c.Stop()

	out, err := exec.Command("java", cluster.tool("kafka.admin.ConfigCommand", "--bootstrap-server", cluster.addrs(),
		"--alter", "--entity-type", "topics", "--entity-name", "large", "--add-config",
		"max.message.bytes=4000000")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.To = []string{url + "&batch_bytes=4000000"}
	c = rig.StartCollector(t, s)
	out, err = exec.Command(rig.Lean.Build(t), "replay", s.Data, "--to", "forward://"+c.Addr).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if seen := numbers(1001); len(seen) != 1001 || seen["500"] != 1 {
		t.Errorf("%d different events, %d of them the large one", len(seen), seen["500"])
	}
	c.Stop()
}
