// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/window"
)

// sequential is a fake's answer that takes chunks in the order in which they come: from the first
// that it lets wait on, all of them wait.
func sequential(d *fake, wait func() bool) func(*job1) string {
	return func(*job1) string {
		if len(d.pending) > 1 || wait() {
			return "later"
		}
		return "ok"
	}
}

// Events of one goroutine keep their order under whatever tags, through ring, spill and successors.
func TestOrdered(t *testing.T) {
	for range needs.Rounds(t, "SPILLWAY_ROUNDS", 10, 150) {
		seed := uint64(time.Now().UnixNano())
		rnd := rand.New(rand.NewPCG(seed, 0))
		dir, mem := t.TempDir(), shmDir(t)
		conf := func(c *Config) {
			c.Ordered, c.Shm, c.Overflow, c.MaxWait = true, mem, Block, time.Minute
			if c.Dir = dir; rnd.IntN(2) == 0 {
				c.MaxDisk = MinMaxDisk
			}
		}
		var took []sent
		n := uint32(0)
		for range 1 + rnd.IntN(3) {
			d := &fake{}
			down := rnd.IntN(2) == 0
			d.answer = sequential(d, func() bool { return down })
			f := open(t, d, conf)
			for range rnd.IntN(6) {
				tags, from := 1+rnd.IntN(30), n
				for ; n < from+uint32(rnd.IntN(3000)); n++ {
					f.must("t"+strconv.Itoa(rnd.IntN(tags)), 1, n, n+1, rnd.IntN(100))
				}
				d.mu.Lock()
				down = rnd.IntN(2) == 0
				d.mu.Unlock()
				if rnd.IntN(3) == 0 {
					d.mu.Lock()
					pending := slices.Clone(d.pending)
					d.mu.Unlock()
					for _, j := range pending {
						d.finish(j, "ok")
					}
				}
			}
			var left *UndeliveredError
			if err := f.abandon(10 * time.Millisecond); err != nil && !errors.As(err, &left) {
				t.Errorf("seed %d: %v", seed, err)
			}
			f.law()
			took = append(took, d.all()...)
		}
		d := &fake{}
		f := open(t, d, conf)
		f.close()
		ordered(t, append(took, d.all()...), map[uint32]uint32{1: n})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		for _, where := range []string{mem, dir} {
			if left := entriesOf(t, where); len(left) > 0 {
				t.Errorf("seed %d: left %q", seed, left)
			}
		}
	}
}

// A window of many runs takes one mark, and has bounds.
func TestRuns(t *testing.T) {
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) { c.Ordered, c.FlushInterval = true, time.Hour })
	for n := range uint32(3000) {
		f.must("t"+strconv.Itoa(int(n%2)), 1, n, n+1, 0)
	}
	marks := 0
	eventually(t, "all is on its way", func() bool {
		if err := f.m.mail.ask(t.Context(), func() { f.m.enter(sealed) }); err != nil {
			t.Fatal(err)
		}
		return f.m.Stats().InFlight == 3000
	})
	if err := f.m.mail.ask(t.Context(), func() { marks = f.m.rings.cur.Load().Marks() }); err != nil {
		t.Fatal(err)
	}
	if want := (3000 + window.MaxRuns - 1) / window.MaxRuns; marks != want {
		t.Errorf("%d marks, not %d", marks, want)
	}
	for i, j := range d.pending {
		if j.c.Events != 1 {
			t.Fatalf("chunk %d has %d events", i, j.c.Events)
		}
	}
	d.open()
	eventually(t, "no marks", func() bool {
		if err := f.m.mail.ask(t.Context(), func() { marks = f.m.rings.cur.Load().Marks() }); err != nil {
			t.Fatal(err)
		}
		return marks == 0
	})
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 3000})
}
