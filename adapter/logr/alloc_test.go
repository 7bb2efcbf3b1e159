// SPDX-License-Identifier: Apache-2.0

//go:build !race

package spillwaylogr

import (
	"testing"

	"github.com/go-logr/logr"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
)

// TestAllocations counts them: the race detector lets sync.Pool forget at random, so this is not
// for it.
func TestAllocations(t *testing.T) {
	log := alike.Open(t, "discard:", &spillway.Options{Shm: "none"})
	l := logr.New(NewSink(log)).WithName("n").WithValues("a", 1)
	pairs := []any{"s", "x", "n", 1, "ok", true}
	f := func() { l.Info("m", pairs...) }
	f()
	if n := testing.AllocsPerRun(200, f); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
