// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
)

// The kill tests run a process with busy goroutines that log at full speed into a ring which is
// small, so that its segments are used over and over, and kill it at a random moment. How many
// events of each goroutine were accepted stands in a page that outlives it. The next process of the
// name delivers what the dead one had accepted, and is killed itself.

func TestLoggerKill(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		divisor int // of the number of kills
		spill   bool
		query   string
		manners func(s *fakeServer, r *rand.Rand)
	}{
		{"ring", 1, false, "", nil},
		{"spill", 2, true, "ack_timeout=50ms&window=2", func(s *fakeServer, r *rand.Rand) {
			s.manners = func(c *fakeConn, id string) bool { // so slow that it spills, and now and then deaf
				if r.IntN(10) == 0 {
					return true
				}
				c.ackLater(id, 2*time.Millisecond)
				return true
			}
		}},
		{"server dies too", 2, true, "", func(s *fakeServer, r *rand.Rand) {
			s.manners = func(c *fakeConn, id string) bool {
				switch r.IntN(20) {
				case 0:
					c.reset()
				case 1:
					go func() {
						s.down()
						time.AfterFunc(20*time.Millisecond, s.up)
					}()
				default:
					c.ack(id)
				}
				return true
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := random(t)
			h := newHome(t)
			s := newFake(t)
			if tt.manners != nil {
				tt.manners(s, rand.New(rand.NewPCG(r.Uint64(), 0)))
			}
			o := order{
				Destination: s.url(tt.query), Goroutines: 4,
				Options: childOptions{Shm: h.shm, RingSize: 1 << 20},
			}
			if tt.spill {
				o.Options.Dir = h.dir
			}
			children := killChildren(t, r, o, max(1, kills(t)/tt.divisor), nil)
			last := h.open(o.Destination, spillway.Options{Dir: o.Options.Dir})
			stats := closing(t, last)
			wantLaw(t, stats)
			s.ledger.check(t)
			events := wantAll(t, s.ledger, children...)
			h.wantEmpty()
			figure(t, "%d kills, %d events, %d chunks of which %d repeats", len(children), events, s.chunks,
				s.ledger.repeated)
			if t.Failed() {
				t.Logf("at the end: %+v", stats)
				h.tell()
			}
		})
	}
}

// TestLoggerKillCollector kills the logger's process and the real collector, both.
func TestLoggerKillCollector(t *testing.T) {
	t.Parallel()
	r := random(t)
	h := newHome(t)
	s, out := newSetup(t)
	s.listen = []string{"forward://" + needs.Address()}
	o := order{
		Destination: s.listen[0] + "?min_backoff=1ms&max_backoff=20ms", Goroutines: 4,
		Options: childOptions{Shm: h.shm, Dir: h.dir, RingSize: 1 << 20},
	}
	c := startCollector(t, s)
	children := killChildren(t, r, o, max(1, kills(t)/2), func() {
		if r.IntN(2) == 0 {
			c.kill()
			c.forget()
			c = launch(t, s)
		}
	})
	c.kill()
	c = startCollector(t, s)
	last := h.open(o.Destination, spillway.Options{Dir: h.dir})
	stats := closing(t, last)
	wantLaw(t, stats)
	least := 0
	for _, c := range children {
		for _, n := range c.accepted() {
			least += int(n)
		}
	}
	waitLines(t, out, least)
	c.stop()
	into := newLedger()
	for _, l := range readLines(t, out) {
		into.line(l)
	}
	into.check(t)
	wantAll(t, into, children...)
	h.wantEmpty()
	figure(t, "%d kills, %d events", len(children), least)
	if t.Failed() {
		t.Logf("at the end: %+v", stats)
		h.tell()
	}
}

// TestLoggerKillFile has the logger write a file: each event is in it once, and those of a
// goroutine stand in the order of its calls, whatever their tags.
func TestLoggerKillFile(t *testing.T) {
	t.Parallel()
	for _, spill := range []bool{false, true} {
		t.Run(fmt.Sprintf("spill=%t", spill), func(t *testing.T) {
			t.Parallel()
			r := random(t)
			h := newHome(t)
			out := t.TempDir()
			path := filepath.Join(out, "out.jsonl")
			o := order{
				Destination: "file://" + path, Prefix: mixed, Goroutines: 4,
				Options: childOptions{Shm: h.shm, RingSize: 1 << 20},
			}
			if spill {
				o.Options.Dir = h.dir
			}
			children := killChildren(t, r, o, max(1, kills(t)/2), nil)
			last := h.open(o.Destination, spillway.Options{Dir: o.Options.Dir})
			stats := closing(t, last)
			wantLaw(t, stats)
			into := newLedger()
			text, err := os.ReadFile(path)
			must(t, err)
			lines := 0
			for b := range bytes.Lines(text) {
				l, err := parseLine(b)
				if err != nil {
					t.Errorf("line %d: %q: %v", lines, tail(string(b), 300), err)
					break
				}
				into.line(l)
				lines++
			}
			into.check(t)
			wantAll(t, into, children...)
			h.wantEmpty()
			figure(t, "%d kills, %d lines", len(children), lines)
			if t.Failed() {
				t.Logf("at the end: %+v", stats)
				h.tell()
			}
		})
	}
}
