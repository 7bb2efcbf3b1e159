// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// Rings of dead processes as an input of the collector.

// ringSetup is a collector that takes over what is left in h, and listens.
func ringSetup(t testing.TB, h *rig.Home, params string) (*rig.Setup, string) {
	t.Helper()
	s, out := rig.NewSetup(t)
	s.Args = append(s.Args, "--listen", "ring://"+h.Shm+"?"+params)
	return s, out
}

// fromLines is what is in the lines of a collector's files.
func fromLines(t testing.TB, out string) *rig.Ledger {
	t.Helper()
	l := rig.NewLedger()
	for _, path := range rig.LineFiles(t, out) {
		l.File(t, path)
	}
	l.Check(t)
	return l
}

// TestRings has a collector take over what processes left whose server was down.
func TestRings(t *testing.T) {
	t.Parallel()
	for _, spill := range []bool{false, true} {
		t.Run(fmt.Sprintf("spill=%t", spill), func(t *testing.T) {
			t.Parallel()
			h := rig.NewHome(t)
			f := rig.NewFake(t)
			f.Down()
			var dead []*rig.ChildProcess
			for i := range 3 {
				o := orphan(h, f, fmt.Sprint("dead", i))
				if spill {
					o.Options.Dir, o.Options.RingSize = h.Dir, 1<<20
				}
				dead = append(dead, rig.StartChild(t, o))
			}
			for _, c := range dead {
				c.Wait("posted")
			}
			for _, c := range dead {
				c.Kill()
			}
			s, out := ringSetup(t, h, "after=0s")
			c := rig.StartCollector(t, s)
			rig.WaitLines(t, out, len(dead)*4*3000)
			rig.Eventually(t, "nothing is left", func() bool { return len(h.Rings()) == 0 })
			c.Stop()
			rig.WantAll(t, fromLines(t, out), dead...)
			h.WantEmpty()
		})
	}
}

// TestRingsLiving: what belongs to a living process is not touched, and what is for a file neither,
// unless any=true says so.
func TestRingsLiving(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	f, others := rig.NewFake(t), rig.NewFake(t)
	f.Down()
	others.Down()
	// The living one has another destination, or it takes over the dead one's ring itself, when it
	// next looks for rings.
	alive := rig.StartChild(t, orphan(h, f, "alive"))
	alive.Wait("posted")
	file := orphan(h, others, "file")
	file.Destination = "file://" + t.TempDir() + "/full/x.jsonl" // which cannot be made
	rig.Must(t, os.WriteFile(filepath.Dir(strings.TrimPrefix(file.Destination, "file://")), nil, 0o600))
	forFile := rig.StartChild(t, file)
	forFile.Wait("posted")
	dead := rig.StartChild(t, orphan(h, others, "dead"))
	dead.Wait("posted")
	forFile.Kill()
	dead.Kill()
	s, out := ringSetup(t, h, "after=100ms")
	c := rig.StartCollector(t, s)
	rig.WaitLines(t, out, 4*3000)
	rig.Eventually(t, "the dead one's ring is gone", func() bool { return len(h.Rings()) == 2 })
	c.Stop()
	rig.WantAll(t, fromLines(t, out), dead)
	s.Args[len(s.Args)-1] += "&any=true"
	c = rig.StartCollector(t, s)
	rig.WaitLines(t, out, 2*4*3000)
	rig.Eventually(t, "the file's ring is gone", func() bool { return len(h.Rings()) == 1 })
	c.Stop()
	rig.WantAll(t, fromLines(t, out), dead, forFile)
	f.Up()
	alive.End()
	f.Ledger.Check(t)
	rig.WantAll(t, f.Ledger, alive)
	if got := fromLines(t, out).Streams["alive.0"]; len(got) > 0 {
		t.Errorf("%d events of the living one were taken", len(got))
	}
	h.WantEmpty()
}

