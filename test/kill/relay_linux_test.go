// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"testing"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestRelayKillLogger has the ring of a logger in front, whose process is killed too.
func TestRelayKillLogger(t *testing.T) {
	t.Parallel()
	r := rig.Random(t)
	h := rig.NewHome(t)
	y := newRelay(t, r, 1, "")
	o := rig.Order{
		Destination: "forward://" + y.addr(0) + "?" + rig.Quickly, Goroutines: 4,
		Options: rig.ChildOptions{Shm: h.Shm, Dir: h.Dir, RingSize: 1 << 20},
	}
	children := rig.KillChildren(t, r, o, rig.Kills(t), func() {
		if r.IntN(2) == 0 {
			y.kill()
		}
	})
	last := h.Open(o.Destination, spillway.Options{Dir: h.Dir})
	rig.WantLaw(t, rig.Closing(t, last))
	least := 0
	for _, c := range children {
		for _, n := range c.Accepted() {
			least += int(n)
		}
	}
	rig.WaitLines(t, y.out, least)
	y.stop()
	into := rig.NewLedger()
	for _, l := range rig.ReadLines(t, y.out) {
		into.Line(l)
	}
	into.Check(t)
	rig.WantAll(t, into, children...)
	h.WantEmpty()
	rig.Figure(t, "%d kills, %d events", len(children), least)
}
