// SPDX-License-Identifier: Apache-2.0

//go:build !race

package spillwayzap

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
)

// TestAllocations counts them: the race detector lets sync.Pool forget at random, so this is not
// for it.
func TestAllocations(t *testing.T) {
	log := alike.Open(t, "discard:", &spillway.Options{Shm: "none"})
	l := zap.New(NewCore(log)).Named("n").With(zap.Namespace("with"), zap.Int("a", 1))
	now := time.Now()
	f := func() {
		if ce := l.Check(zap.InfoLevel, "m"); ce != nil {
			ce.Write(zap.Int("n", 1), zap.String("s", "x"), zap.Time("t", now), zap.Duration("d", time.Second))
		}
	}
	f()
	if n := testing.AllocsPerRun(200, f); n > 1 { // the fields, which zap lets escape
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(200, func() { l.Debug("below the level") }); n > 0 {
		t.Errorf("below the level: %v allocations", n)
	}
}
