// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/spill"
)

// aloft is a mover's parts with one chunk of its ring that is with the destination.
func aloft(t *testing.T) (*air, *shelf, *flight, *job1) {
	t.Helper()
	d := &fake{answer: later}
	c, err := (&Config{Name: "test", Destination: d, Dir: t.TempDir(), Diagnostics: func(err error) { t.Error(err) }}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGround(&c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.rings.cur.Load().close(false) })
	l := newLoop(g, &states{ground: g}, &dead{ground: g})
	f := l.air.pool.take()
	f.src, f.Chunk = g.rings.cur.Load(), forward.Chunk{Tag: "a", ID: f.ID[:], Own: true}
	l.air.submit(f)
	return l.air, l.spiller.shelf, f, d.pending[0]
}

// TestAsideWhileItLands: the destination may answer, on a goroutine of its own, just when the
// mover's takes note that the chunk was put aside.
func TestAsideWhileItLands(t *testing.T) {
	a, shelf, f, j := aloft(t)
	b := newBacklog(a.ground, shelf, a.pool, &spill.Spill{}, nil)
	var answered sync.WaitGroup
	answered.Go(func() { j.done(output.Result{Err: output.ErrClosed}) })
	b.putAside(f, 1)
	answered.Wait()
	a.collect()
	if b.entries.len() != 1 || b.empty() || len(a.given) != 0 {
		t.Error("what the destination gave up is not left in the spill")
	}
}

// TestAsideTooLate: a spill of chunks that are put aside is nothing when the mover's goroutine has
// ended before it was told: what of it is undone is in the ring's care.
func TestAsideTooLate(t *testing.T) {
	a, shelf, f, _ := aloft(t)
	r := &relief{ground: a.ground, pool: a.pool, shelf: shelf}
	a.mail.close()
	r.begin([]*flight{f})
	select {
	case <-a.disk.rest():
	case <-time.After(patience):
		t.Fatal("the disk does not rest")
	}
	if left := entriesOf(t, a.cfg.Dir); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
