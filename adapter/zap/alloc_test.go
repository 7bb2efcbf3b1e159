// SPDX-License-Identifier: Apache-2.0

//go:build !race

package spillwayzap

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/spillwaylog/spillway"
)

// TestAllocations counts them: the race detector lets sync.Pool forget at random, so this is not for it.
func TestAllocations(t *testing.T) {
	log, err := spillway.Open("discard:", &spillway.Options{Shm: "none"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
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
