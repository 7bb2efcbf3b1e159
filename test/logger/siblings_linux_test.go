// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestLoggerKillSiblings runs several processes of one name side by side, each with a file of its
// own, and kills all of them. One successor takes over what they left and is killed as well. An
// event of one of them may stand in its file or in that of a successor, and stands there once.
func TestLoggerKillSiblings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, query string
		spill       bool
	}{
		{"ring", "", false},
		{"spill", "", true},
		{"rotated", "?max_size=1MiB", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := rig.Random(t)
			h := rig.NewHome(t)
			out := t.TempDir()
			o := rig.Order{
				Destination: "file://" + filepath.Join(out, "out.{pid}.jsonl") + tt.query,
				Goroutines:  2, Prefix: rig.Mixed,
				Options: rig.ChildOptions{Shm: h.Shm, RingSize: 1 << 20},
			}
			if tt.spill {
				o.Options.Dir = h.Dir
			}
			children := killGroups(t, r, o, max(2, rig.Kills(t)/2))
			last := h.Open(o.Destination, spillway.Options{Dir: o.Options.Dir})
			stats := rig.Closing(t, last)
			rig.WantLaw(t, stats)
			into := rig.NewLedger()
			paths, err := filepath.Glob(filepath.Join(out, "out.*.jsonl"))
			rig.Must(t, err)
			lines := 0
			for _, path := range paths {
				lines += into.File(t, path)
			}
			into.Sort() // one stream may be in several files
			into.Check(t)
			rig.WantAll(t, into, children...)
			h.WantEmpty()
			rig.Figure(t, "%d kills, %d files, %d lines", len(children), len(paths), lines)
			if t.Failed() {
				t.Logf("at the end: %+v", stats)
				h.Tell()
			}
		})
	}
}

// killGroups runs rounds of several children of one name side by side, and kills all of them. Each
// third round is one successor of all. Now and then they are eight.
func killGroups(t testing.TB, r *rand.Rand, o rig.Order, rounds int) (children []*rig.ChildProcess) {
	t.Helper()
	prefix := o.Prefix
	for round := range rounds {
		side := 1
		switch {
		case round%10 == 9:
			side = 8
		case round%3 != 2:
			side = 2 + r.IntN(3)
		}
		var group []*rig.ChildProcess
		for i := range side {
			o.Prefix = fmt.Sprint(prefix, "r", round, "c", i)
			o.Pad = r.IntN(400)
			o.Page = filepath.Join(t.TempDir(), "page")
			group = append(group, rig.StartChild(t, o))
		}
		if r.IntN(5) > 0 { // otherwise they may be killed while they start and adopt
			for _, c := range group {
				rig.Eventually(t, "the child logs", func() bool { return c.Over() || c.Accepted()[0] > 0 })
			}
		}
		r.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
		for _, c := range group {
			<-time.After(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
			c.Kill()
		}
		children = append(children, group...)
	}
	return children
}

// TestLoggerKillTogether is the same with other destinations: one server, two that fail over to
// each other, and a pipe that all of them write to, where what a process was writing comes again.
func TestLoggerKillTogether(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"one server", "two servers", "pipe"} {
		for _, spill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/spill=%t", to, spill), func(t *testing.T) {
				t.Parallel()
				r := rig.Random(t)
				h := rig.NewHome(t)
				o := rig.Order{Goroutines: 2, Options: rig.ChildOptions{Shm: h.Shm, RingSize: 1 << 20}}
				if spill {
					o.Options.Dir = h.Dir
				}
				into := rig.NewLedger()
				end := func() {}
				switch to {
				case "pipe":
					o.Destination, o.Stdout, o.Prefix = "stdout:", filepath.Join(t.TempDir(), "pipe"), rig.Mixed
					end = into.Pipe(t, o.Stdout)
				case "one server":
					o.Destination = servers(t, r, into, 1)
				default:
					o.Destination = servers(t, r, into, 2)
					end = into.Sort
				}
				children := killGroups(t, r, o, max(2, rig.Kills(t)/4))
				o.Goroutines = 0
				stats := rig.StartChild(t, o).End().Stats
				end()
				into.Check(t)
				events := rig.WantAll(t, into, children...)
				h.WantEmpty()
				rig.Figure(t, "%d kills, %d events, %d chunks repeated", len(children), events, into.Repeated)
				if t.Failed() {
					t.Logf("at the end: %+v", stats)
					h.Tell()
				}
			})
		}
	}
}

// servers are those of a destination, with one ledger. Now and then one resets a connection in
// place of an ack.
func servers(t testing.TB, r *rand.Rand, into *rig.Ledger, n int) (destination string) {
	t.Helper()
	var hosts []string
	for range n {
		s, dice := rig.NewFake(t), rand.New(rand.NewPCG(r.Uint64(), 0))
		s.Ledger = into
		s.Manners = func(c *rig.FakeConn, id string) bool {
			if dice.IntN(20) == 0 {
				c.Reset()
			} else {
				c.Ack(id)
			}
			return true
		}
		s.Up()
		hosts = append(hosts, s.Addr)
	}
	return "forward://" + strings.Join(hosts, ",") + "?min_backoff=1ms&max_backoff=20ms"
}
