// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fluent/fluent-logger-golang/fluent"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/bench/internal/clients"
	"github.com/spillwaylog/spillway/bench/internal/peers"
)

const taskEnv = "SPILLWAY_BENCH_TASK"

// A task is one run, for a process of its own.
type task struct {
	What string // name of a contender
	Addr string // of the server
	Dir  string
	Shm  string
	For  time.Duration
	Rate int
}

// A result is what that process prints.
type result struct {
	Quantiles [len(quantiles)]uint64 // ns; the last is the maximum
	Calls     int
	Refused   uint64
	Late      float64 // share of the calls that the schedule wanted and the time did not suffice for
}

var quantiles = [...]float64{0.5, 0.99, 0.999, 0.9999, 1}

// A contender makes the function that is measured.
type contender struct {
	name   string
	server server
	// open returns what goroutine g calls, and how many calls were refused or their events dropped.
	open func(t *task) (call func(g int) func(), refused func() uint64, err error)
}

var contenders = []contender{
	{"memory", none, openMemory},
	{"memory as long", none, openLonger},
	{"spillway nothing", none, spillwayTo("discard:", false)},
	{"spillway collector", collector, spillwayTo("", false)},
	{"spillway stalled", stalled, spillwayTo("", false)},
	{"spillway stalled spill", stalled, spillwayTo("", true)},
	{"spillway deaf spill", deaf, spillwayTo("", true)},
	{"spillway down", down, spillwayTo("", false)},
	{"spillway down spill", down, spillwayTo("", true)},
	{"spillway file", none, spillwayTo("file", false)},
	{"phuslu-async file", none, localTo("phuslu-async")},
	{"zerolog-diode file", none, localTo("zerolog-diode")},
	{"phuslu file", none, localTo("phuslu")},
	{"official collector", collector, officialTo(fluent.Config{})},
	{"official-async collector", collector, officialTo(fluent.Config{Async: true})},
	{"official stalled", stalled, officialTo(fluent.Config{})},
	{"official-async stalled", stalled, officialTo(fluent.Config{Async: true})},
	{"official-async down", down, officialTo(fluent.Config{Async: true})},
}

// recordSize is about what the ten fields take as MessagePack with the ring's header.
const recordSize = 320

func openMemory(*task) (func(int) func(), func() uint64, error) {
	record := make([]byte, recordSize)
	call := func(int) func() {
		memory := make([]byte, 4<<20)
		for i := range memory {
			memory[i] = 1 // so that the pages are there
		}
		at := 0
		return func() {
			if at+recordSize > len(memory) {
				at = 0
			}
			at += copy(memory[at:], record)
		}
	}
	return call, func() uint64 { return 0 }, nil
}

// openLonger is openMemory that takes as long as a call of the logger and neither waits nor wakes:
// its tail is that of the machine, which takes processors away from what runs.
func openLonger(t *task) (func(int) func(), func() uint64, error) {
	memory, refused, err := openMemory(t)
	table := crc32.MakeTable(crc32.Castagnoli)
	call := func(g int) func() {
		inner, block := memory(g), make([]byte, 3<<10)
		sum := uint32(0)
		return func() {
			inner()
			sum = crc32.Update(sum, table, block)
		}
	}
	return call, refused, err
}

func spillwayTo(to string, spill bool) func(t *task) (func(int) func(), func() uint64, error) {
	return func(t *task) (func(int) func(), func() uint64, error) {
		destination := to
		switch to {
		case "":
			destination = "forward://" + t.Addr
		case "file":
			destination = "file://" + filepath.Join(t.Dir, "log")
		}
		o := &spillway.Options{Name: "latency", Shm: t.Shm}
		if spill {
			o.Dir = filepath.Join(t.Dir, "spill")
		}
		l, err := peers.OpenSpillway(destination, o)
		if err != nil {
			return nil, nil, err
		}
		return ten(l), l.Dropped, nil
	}
}

func localTo(name string) func(t *task) (func(int) func(), func() uint64, error) {
	return func(t *task) (func(int) func(), func() uint64, error) {
		for _, k := range peers.Locals {
			if k.Name != name {
				continue
			}
			l, err := k.Open(filepath.Join(t.Dir, "log"))
			if err != nil {
				return nil, nil, err
			}
			return ten(l), l.Dropped, nil
		}
		return nil, nil, errors.New("no such logger")
	}
}

func ten(l peers.Local) func(int) func() {
	return func(int) func() {
		r := peers.TheRequest
		return func() { l.Ten(&r) }
	}
}

func officialTo(c fluent.Config) func(t *task) (func(int) func(), func() uint64, error) {
	return func(t *task) (func(int) func(), func() uint64, error) {
		l, err := clients.OpenOfficial(t.Addr, c)
		if err != nil {
			return nil, nil, err
		}
		refused := make([]uint64, goroutines*8) // a cache line each
		r := peers.TheRequest
		call := func(g int) func() {
			record := map[string]any{
				"msg": peers.TheMessage, "method": r.Method, "path": r.Path, "status": r.Status, "bytes": r.Bytes,
				"took":   int64(r.Took),
				"remote": r.Remote, "agent": r.Agent, "id": r.ID, "user": r.User, "cached": r.Cached,
			}
			return func() {
				if l.Post("bench", record) != nil {
					refused[g*8]++
				}
			}
		}
		return call, func() (n uint64) {
			for _, r := range refused {
				n += r
			}
			return n
		}, nil
	}
}

const goroutines = 4

// perform is one run. It ends without closing anything: what matters has been measured.
func perform(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	for _, c := range contenders {
		if c.name != t.What {
			continue
		}
		call, refused, err := c.open(&t)
		if err != nil {
			return err
		}
		debug.FreeOSMemory()
		h, late := measure(&t, call)
		r := result{Calls: int(h.n), Refused: refused(), Late: late}
		for i, q := range quantiles {
			r.Quantiles[i] = h.quantile(q)
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	return errors.New("no such contender: " + t.What)
}

// measure makes the calls.
func measure(t *task, call func(g int) func()) (all *histogram, late float64) {
	interval := time.Duration(goroutines) * time.Second / time.Duration(t.Rate)
	ctx, cancel := context.WithTimeout(context.Background(), t.For+time.Minute) // a call may stall for good
	defer cancel()
	type tally struct {
		histogram *histogram
		made      int
	}
	tallies := make(chan tally, goroutines)
	var started sync.WaitGroup
	started.Add(goroutines)
	begin := make(chan time.Time)
	for g := range goroutines {
		go func() {
			f := call(g)
			h := new(histogram)
			for range 1000 {
				f() // plans, pools, pages
			}
			started.Done()
			start := (<-begin).Add(interval * time.Duration(g) / goroutines)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			made := 0
			for want := int(t.For / interval); made < want; {
				now := time.Since(start)
				if now > t.For { // it is behind its schedule, and stays there
					break
				}
				for due := int(now / interval); made < min(due, want); made++ {
					before := time.Since(start)
					f()
					h.addCorrected(uint64(time.Since(start)-before), uint64(interval))
				}
				<-tick.C
			}
			tallies <- tally{h, made}
		}()
	}
	started.Wait()
	now := time.Now()
	for range goroutines {
		begin <- now
	}
	all = new(histogram)
	made := 0
	for range goroutines {
		select {
		case r := <-tallies:
			all.merge(r.histogram)
			made += r.made
		case <-ctx.Done(): // its calls do not count, but what is missing shows as late
		}
	}
	want := goroutines * int(t.For/interval)
	return all, 1 - float64(made)/float64(want)
}
