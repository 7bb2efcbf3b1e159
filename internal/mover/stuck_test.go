// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/window"
)

// kindOf is the last character of the mark that covers a chunk, 0 if there is none.
func kindOf(m *Mover, id string) (kind byte) {
	raw, number, _ := window.ParseRun([idLen]byte([]byte(id)))
	for _, k := range m.rings.cur.Load().Ring.Marks() {
		kRaw, kNumber, _ := window.ParseRun(k.Label)
		if string(k.Label[:idLen-1]) == id[:idLen-1] || m.cfg.Ordered && kRaw == raw && kNumber <= number {
			kind = k.Label[idLen-1]
		}
	}
	return kind
}

// Chunks that go to the destination because there is no spill have marks that say so.
func TestStuckGoesToTheDestination(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		d := &fake{answer: later}
		f := open(t, d, func(c *Config) { c.Dir, c.Ordered = filepath.Join(file, "spills"), ordered })
		n := uint32(0)
		eventually(t, "stuck", func() bool {
			for range 100 {
				if f.post("t"+strconv.Itoa(int(n%3)), 1, n, 100) == nil {
					n++
				}
			}
			stuck := 0
			if err := f.m.mail.ask(t.Context(), func() { stuck = len(f.m.loop.spiller.stuck) }); err != nil {
				t.Fatal(err)
			}
			return stuck > 0
		})
		left := 0
		d.mu.Lock()
		d.answer = func(j *job1) string { // the mover's goroutine asks
			if l, ok := f.m.loop.delivery.active.(*leftover); ok && l != nil {
				left++
				if kind := kindOf(f.m, j.id); kind != window.ToDestination && kind != window.RunsToDestination {
					t.Errorf("the mark of chunk %s ends with %q", j.id, kind)
				}
			}
			return "ok"
		}
		jobs := d.pending
		d.mu.Unlock()
		for _, j := range append([]*job1(nil), jobs...) {
			d.finish(j, "ok")
		}
		f.close()
		if left == 0 {
			t.Error("nothing was left")
		}
	}
}

// Runs that the spill has no room for have a mark without those before them.
func TestStuckRuns(t *testing.T) {
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) { c.Dir, c.MaxDisk, c.Ordered = t.TempDir(), MinMaxDisk, true })
	n := uint32(0)
	eventually(t, "a window is in the spill in part", func() (partly bool) {
		for range 100 {
			if f.post("t"+strconv.Itoa(int(n%2)), 1, n, 300) == nil {
				n++
			}
		}
		if err := f.m.mail.ask(t.Context(), func() {
			if len(f.m.loop.spiller.stuck) == 0 {
				return
			}
			first := f.m.loop.spiller.stuck[0]
			if q := first.Runs; q.To != window.RunsToSpill || q.Left != len(f.m.loop.spiller.stuck) {
				t.Errorf("%d stuck runs; under their mark, %q, are %d", len(f.m.loop.spiller.stuck), q.To, q.Left)
			}
			raw, number, _ := window.ParseRun(first.ID)
			for _, k := range f.m.rings.cur.Load().Ring.Marks() {
				if kRaw, n, _ := window.ParseRun(k.Label); kRaw == raw && (n != number || k.First != first.First) {
					t.Errorf("a mark is from run %d, key %d, on; stuck are those from %d, key %d", n, k.First, number,
						first.First)
				}
			}
			partly = number > 0
		}); err != nil {
			t.Fatal(err)
		}
		return partly
	})
	d.open()
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: n})
}

// answering has a destination answer what waits, and all that comes, as answer says.
func (d *fake) answering(answer func(j *job1) string) {
	d.mu.Lock()
	d.answer = answer
	jobs := slices.Clone(d.pending)
	d.mu.Unlock()
	for _, j := range jobs {
		d.finish(j, "ok")
	}
}

// TestUnansweredChunk: a chunk that the destination does not answer, the last that a dead process
// or the spill had, does not stop what is younger. A server that refuses it shows that only by
// taking others.
func TestUnansweredChunk(t *testing.T) {
	t.Parallel()
	const quiet = 5 * time.Millisecond
	t.Run("adopted", func(t *testing.T) {
		mem := shmDir(t)
		f := open(t, &fake{answer: later}, func(c *Config) { c.Shm = mem })
		f.must("a", 1, 0, 30, 10)
		_ = f.abandon(10 * time.Millisecond) // leaves everything
		d := &fake{answer: func(j *job1) string {
			if read(j.c).events[0].g == 1 {
				return "later"
			}
			return "ok"
		}}
		g := open(t, d, func(c *Config) { c.Shm, c.quiet = mem, quiet })
		g.must("b", 2, 100, 150, 10)
		eventually(t, "what is younger is delivered", func() bool { return came(d, 149) })
		eventually(t, "that is counted", func() bool { return g.m.Stats().Held == 30 })
		if came(d, 0) {
			t.Errorf("%+v", g.m.Stats())
		}
		d.open()
		g.close()
	})
	t.Run("spilled", func(t *testing.T) {
		d := &fake{answer: later}
		f := open(t, d, func(c *Config) {
			c.Dir, c.Overflow, c.MaxWait, c.quiet = t.TempDir(), Block, patience, quiet
		})
		f.must("a", 1, 0, 2000, 1000)
		waits := false
		d.answering(func(*job1) string { // the mover's goroutine asks
			if sp, ok := f.m.loop.delivery.active.(*backlog); ok && sp.sent() && !waits {
				waits = true
				return "later"
			}
			return "ok"
		})
		f.must("a", 1, 2000, 2100, 1000)
		eventually(t, "what is younger is delivered", func() bool { return came(d, 2099) })
		if f.m.Stats().Held == 0 {
			t.Error("nothing was left unanswered")
		}
		d.open()
		f.close()
	})
}
