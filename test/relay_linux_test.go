// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/spillwaylog/spillway"
)

// TestRelayKillLogger has the ring of a logger in front, whose process is killed too.
func TestRelayKillLogger(t *testing.T) {
	t.Parallel()
	r := random(t)
	h := newHome(t)
	y := newRelay(t, r, 1, "")
	o := order{
		Destination: "forward://" + y.addr(0) + "?" + quickly, Goroutines: 4,
		Options: childOptions{Shm: h.shm, Dir: h.dir, RingSize: 1 << 20},
	}
	children := killChildren(t, r, o, kills(t), func() {
		if r.IntN(2) == 0 {
			y.kill()
		}
	})
	last := h.open(o.Destination, spillway.Options{Dir: h.dir})
	wantLaw(t, closing(t, last))
	least := 0
	for _, c := range children {
		for _, n := range c.accepted() {
			least += int(n)
		}
	}
	waitLines(t, y.out, least)
	y.stop()
	into := newLedger()
	for _, l := range readLines(t, y.out) {
		into.line(l)
	}
	into.check(t)
	wantAll(t, into, children...)
	h.wantEmpty()
	figure(t, "%d kills, %d events", len(children), least)
}
