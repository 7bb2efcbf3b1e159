// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command latency measures how long a log call takes, whatever its destination does.
//
//	go run ./bench/latency [-rounds 5] [-for 5s] [-rate 100000] [-only memory,spillway] [-cgroup 64MiB] [-plain] [-dir DIR]
//
// Each contender runs in a fresh process, in turn, round by round; a row has the medians of its
// rounds, and the lowest and highest p99.9. Then all is done again inside a memory cgroup.
//
// The method: four goroutines share the rate evenly. Each has a schedule with a fixed interval (40
// µs at 100,000 a second); it sleeps for a millisecond, makes all calls that have become due, and
// sleeps again, as a server does that gets its requests in bursts. A call is timed from its own
// begin to its end, so that the error of the sleeping is not taken for the logger's; and a call
// that takes longer than the interval is also counted as the calls that had to wait for it, with
// what they would have waited (the correction of HdrHistogram): a stall of 4 ms is not one slow
// call but a hundred. The clock is read twice a call, about 50 ns of each figure.
//
// "memory" is the yardstick: the same program appends a record of the same size to memory of its
// goroutine's own. Nothing else runs beside it; beside the others run their movers and writers and,
// for a healthy destination, a real collector that works for them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/bench/internal/daemon"
	"github.com/spillwaylog/spillway/bench/internal/table"
)

func main() {
	daemon.Main()
	if text := os.Getenv(taskEnv); text != "" {
		fail(perform(text))
		return
	}
	b := bench{}
	flag.IntVar(&b.rounds, "rounds", 5, "runs of each contender; the medians are told")
	flag.DurationVar(&b.task.For, "for", 5*time.Second, "length of a run")
	flag.IntVar(&b.task.Rate, "rate", 100_000, "calls a second, from four goroutines")
	only := flag.String("only", "", "contenders to run, separated by commas: memory, spillway, phuslu, official, or whole names; default: all")
	limit := flag.Int64("cgroup", 64, "MiB of the memory cgroup of the second table; 0: no such table")
	plain := flag.Bool("plain", true, "the first table, outside of a cgroup")
	dir := flag.String("dir", "", "where to put files: the disk that is measured; default: the folder for temporary files")
	flag.Parse()
	var err error
	b.dir, err = os.MkdirTemp(*dir, "bench-latency-")
	fail(err)
	b.dir, err = filepath.Abs(b.dir)
	fail(err)
	err = b.all(*only, *plain, *limit<<20)
	os.RemoveAll(b.dir)
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

type bench struct {
	rounds    int
	dir       string
	task      task // of all, its What and To open
	collector string
	runs      int
}

func (b *bench) all(only string, plain bool, limit int64) error {
	var names []string
	for _, c := range contenders {
		kind, _, _ := strings.Cut(c.name, " ")
		if only == "" || slices.Contains(strings.Split(only, ","), kind) ||
			slices.Contains(strings.Split(only, ","), c.name) {
			names = append(names, c.name)
		}
	}
	b.collector = filepath.Join(b.dir, "spillway")
	out, err := exec.Command("go", "build", "-o", b.collector,
		"github.com/spillwaylog/spillway/cmd/spillway").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the collector: %w\n%s", err, out)
	}
	if plain {
		if err := b.table("no limit of memory", names, nil); err != nil {
			return err
		}
	}
	if limit == 0 {
		return nil
	}
	group, err := newCgroup(limit)
	if err != nil {
		fmt.Printf("\nno memory cgroup can be made here, so there is no second table: %v\n", err)
		return nil
	}
	defer group.remove()
	return b.table(fmt.Sprintf("in a memory cgroup of %d MiB", limit>>20), names, group)
}

// table runs the contenders in turn.
func (b *bench) table(title string, names []string, group *cgroup) error {
	results := map[string][]result{}
	for range b.rounds {
		for _, c := range contenders {
			if !slices.Contains(names, c.name) {
				continue
			}
			r, err := b.run(c, group)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			results[c.name] = append(results[c.name], r)
		}
	}
	t := table.New(fmt.Sprintf("%s: %d calls a second for %v, median of %d rounds, µs", title, b.task.Rate, b.task.For,
		b.rounds),
		"", "p50", "p99", "p99.9", "p99.99", "max", "p99.9 from-to", "refused %", "late %")
	for _, name := range names {
		of := func(f func(result) float64) []float64 {
			var v []float64
			for _, r := range results[name] {
				v = append(v, f(r))
			}
			return v
		}
		row := []string{name}
		if slices.ContainsFunc(results[name], func(r result) bool { return r.Calls == 0 }) {
			t.Row(append(row, "a call did not return")...)
			continue
		}
		for i := range quantiles {
			row = append(row,
				table.Number(table.Median(of(func(r result) float64 { return float64(r.Quantiles[i]) / 1000 })), 2))
		}
		p999 := of(func(r result) float64 { return float64(r.Quantiles[2]) / 1000 })
		row = append(row, fmt.Sprintf("%.1f-%.1f", slices.Min(p999), slices.Max(p999)),
			table.Number(table.Median(of(func(r result) float64 {
				return 100 * float64(r.Refused) / float64(max(1,
					r.Calls))
			})), 1),
			table.Number(table.Median(of(func(r result) float64 { return 100 * r.Late })), 1))
		t.Row(row...)
	}
	t.Print(os.Stdout)
	return nil
}

// run runs a contender once.
func (b *bench) run(c contender, group *cgroup) (r result, err error) {
	b.runs++
	t := b.task
	t.What, t.Dir = c.name, filepath.Join(b.dir, fmt.Sprint("run", b.runs))
	if err := os.Mkdir(t.Dir, 0o700); err != nil {
		return r, err
	}
	defer os.RemoveAll(t.Dir)
	// A run ends as a process dies, and leaves its ring: in a folder that goes with it, for what
	// lies in memory is charged to the cgroup.
	if shm, err := os.MkdirTemp("/dev/shm", "bench-latency-"); err == nil {
		t.Shm = shm
		defer os.RemoveAll(shm)
	}
	stop, addr, err := b.server(c.server, t.Dir)
	if err != nil {
		return r, err
	}
	defer stop()
	t.Addr = addr
	text, err := json.Marshal(t)
	if err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), taskEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	if group != nil {
		if err := group.contain(cmd); err != nil {
			return r, err
		}
	}
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}