// TestRingsBoth: a logger of the same name and the collector look for rings at the same moment, and
// each event is there once. What the dead had sent may be known to the collector, or not.
func TestRingsBoth(t *testing.T) {
	t.Parallel()
	r := rig.Random(t)
	h := rig.NewHome(t)
	s, out := ringSetup(t, h, "after=0s")
	addr := needs.Address()
	s.Listen = []string{"forward://" + addr}
	o := rig.Order{
		Destination: "forward://" + addr + "?" + rig.Quickly, Goroutines: 2, Count: 500, Pad: 200,
		Options: rig.ChildOptions{Shm: h.Shm, Dir: h.Dir, RingSize: 256 << 10},
	}
	var all []*rig.ChildProcess
	for round := range needs.Rounds(t, "SPILLWAY_KILLS", 3, 3) {
		var dead []*rig.ChildProcess
		for i := range 4 {
			o.Prefix = fmt.Sprintf("r%d-%d", round, i)
			dead = append(dead, rig.StartChild(t, o))
		}
		for _, c := range dead {
			c.Wait("posted")
		}
		for _, c := range dead {
			c.Kill()
		}
		all = append(all, dead...)
		c := rig.Launch(t, s)
		successors := []*rig.ChildProcess{rig.StartChild(t, adopter(o)), rig.StartChild(t, adopter(o))}
		for _, successor := range successors {
			successor.Wait("posted")
		}
		if r.IntN(2) == 0 { // in the middle, perhaps
			c.Kill()
			c = rig.Launch(t, s)
		}
		for _, successor := range successors {
			successor.End()
		}
		rig.Eventually(t, "nothing is left", func() bool { return len(h.Left()) == 0 })
		c.Says("listening")
		c.Stop()
	}
	rig.WantAll(t, fromLines(t, out), all...)
	h.WantEmpty()
}

// TestRingsKill kills twenty processes at random moments, and sometimes the collector that they
// send to, which takes over what they leave: each event that they accepted is there once, in order.
func TestRingsKill(t *testing.T) {
	t.Parallel()
	for _, spill := range []bool{false, true} {
		t.Run(fmt.Sprintf("spill=%t", spill), func(t *testing.T) { ringsKill(t, spill) })
	}
}

func ringsKill(t *testing.T, spill bool) {
	t.Parallel()
	r := rig.Random(t)
	h := rig.NewHome(t)
	s, out := ringSetup(t, h, "after=50ms")
	addr := needs.Address()
	s.Listen = []string{"forward://" + addr}
	c := rig.StartCollector(t, s)
	o := rig.Order{
		Destination: "forward://" + addr + "?" + rig.Quickly, Goroutines: 2, Count: 10000,
		Options: rig.ChildOptions{Shm: h.Shm, RingSize: 1 << 20},
	}
	if spill {
		o.Options.Dir, o.Options.RingSize = h.Dir, 256<<10
	}
	var all []*rig.ChildProcess
	rounds := needs.Rounds(t, "SPILLWAY_KILLS", 1, 1)
	for round := range rounds {
		down := spill || r.IntN(3) == 0
		if down { // while it is, nothing is sent
			c.Kill()
		}
		var living []*rig.ChildProcess
		for i := range 20 {
			o.Prefix, o.Pad = fmt.Sprintf("r%d-%d", round, i), r.IntN(400)
			living = append(living, rig.StartChild(t, o))
		}
		all = append(all, living...)
		for _, p := range living {
			if r.IntN(5) > 0 { // else it may be killed while it starts
				// One may have filled the ring.
				rig.Eventually(t, "the child logs", func() bool { return p.Over() || slices.Max(p.Accepted()) > 0 })
			}
		}
		r.Shuffle(len(living), func(i, k int) { living[i], living[k] = living[k], living[i] })
		for _, p := range living {
			select {
			case <-p.Done:
				t.Fatalf("the child ended by itself: %v\n%s", p.Cmd.ProcessState, rig.Tail(p.Log.String(), 6000))
			case <-time.After(time.Duration(r.Int64N(int64(20 * time.Millisecond)))):
			}
			p.Kill()
		}
		if down {
			c = rig.StartCollector(t, s)
		}
		for r.IntN(2) == 0 { // while it takes over, perhaps
			<-time.After(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
			c.Kill()
			c = rig.StartCollector(t, s)
		}
		rig.Eventually(t, "all rings are taken over", func() bool { return len(h.Left()) == 0 })
	}
	c.Stop()
	events := rig.WantAll(t, fromLines(t, out), all...)
	h.WantEmpty()
	rig.Figure(t, "%d rounds, %d processes killed, %d events", rounds, len(all), events)
}
