// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// A spent is what one way to a topic took.
type spent struct {
	cpu    float64 // seconds of the process per million events, its start included
	broker float64 // seconds of the broker
	pace   float64 // events a second, from the first acks to the last one
}

// kafkaSpeed has a collector deliver what is in its journal, packed events of 140 bytes, to a
// topic: idempotent, once in transactions, and without the header of ids. Beside it franz-go's
// producer alone sends the same lines. The topics are there before. In each round another way is
// the first. A broker compiles its code as it runs, and what comes first pays for it: of several
// rounds the first one is not counted. It asserts nothing of times, and tells the figures. For
// three million events and five rounds of each: SPILLWAY_KAFKA_EVENTS=3000000
// SPILLWAY_KAFKA_ROUNDS=5.
func kafkaSpeed(t *testing.T, cluster brokers) {
	events := needs.Rounds(t, "SPILLWAY_KAFKA_EVENTS", 20_000, 20_000)
	rounds := needs.Rounds(t, "SPILLWAY_KAFKA_ROUNDS", 1, 1)
	producer := filepath.Join(t.TempDir(), "producer")
	build := exec.Command("go", "build", "-o", producer, "./internal/kafka/testdata/producer")
	build.Dir = "../../cmd"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := filepath.Join(t.TempDir(), "lines")
	ways := []string{"idempotent", "exactly once", "without ids", "franz-go"}
	all := map[string][]spent{}
	warmUp := min(rounds-1, 1)
	for round := range rounds + warmUp {
		for i := range ways {
			way := ways[(round+i)%len(ways)] // in the first round franz-go is the last: its lines are the first one's
			topic := fmt.Sprintf("speed-%d-%d", round, i)
			rig.Eventually(t, "the topic is there", func() bool {
				return exec.Command("kcat", "-b", cluster.addrs(), "-L", "-t", topic).Run() == nil &&
					len(topicLogs(t, cluster, topic)) > 0
			})
			var took spent
			before := cluster[0].cpu()
			switch way {
			case "franz-go":
				cmd := exec.Command(producer, cluster.addrs(), topic, lines, strconv.Itoa(events))
				cmd.Stderr = os.Stderr
				out, err := cmd.Output()
				rig.Must(t, err)
				pace, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
				rig.Must(t, err)
				took = spent{cpu: perMillion(cmd, events), pace: pace}
			case "exactly once":
				took = drained(t, cluster, topic+"?exactly_once=true&", events)
			case "without ids": // which franz-go does not send either
				took = drained(t, cluster, topic+"?id_header=-&", events)
			default:
				took = drained(t, cluster, topic+"?", events)
			}
			took.broker = (cluster[0].cpu() - before) / float64(events) * 1e6
			if round >= warmUp {
				all[way] = append(all[way], took)
			}
			if round == 0 && i == 0 {
				text := strings.Join(cluster.consume(t, topic, "%k %s"), "\n")
				rig.Must(t, os.WriteFile(lines, []byte(text), 0o600))
			}
		}
	}
	var stored int64
	for _, name := range topicLogs(t, cluster, "speed-0-0") {
		info, err := os.Stat(name)
		rig.Must(t, err)
		stored += info.Size()
	}
	rig.Figure(t, "%.0f bytes an event in the topic", float64(stored)/float64(events))
	median := func(of func(round int) float64) float64 {
		var values []float64
		for round := range rounds {
			values = append(values, of(round))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for _, way := range ways {
		rig.Figure(t, "%s: %d events, %.2f CPU s per million, %.2f times idempotent's in the same round, "+
			"%.2f of the broker, %.0f events/s, %.2f of franz-go's in the same round, medians of %d",
			way, events,
			median(func(round int) float64 { return all[way][round].cpu }),
			median(func(round int) float64 { return all[way][round].cpu / all["idempotent"][round].cpu }),
			median(func(round int) float64 { return all[way][round].broker }),
			median(func(round int) float64 { return all[way][round].pace }),
			median(func(round int) float64 { return all[way][round].pace / all["franz-go"][round].pace }), rounds)
	}
	for i, how := range []string{"", "&exactly_once=true"} {
		took := kafkaLatency(t, cluster, fmt.Sprint("latency-", i), how, max(20, events/5000))
		rig.Figure(t, "%s: from a client to a consumer %v in the median, %v at p99", ways[i], took[len(took)/2],
			took[len(took)*99/100])
	}
}

// kafkaLatency sends events one by one to a collector, each when the one before it has been read
// from the topic, and returns how long each took, in order of length. A synced ack is part of it.
func kafkaLatency(t *testing.T, cluster brokers, topic, how string, samples int) []time.Duration {
	s, _ := rig.NewSetup(t)
	s.Bin = rig.Lean
	s.To = []string{"bus=kafka://" + cluster.addrs() + "/" + topic + "?value={n}" + how}
	c := rig.StartCollector(t, s)
	client := &forward.Client{Address: c.Addr}
	send := func(n int) {
		chunk := &forward.Chunk{Tag: "app", Events: 1, Entries: packed140(nil, n)}
		rig.Must(t, client.Send(t.Context(), chunk))
	}
	send(0)
	rig.Eventually(t, "the topic is there", func() bool { return len(cluster.consume(t, topic, "%s")) > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	reader := exec.CommandContext(ctx, "kcat", "-b", cluster.addrs(), "-m", patience, "-C", "-t", topic, "-u", "-q",
		"-o", "beginning", "-f", "%s\\n", "-X", "isolation.level=read_committed")
	out, err := reader.StdoutPipe()
	rig.Must(t, err)
	rig.Must(t, reader.Start())
	lines := bufio.NewScanner(out)
	read := func(n int) {
		if !lines.Scan() || lines.Text() != strconv.FormatInt(1<<32+int64(n), 10) {
			t.Fatalf("want event %d: %q, %v", n, lines.Text(), lines.Err())
		}
	}
	read(0)
	took := make([]time.Duration, samples)
	for i := range took {
		began := time.Now()
		send(i + 1)
		read(i + 1)
		took[i] = time.Since(began)
	}
	cancel()
	_ = reader.Wait() // killed
	rig.Must(t, client.Close())
	c.Stop()
	slices.Sort(took)
	return took
}

// drained fills a journal, and has a new process deliver it.
func drained(t *testing.T, cluster brokers, topic string, events int) spent {
	s, _ := rig.NewSetup(t)
	s.Bin = rig.Lean
	s.Args = []string{"--status-every", "0"}
	nobody := needs.Port("127.0.0.1")
	s.To = []string{fmt.Sprintf("bus=kafka://127.0.0.1:%d/none", nobody)}
	c := rig.StartCollector(t, s)
	client := &forward.Client{Address: c.Addr}
	const each = 1000
	for n := 0; n < events; n += each {
		chunk := &forward.Chunk{Tag: "app.web", Events: min(each, events-n)}
		for i := range chunk.Events {
			chunk.Entries = packed140(chunk.Entries, n+i)
		}
		rig.Must(t, client.Send(t.Context(), chunk))
	}
	rig.Must(t, client.Close())
	c.Stop()

	s.To = []string{"bus=kafka://" + cluster.addrs() + "/" + topic + "key={user}&compress=lz4"}
	began, first := time.Now(), int64(0)
	c = rig.StartCollector(t, s)
	looks := time.NewTicker(50 * time.Millisecond) // an account costs both sides something
	defer looks.Stop()
	last := int64(0)
	for last < int64(events) && !c.Over() {
		<-looks.C
		last = c.Account()["output0.out"]
		if first == 0 && last < int64(events)/2 { // else there is no pace but that of all, the start included
			began, first = time.Now(), last
		}
	}
	pace := float64(last-first) / time.Since(began).Seconds()
	c.Stop()
	return spent{cpu: perMillion(c.Cmd, events), pace: pace}
}

// perMillion is what a process that has ended took of a processor, in seconds per million events.
func perMillion(cmd *exec.Cmd, events int) float64 {
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() / float64(events) * 1e6
}

// cpu is what the broker has taken of a processor so far, in seconds. Linux counts in hundredths.
func (b *broker) cpu() float64 {
	b.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.cmd.Process.Pid))
	rig.Must(b.t, err)
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after) // from the third of proc(5) on
	user, err := strconv.ParseFloat(fields[14-3], 64)
	rig.Must(b.t, err)
	system, err := strconv.ParseFloat(fields[15-3], 64)
	rig.Must(b.t, err)
	return (user + system) / 100
}

// topicLogs are the files of a topic on the first broker.
func topicLogs(t *testing.T, cluster brokers, topic string) []string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(cluster[0].config), "logs", topic+"-*", "*.log"))
	rig.Must(t, err)
	return logs
}

// packed140 appends an entry of 140 bytes.
func packed140(b []byte, n int) []byte {
	start := len(b)
	b = forward.AppendEventTime(msgpack.AppendArrayHeader(b, 2), 1_795_000_000, uint32(n))
	b = msgpack.AppendMapHeader(b, 4)
	b = msgpack.AppendString(msgpack.AppendString(b, "user"), fmt.Sprintf("u%03d", n%997))
	b = msgpack.AppendUint(msgpack.AppendString(b, "n"), 1<<32+uint64(n))
	b = msgpack.AppendString(msgpack.AppendString(b, "level"), "info")
	text := fmt.Sprintf("GET /orders/%d/items from 10.0.%d.%d took %d us, cached", n*7919%100_000, n%256, n*31%256,
		n*104_729%90_000)
	room := 140 - (len(b) - start) - len("\xa3msg") - 2
	text += strings.Repeat(".", max(0, room-len(text)))
	return msgpack.AppendString(msgpack.AppendString(b, "msg"), text[:room])
}
