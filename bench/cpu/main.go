// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command cpu measures what an event costs the whole client in CPU, shipping included: user and
// system time of a process that posts events and closes, divided by the events. What a process
// costs that posts none is taken off.
//
//	go run ./bench/cpu [-rounds 5] [-events 200000] [-rate 20000]
//
// The server is another process, which reads, acks where it is asked to, and forgets. Each client
// runs at a steady pace and as fast as it can; in turn, round by round; medians are told, and the
// ratio to the official client's.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/fluent/fluent-logger-golang/fluent"

	"github.com/spillwaylog/spillway/bench/internal/clients"
	"github.com/spillwaylog/spillway/bench/internal/daemon"
	"github.com/spillwaylog/spillway/bench/internal/order"
	"github.com/spillwaylog/spillway/bench/internal/peers"
	"github.com/spillwaylog/spillway/bench/internal/table"
)

func main() {
	daemon.Main()
	if text := os.Getenv(taskEnv); text != "" {
		fail(perform(text))
		return
	}
	rounds := flag.Int("rounds", 5, "runs of each client; the median is told")
	events := flag.Int("events", 200_000, "events of a run")
	rate := flag.Int("rate", 20_000, "events a second of the paced runs")
	flag.Parse()
	for _, pace := range []int{*rate, 0} {
		fail(compare(*rounds, *events, pace))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cpu:", err)
		os.Exit(1)
	}
}

const taskEnv = "SPILLWAY_BENCH_TASK"

// A task is one run, for a process of its own.
type task struct {
	Client, Addr string
	Record       string
	Events       int
	Rate         int // 0: as fast as it can
}

var kinds = []clients.Kind{
	{Name: "spillway", Open: func(addr string) (clients.Client, error) { return clients.OpenPoster(addr, "") }},
	{Name: "spillway ack=false", Open: func(addr string) (clients.Client,
		error,
	) {
		return clients.OpenPoster(addr, "?ack=false")
	}},
	{Name: "official", Open: func(addr string) (clients.Client,
		error,
	) {
		return clients.OpenOfficial(addr, fluent.Config{})
	}},
	{Name: "official async", Open: func(addr string) (clients.Client, error) {
		return clients.OpenOfficial(addr, fluent.Config{Async: true, BufferLimit: 1 << 20})
	}},
}

// base is the client that the others are compared with.
const base = "official"

var records = []string{"ten", "struct", "count"}

func compare(rounds, events, rate int) error {
	title := fmt.Sprintf("%d events at %d a second", events, rate)
	if rate == 0 {
		title = fmt.Sprintf("%d events as fast as can be", events)
	}
	t := table.New(title+fmt.Sprintf(", median of %d rounds: µs of CPU an event, and its ratio to the official client's", rounds),
		"", "ten keys", "ratio", "struct of 26", "ratio", "{\"count\": i}", "ratio", "refused %")
	cost := map[string][]float64{}
	refused := map[string]float64{}
	for range rounds {
		for _, k := range kinds {
			idle, _, err := run(task{Client: k.Name, Record: "count"})
			if err != nil {
				return err
			}
			for _, record := range records {
				busy, no, err := run(task{Client: k.Name, Record: record, Events: events, Rate: rate})
				if err != nil {
					return err
				}
				key := k.Name + "/" + record
				cost[key] = append(cost[key], float64((busy-idle).Nanoseconds())/1000/float64(events))
				refused[k.Name] = max(refused[k.Name], 100*float64(no)/float64(events))
			}
		}
	}
	for _, k := range kinds {
		row := []string{k.Name}
		for _, record := range records {
			own, other := table.Median(cost[k.Name+"/"+record]), table.Median(cost[base+"/"+record])
			row = append(row, table.Number(own, 2), table.Number(own/other, 2))
		}
		t.Row(append(row, table.Number(refused[k.Name], 1))...)
	}
	t.Print(os.Stdout)
	return nil
}

// run returns the CPU time that the task's process took, and how many events it was refused.
func run(t task) (cpu time.Duration, refused int, err error) {
	p, err := daemon.StartProcess(daemon.BehaviourHealthy)
	if err != nil {
		return 0, 0, err
	}
	defer p.Close()
	t.Addr = p.Addr
	text, err := json.Marshal(t)
	if err != nil {
		return 0, 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), taskEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", t.Client, err)
	}
	_, err = fmt.Sscan(string(out), &refused)
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), refused, err
}

// perform is one run.
func perform(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	for _, k := range kinds {
		if k.Name != t.Client {
			continue
		}
		c, err := k.Open(t.Addr)
		if err != nil {
			return err
		}
		refused := post(c, t)
		if err := c.Close(); err != nil {
			return err
		}
		fmt.Println(refused)
		return nil
	}
	return errors.New("no such client: " + t.Client)
}

func post(c clients.Client, t task) (refused int) {
	start := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 0; i < t.Events; {
		due := t.Events
		if t.Rate > 0 {
			due = min(due, int(time.Since(start).Seconds()*float64(t.Rate)))
		}
		for ; i < due; i++ {
			if c.Post("bench", record(t.Record, i)) != nil {
				refused++
			}
		}
		if t.Rate > 0 {
			<-tick.C
		}
	}
	return refused
}

// record makes a record as a caller does.
func record(what string, i int) any {
	switch what {
	case "struct":
		return order.New(i)
	case "count":
		return map[string]any{"count": i}
	}
	r := &peers.TheRequest
	return map[string]any{
		"method": r.Method, "path": r.Path, "status": r.Status, "bytes": r.Bytes, "took": int64(r.Took),
		"remote": r.Remote, "agent": r.Agent, "id": r.ID, "user": r.User, "cached": r.Cached,
	}
}
