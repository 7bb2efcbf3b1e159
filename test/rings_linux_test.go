// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// Rings of dead processes as an input of the collector.

// ringSetup is a collector that takes over what is left in h, and listens.
func ringSetup(t testing.TB, h *home, params string) (*setup, string) {
	t.Helper()
	s, out := newSetup(t)
	s.args = append(s.args, "--listen", "ring://"+h.shm+"?"+params)
	return s, out
}

// fromLines is what is in the lines of a collector's files.
func fromLines(t testing.TB, out string) *ledger {
	t.Helper()
	l := newLedger()
	for _, path := range jsonlFiles(t, out) {
		l.file(t, path)
	}
	l.check(t)
	return l
}

// TestRings has a collector take over what processes left whose server was down.
func TestRings(t *testing.T) {
	t.Parallel()
	for _, spill := range []bool{false, true} {
		t.Run(fmt.Sprintf("spill=%t", spill), func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			f := newFake(t)
			f.down()
			var dead []*childProcess
			for i := range 3 {
				o := orphan(h, f, fmt.Sprint("dead", i))
				if spill {
					o.Options.Dir, o.Options.RingSize = h.dir, 1<<20
				}
				dead = append(dead, startChild(t, o))
			}
			for _, c := range dead {
				c.wait("posted")
			}
			for _, c := range dead {
				c.kill()
			}
			s, out := ringSetup(t, h, "after=0s")
			c := startCollector(t, s)
			waitLines(t, out, len(dead)*4*3000)
			eventually(t, "nothing is left", func() bool { return len(h.rings()) == 0 })
			c.stop()
			wantAll(t, fromLines(t, out), dead...)
			h.wantEmpty()
		})
	}
}

// TestRingsLiving: what belongs to a living process is not touched, and what is for a file neither,
// unless any=true says so.
func TestRingsLiving(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	f := newFake(t)
	f.down()
	alive := startChild(t, orphan(h, f, "alive"))
	alive.wait("posted")
	file := orphan(h, f, "file")
	file.Destination = "file://" + t.TempDir() + "/full/x.jsonl" // which cannot be made
	must(t, os.WriteFile(filepath.Dir(strings.TrimPrefix(file.Destination, "file://")), nil, 0o600))
	forFile := startChild(t, file)
	forFile.wait("posted")
	dead := startChild(t, orphan(h, f, "dead"))
	dead.wait("posted")
	forFile.kill()
	dead.kill()
	s, out := ringSetup(t, h, "after=100ms")
	c := startCollector(t, s)
	waitLines(t, out, 4*3000)
	eventually(t, "the dead one's ring is gone", func() bool { return len(h.rings()) == 2 })
	c.stop()
	wantAll(t, fromLines(t, out), dead)
	s.args[len(s.args)-1] += "&any=true"
	c = startCollector(t, s)
	waitLines(t, out, 2*4*3000)
	eventually(t, "the file's ring is gone", func() bool { return len(h.rings()) == 1 })
	c.stop()
	wantAll(t, fromLines(t, out), dead, forFile)
	f.up()
	alive.end()
	f.ledger.check(t)
	wantAll(t, f.ledger, alive)
	if got := fromLines(t, out).streams["alive.0"]; len(got) > 0 {
		t.Errorf("%d events of the living one were taken", len(got))
	}
	h.wantEmpty()
}

// TestRingsBoth: a logger of the same name and the collector look for rings at the same moment, and
// each event is there once. What the dead had sent may be known to the collector, or not.
func TestRingsBoth(t *testing.T) {
	t.Parallel()
	r := random(t)
	h := newHome(t)
	s, out := ringSetup(t, h, "after=0s")
	addr := needs.Address()
	s.listen = []string{"forward://" + addr}
	o := order{
		Destination: "forward://" + addr + "?" + quickly, Goroutines: 2, Count: 500, Pad: 200,
		Options: childOptions{Shm: h.shm, Dir: h.dir, RingSize: 256 << 10},
	}
	var all []*childProcess
	for round := range needs.Rounds(t, "SPILLWAY_KILLS", 3, 4) {
		var dead []*childProcess
		for i := range 4 {
			o.Prefix = fmt.Sprintf("r%d-%d", round, i)
			dead = append(dead, startChild(t, o))
		}
		for _, c := range dead {
			c.wait("posted")
		}
		for _, c := range dead {
			c.kill()
		}
		all = append(all, dead...)
		c := launch(t, s)
		successors := []*childProcess{startChild(t, adopter(o)), startChild(t, adopter(o))}
		for _, successor := range successors {
			successor.wait("posted")
		}
		if r.IntN(2) == 0 { // in the middle, perhaps
			c.kill()
			c = launch(t, s)
		}
		for _, successor := range successors {
			successor.end()
		}
		eventually(t, "nothing is left", func() bool { return len(h.left()) == 0 })
		c.says("listening")
		c.stop()
	}
	wantAll(t, fromLines(t, out), all...)
	h.wantEmpty()
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
	r := random(t)
	h := newHome(t)
	s, out := ringSetup(t, h, "after=50ms")
	addr := needs.Address()
	s.listen = []string{"forward://" + addr}
	c := startCollector(t, s)
	o := order{
		Destination: "forward://" + addr + "?" + quickly, Goroutines: 2, Count: 10000,
		Options: childOptions{Shm: h.shm, RingSize: 1 << 20},
	}
	if spill {
		o.Options.Dir, o.Options.RingSize = h.dir, 256<<10
	}
	var all []*childProcess
	rounds := needs.Rounds(t, "SPILLWAY_KILLS", 1, 1)
	for round := range rounds {
		down := spill || r.IntN(3) == 0
		if down { // while it is, nothing is sent
			c.kill()
		}
		var living []*childProcess
		for i := range 20 {
			o.Prefix, o.Pad = fmt.Sprintf("r%d-%d", round, i), r.IntN(400)
			living = append(living, startChild(t, o))
		}
		all = append(all, living...)
		for _, p := range living {
			if r.IntN(5) > 0 { // else it may be killed while it starts
				// One may have filled the ring.
				eventually(t, "the child logs", func() bool { return p.over() || slices.Max(p.accepted()) > 0 })
			}
		}
		r.Shuffle(len(living), func(i, k int) { living[i], living[k] = living[k], living[i] })
		for _, p := range living {
			select {
			case <-p.done:
				t.Fatalf("the child ended by itself: %v\n%s", p.cmd.ProcessState, tail(p.log.String(), 6000))
			case <-time.After(time.Duration(r.Int64N(int64(20 * time.Millisecond)))):
			}
			p.kill()
		}
		if down {
			c = startCollector(t, s)
		}
		for r.IntN(2) == 0 { // while it takes over, perhaps
			<-time.After(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
			c.kill()
			c = startCollector(t, s)
		}
		eventually(t, "all rings are taken over", func() bool { return len(h.left()) == 0 })
	}
	c.stop()
	events := wantAll(t, fromLines(t, out), all...)
	h.wantEmpty()
	figure(t, "%d rounds, %d processes killed, %d events", rounds, len(all), events)
}
