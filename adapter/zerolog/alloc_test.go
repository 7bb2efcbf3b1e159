// SPDX-License-Identifier: Apache-2.0

//go:build !race

package spillwayzerolog

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
)

// TestAllocations counts them: the race detector lets sync.Pool forget at random, so this is not
// for it.
func TestAllocations(t *testing.T) {
	log := alike.Open(t, "discard:", &spillway.Options{Shm: "none"})
	l := zerolog.New(NewWriter(log)).With().Timestamp().Logger()
	f := func() { l.Info().Str("s", "x\ny").Int("n", 1).Float64("f", 1.5).Dur("d", time.Second).Msg("m") }
	f()
	if n := testing.AllocsPerRun(200, f); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
