// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
)

// A reloads test changes a collector under load, in every way, again and again.
//
//	input main    ── its senders never wait, it changes on its port
//	input guest   ── comes, changes and goes; its sender tries until it is there again
//	output stay   ── gets everything, once
//	output come   ── comes, changes and goes; gets everything since it came first, once
//	output turnN  ── each takes the place of the one before: together they get everything, once
type reloads struct {
	*applied
	guest string // its address
	main  string
	taken net.Listener
	turn  int

	routed bool // each output has a route, with a step that leaves nothing out
}

// apply is that of applied, with the routes that there are to be.
func (r *reloads) apply(edit func(c *Config)) {
	r.t.Helper()
	r.applied.apply(func(c *Config) {
		edit(c)
		c.Routes = nil
		for _, o := range c.Outputs {
			if r.routed {
				c.Routes = append(c.Routes, Route{
					Match: "**", To: []string{o.Name}, Continue: true,
					Do: []Step{{Drop: "n < 0"}},
				})
			}
		}
	})
}

// kinds are the ways to change it, in an order in which each finds what it needs.
func (r *reloads) kinds() []func() {
	index := func(ends []End, name string) int {
		return slices.IndexFunc(ends, func(e End) bool { return e.Name == name })
	}
	toggle := func(e *End, param string) {
		if base, found := strings.CutSuffix(e.URL, param); found {
			e.URL = base
		} else {
			e.URL += param
		}
	}
	return []func(){
		func() {
			r.apply(func(c *Config) { c.Outputs = append(c.Outputs, r.out("come", "")) })
		},
		func() {
			r.apply(func(c *Config) { c.Inputs = append(c.Inputs, End{Name: "guest", URL: "forward://" + r.guest}) })
		},
		func() {
			r.apply(func(c *Config) { toggle(&c.Outputs[index(c.Outputs, "come")], "?max_size=1GiB") })
		},
		func() {
			r.apply(func(c *Config) { toggle(&c.Inputs[index(c.Inputs, "guest")], "?address_key=from") })
		},
		func() {
			r.turn++
			next := r.out(fmt.Sprint("turn", r.turn), "")
			r.apply(func(c *Config) { c.Outputs[index(c.Outputs, fmt.Sprint("turn", r.turn-1))] = next })
		},
		func() {
			r.fails("address already in use", func(c *Config) {
				c.Inputs[0].URL = "forward://" + r.taken.Addr().String()
				c.Outputs, c.Routes = append(c.Outputs[1:], r.out("never", "")), nil
			})
		},
		func() { r.fails("the scheme is missing", func(c *Config) { c.Outputs = Ends("bad") }) },
		func() { r.apply(func(*Config) {}) },
		func() { r.apply(func(c *Config) { toggle(&c.Inputs[0], "?address_key=from") }) },
		func() {
			r.apply(func(c *Config) {
				i := index(c.Outputs, "come")
				c.Outputs = slices.Delete(c.Outputs, i, i+1)
			})
		},
		func() {
			r.apply(func(c *Config) {
				i := index(c.Inputs, "guest")
				c.Inputs = slices.Delete(c.Inputs, i, i+1)
			})
		},
		func() {
			r.routed = !r.routed
			r.apply(func(*Config) {})
		},
	}
}

// TestApplyUnderLoad: reloads of every kind lose and repeat nothing of what was acked meanwhile.
// The long version has 200:
//
//	SPILLWAY_RELOADS=200 go test -run TestApplyUnderLoad ./collector
func TestApplyUnderLoad(t *testing.T) {
	r := &reloads{applied: &applied{t: t, dir: t.TempDir()}, guest: needs.Address(), main: needs.Address()}
	var err error
	if r.taken, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer r.taken.Close()
	r.conf = Config{
		Dir: filepath.Join(r.dir, "data"), Drain: time.Minute,
		Inputs: []End{{Name: "main", URL: "forward://" + r.main}},
	}
	r.conf.Outputs = []End{r.out("stay", ""), r.out("turn0", "")}
	conf := r.conf
	var log syncBuffer
	conf.Log = logTo(&log)
	r.running = run(t, &conf)

	var next, acked atomic.Int64
	var enough atomic.Bool
	var sending sync.WaitGroup
	for _, address := range []string{r.main, r.main, r.guest} {
		sending.Go(func() {
			c := &forward.Client{Network: "tcp", Address: address}
			defer c.Close()
			for !enough.Load() {
				chunk := numbered("t", int(next.Add(10))-10, 10)
				for c.Send(context.Background(), chunk) != nil { // it is sent again until it is acked
					if t.Context().Err() != nil {
						return
					}
				}
				acked.Add(10)
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	flows := func(n int64) { // the reloads are among what comes
		for upTo := acked.Load() + n; acked.Load() < upTo; {
			<-tick.C
		}
	}
	kinds := r.kinds()
	rounds := needs.Rounds(t, "SPILLWAY_RELOADS", 3*len(kinds), 200)
	for i := range rounds {
		flows(20)
		kinds[i%len(kinds)]()
	}
	for i := rounds; i%len(kinds) != 2; i++ { // come and guest are there at the end
		kinds[i%len(kinds)]()
	}
	enough.Store(true)
	sending.Wait()
	last := fmt.Sprint("turn", r.turn)
	for _, name := range []string{"stay", "come", last} {
		r.settled(name)
	}
	for i := range r.turn {
		r.parked(fmt.Sprint("turn", i))
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	s := r.Stats()
	wantLaws(t, s)
	if s.Stored != acked.Load() || next.Load() != acked.Load() {
		t.Errorf("%d events were made, %d acked and %d stored", next.Load(), acked.Load(), s.Stored)
	}
	if got := numbersIn(t, filepath.Join(r.dir, "stay.jsonl")); len(got) != int(acked.Load()) {
		t.Errorf("stay has %d of %d", len(got), acked.Load())
	}
	come := numbersIn(t, filepath.Join(r.dir, "come.jsonl"))
	if o := of(t, &s, "come"); len(come) != int(acked.Load()-o.Outside) || o.Lost() != 0 {
		t.Errorf("come has %d; of %d it was not there for %d, %d are lost", len(come), acked.Load(), o.Outside,
			o.Lost())
	}
	var files []string
	for i := range r.turn + 1 {
		files = append(files, filepath.Join(r.dir, fmt.Sprintf("turn%d.jsonl", i)))
	}
	if got := numbersIn(t, files...); len(got) != int(acked.Load()) {
		t.Errorf("turns have %d of %d", len(got), acked.Load())
	}
	t.Logf("%d reloads, %d events", rounds, acked.Load())
	if t.Failed() {
		t.Log(log.String())
	}
}

// numbersIn are the numbers of the events in files, each of which is there once.
func numbersIn(t *testing.T, paths ...string) map[int]bool {
	t.Helper()
	found := map[int]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			var e struct{ N int }
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			if found[e.N] {
				t.Errorf("%d is there twice, in %s, having %d", e.N, path, len(found))
			}
			found[e.N] = true
		}
	}
	return found
}
