// SPDX-License-Identifier: Apache-2.0

package logger

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
	"github.com/spillwaylog/spillway/test/internal/rig"
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
		manners func(s *rig.FakeServer, r *rand.Rand)
	}{
		{"ring", 1, false, "", nil},
		{"spill", 2, true, "ack_timeout=50ms&window=2", func(s *rig.FakeServer, r *rand.Rand) {
			s.Manners = func(c *rig.FakeConn, id string) bool { // so slow that it spills, and now and then deaf
				if r.IntN(10) == 0 {
					return true
				}
				c.AckLater(id, 2*time.Millisecond)
				return true
			}
		}},
		{"server dies too", 2, true, "", func(s *rig.FakeServer, r *rand.Rand) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				switch r.IntN(20) {
				case 0:
					c.Reset()
				case 1:
					go func() {
						s.Down()
						time.AfterFunc(20*time.Millisecond, s.Up)
					}()
				default:
					c.Ack(id)
				}
				return true
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := rig.Random(t)
			h := rig.NewHome(t)
			s := rig.NewFake(t)
			if tt.manners != nil {
				tt.manners(s, rand.New(rand.NewPCG(r.Uint64(), 0)))
			}
			o := rig.Order{
				Destination: s.URL(tt.query), Goroutines: 4,
				Options: rig.ChildOptions{Shm: h.Shm, RingSize: 1 << 20},
			}
			if tt.spill {
				o.Options.Dir = h.Dir
			}
			children := rig.KillChildren(t, r, o, max(1, rig.Kills(t)/tt.divisor), nil)
			last := h.Open(o.Destination, spillway.Options{Dir: o.Options.Dir})
			stats := rig.Closing(t, last)
			rig.WantLaw(t, stats)
			s.Ledger.Check(t)
			events := rig.WantAll(t, s.Ledger, children...)
			h.WantEmpty()
			rig.Figure(t, "%d kills, %d events, %d chunks of which %d repeats", len(children), events, s.Chunks,
				s.Ledger.Repeated)
			if t.Failed() {
				t.Logf("at the end: %+v", stats)
				h.Tell()
			}
		})
	}
}

// TestLoggerKillCollector kills the logger's process and the real collector, both.
func TestLoggerKillCollector(t *testing.T) {
	t.Parallel()
	r := rig.Random(t)
	h := rig.NewHome(t)
	s, out := rig.NewSetup(t)
	s.Listen = []string{"forward://" + needs.Address()}
	o := rig.Order{
		Destination: s.Listen[0] + "?min_backoff=1ms&max_backoff=20ms", Goroutines: 4,
		Options: rig.ChildOptions{Shm: h.Shm, Dir: h.Dir, RingSize: 1 << 20},
	}
	c := rig.StartCollector(t, s)
	children := rig.KillChildren(t, r, o, max(1, rig.Kills(t)/2), func() {
		if r.IntN(2) == 0 {
			c.Kill()
			c.Forget()
			c = rig.Launch(t, s)
		}
	})
	c.Kill()
	c = rig.StartCollector(t, s)
	last := h.Open(o.Destination, spillway.Options{Dir: h.Dir})
	stats := rig.Closing(t, last)
	rig.WantLaw(t, stats)
	least := 0
	for _, c := range children {
		for _, n := range c.Accepted() {
			least += int(n)
		}
	}
	rig.WaitLines(t, out, least)
	c.Stop()
	into := rig.NewLedger()
	for _, l := range rig.ReadLines(t, out) {
		into.Line(l)
	}
	into.Check(t)
	rig.WantAll(t, into, children...)
	h.WantEmpty()
	rig.Figure(t, "%d kills, %d events", len(children), least)
	if t.Failed() {
		t.Logf("at the end: %+v", stats)
		h.Tell()
	}
}

// TestLoggerKillFile has the logger write a file: each event is in it once, and those of a
// goroutine stand in the order of its calls, whatever their tags.
func TestLoggerKillFile(t *testing.T) {
	t.Parallel()
	for _, spill := range []bool{false, true} {
		t.Run(fmt.Sprintf("spill=%t", spill), func(t *testing.T) {
			t.Parallel()
			r := rig.Random(t)
			h := rig.NewHome(t)
			out := t.TempDir()
			path := filepath.Join(out, "out.jsonl")
			o := rig.Order{
				Destination: "file://" + path, Prefix: rig.Mixed, Goroutines: 4,
				Options: rig.ChildOptions{Shm: h.Shm, RingSize: 1 << 20},
			}
			if spill {
				o.Options.Dir = h.Dir
			}
			children := rig.KillChildren(t, r, o, max(1, rig.Kills(t)/2), nil)
			last := h.Open(o.Destination, spillway.Options{Dir: o.Options.Dir})
			stats := rig.Closing(t, last)
			rig.WantLaw(t, stats)
			into := rig.NewLedger()
			text, err := os.ReadFile(path)
			rig.Must(t, err)
			lines := 0
			for b := range bytes.Lines(text) {
				l, err := rig.ParseLine(b)
				if err != nil {
					t.Errorf("line %d: %q: %v", lines, rig.Tail(string(b), 300), err)
					break
				}
				into.Line(l)
				lines++
			}
			into.Check(t)
			rig.WantAll(t, into, children...)
			h.WantEmpty()
			rig.Figure(t, "%d kills, %d lines", len(children), lines)
			if t.Failed() {
				t.Logf("at the end: %+v", stats)
				h.Tell()
			}
		})
	}
}
