// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"sync"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/spill"
)

// aloft is a mover's parts with chunks of its ring that are with the destination.
func aloft(t *testing.T, n int) (*air, *shelf, []*job1) {
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
	for range n {
		f := l.air.pool.take()
		forward.AppendID(f.ID[:0])
		f.src, f.Chunk = g.rings.cur.Load(), forward.Chunk{Tag: "a", ID: f.ID[:], Own: true}
		f.Chunk.Entries, f.Chunk.Events = []byte{0x92, 1, 0x80}, 1
		l.air.submit(f)
	}
	return l.air, l.spiller.shelf, d.pending
}

// TestAsideWhileItLands: the destination may answer, on a goroutine of its own, just when the
// mover's takes note that the chunk was put aside.
func TestAsideWhileItLands(t *testing.T) {
	a, shelf, jobs := aloft(t, 1)
	b := newBacklog(a.ground, shelf, a.pool, &spill.Spill{}, nil)
	var answered sync.WaitGroup
	answered.Go(func() { jobs[0].done(output.Result{Err: output.ErrClosed}) })
	b.putAside(a.out[0], 1)
	answered.Wait()
	a.collect()
	if b.entries.len() != 1 || b.empty() || len(a.given) != 0 {
		t.Error("what the destination gave up is not left in the spill")
	}
}

// TestAsideTooLate: a spill of chunks that are put aside is nothing when the mover's goroutine has
// ended before it was told: what of it is undone is in the ring's care.
func TestAsideTooLate(t *testing.T) {
	a, shelf, _ := aloft(t, 1)
	r := &relief{ground: a.ground, pool: a.pool, shelf: shelf}
	a.mail.close()
	r.begin(a.pinning())
	<-a.disk.rest()
	if left := entriesOf(t, a.cfg.Dir); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// TestAsideInPart: what is done of the chunks that were put aside does not come again.
func TestAsideInPart(t *testing.T) {
	a, shelf, jobs := aloft(t, 3)
	r := &relief{ground: a.ground, pool: a.pool, shelf: shelf, failed: func(err error) { t.Error(err) }}
	do := func() {
		<-a.disk.rest()
		for _, fn := range a.mail.fetch() {
			fn()
		}
	}
	r.begin(a.pinning())
	do()
	for _, j := range jobs[:2] {
		j.done(output.Result{})
	}
	a.collect()
	r.again()
	do()
	r.leave()
	do()
	left := newShelf(a.ground).scout(nil)
	defer closeAll(left)
	if len(left) != 1 || len(left[0].Found) != 1 || !left[0].IDs[[idLen]byte([]byte(jobs[2].id))] {
		t.Errorf("left %d spills, %+v", len(left), left)
	}
}
