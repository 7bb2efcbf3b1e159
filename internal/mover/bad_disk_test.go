// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// An illness of a spill disk. The seam is told what to do; what is done to the folder is undone by
// cure.
type illness struct {
	name  string
	hangs bool
	gone  bool // what the spill held is lost
	why   string
	fall  func(t *testing.T, dir string, s *seam) (cure func())
}

// failing has writes fail, and reads too.
func failing(err error, reads bool) func(*testing.T, string, *seam) func() {
	return func(_ *testing.T, _ string, s *seam) func() {
		s.set(nil, err)
		if reads {
			s.reading()
		}
		return func() { s.set(nil, nil) }
	}
}

// hanging has writes hang, and reads too.
func hanging(reads bool) func(*testing.T, string, *seam) func() {
	return func(_ *testing.T, _ string, s *seam) func() {
		hang := make(chan struct{})
		s.set(hang, nil)
		if reads {
			s.reading()
		}
		return func() {
			s.set(nil, nil)
			close(hang)
		}
	}
}

// removed takes the folder away; again says that another can be made at once.
func removed(again bool) func(*testing.T, string, *seam) func() {
	return func(t *testing.T, dir string, _ *seam) func() {
		eventually(t, "the folder is removed", func() bool { return os.RemoveAll(dir) == nil })
		if again {
			return func() {}
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil { // so that none can be made
			t.Fatal(err)
		}
		return func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		}
	}
}

// unwritable lets no new file be made.
func unwritable(_ *testing.T, _ string, s *seam) func() {
	s.mu.Lock()
	s.make = syscall.EACCES
	s.mu.Unlock()
	return func() { s.set(nil, nil) }
}

var illnesses = []illness{
	{name: "EIO", why: "input/output error", fall: failing(syscall.EIO, false)},
	{name: "EDQUOT", why: "quota", fall: failing(syscall.EDQUOT, false)},
	{name: "EFBIG", why: "file too large", fall: failing(syscall.EFBIG, false)},
	{name: "ENOSPC", why: "no space", fall: failing(syscall.ENOSPC, false)},
	{name: "EIO, reads too", why: "input/output error", fall: failing(syscall.EIO, true)},
	{name: "frozen", hangs: true, why: "hangs", fall: hanging(false)},
	{name: "hangs, reads too", hangs: true, why: "hangs", fall: hanging(true)},
	{name: "removed", gone: true, fall: removed(true)},
	{name: "removed, and none can be made", gone: true, fall: removed(false)},
	{name: "unwritable", why: "permission denied", fall: unwritable},
}

// TestBadDisk has a spill disk fall ill in each way, before it holds anything and while it does,
// with a destination that takes things then and one that does not, and be cured or not. Whatever
// the disk does: calls return, what is in memory reaches a destination that takes it, each event is
// accounted for, the successor has what was held, and a disk that is cured is spilled to again.
func TestBadDisk(t *testing.T) {
	t.Parallel()
	for i, ill := range illnesses {
		for bits := range 1 << 4 {
			bit := func(i int) bool { return bits>>i&1 == 1 }
			c := badDisk{illness: ill, holding: bit(0), healthy: bit(1), cured: bit(2), ordered: bit(3)}
			if !needs.Long() && (i+bits+bits>>1+bits>>2+bits>>3)&1 == 1 {
				continue // for each state the one order or the other
			}
			t.Run(fmt.Sprintf("%s/holding=%t/healthy=%t/cured=%t/ordered=%t", ill.name, c.holding, c.healthy, c.cured,
				c.ordered), func(t *testing.T) {
				t.Parallel()
				c.run(t)
			})
		}
	}
}

type badDisk struct {
	illness
	holding, healthy, cured, ordered bool

	f     *fixture
	d     *fake
	next  uint32
	last  error           // with which an event was refused
	count map[uint32]bool // accepted
}

// post appends n events; those that find no room are refused.
func (c *badDisk) post(t *testing.T, n int) {
	t.Helper()
	for range n {
		switch err := c.f.post("t"+fmt.Sprint(c.next%2), 1, c.next, 1000); {
		case err == nil:
			c.count[c.next] = true
		case !errors.Is(err, ErrFull):
			t.Fatal(err)
		default:
			c.last = err
		}
		c.next++
	}
}

// spills has the destination take nothing until the spill grows.
func (c *badDisk) spills(t *testing.T, what string) {
	t.Helper()
	c.d.mu.Lock()
	c.d.answer = later
	c.d.mu.Unlock()
	before := c.f.m.Stats().Spilled
	eventually(t, what, func() bool {
		c.post(t, 100)
		return c.f.m.Stats().Spilled > before+200
	})
}

// unread is how many bytes in the spill were not yet asked for.
func (c *badDisk) unread(t *testing.T) (n uint64) {
	t.Helper()
	if err := c.f.m.mail.ask(t.Context(), func() {
		if sp := c.f.m.loop.spiller.own; sp != nil {
			for i := sp.next; i < sp.entries.Len(); i++ {
				n += sp.entries.At(i).Bytes
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// came says that the destination has an event.
func came(d *fake, n uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.took) - 1; i >= 0; i-- {
		for _, e := range d.took[i].events {
			if e.n == n {
				return true
			}
		}
	}
	return false
}

func (c *badDisk) run(t *testing.T) {
	dir, mem, s := filepath.Join(t.TempDir(), "spills"), shmDir(t), &seam{}
	conf := func(cfg *Config) {
		cfg.Dir, cfg.Shm, cfg.fs, cfg.Ordered = dir, mem, s, c.ordered
		if c.ordered { // and so both policies have their turn
			cfg.Overflow, cfg.makeRoom = DropOldest, 5*time.Millisecond
		}
	}
	c.d, c.count = &fake{answer: later}, map[uint32]bool{}
	c.f = open(t, c.d, func(cfg *Config) {
		conf(cfg)
		if !c.gone { // on a busy machine any disk hangs so long
			cfg.diskPatience = 20 * time.Millisecond
		}
	})
	if c.holding {
		c.spills(t, "it spills")
		eventually(t, "more is spilled than will be read ahead", func() bool {
			c.post(t, 100)
			return c.unread(t) > 4*aheadBytes
		})
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cure := c.fall(t, dir, s)
	c.post(t, 1500)
	if c.healthy {
		c.d.open()
		eventually(t, "what comes now is delivered", func() bool {
			c.post(t, 10)
			<-time.After(time.Millisecond)
			for n := c.next - 10; n < c.next; n++ {
				if c.count[n] {
					return came(c.d, n)
				}
			}
			return false
		})
	}
	if !c.healthy && !c.ordered && c.why != "" {
		eventually(t, "who finds no room learns why", func() bool {
			c.post(t, 10)
			<-time.After(time.Millisecond)
			return strings.Contains(fmt.Sprint(c.last), c.why)
		})
	}
	if c.gone && c.holding {
		eventually(t, "the loss is counted", func() bool {
			c.post(t, 10) // the disk is looked at when it is needed
			<-time.After(time.Millisecond)
			stats := c.f.m.Stats()
			return stats.Missed[Lost] > 0 || c.healthy && stats.Held == 0 // what was open was read to its end
		})
	}
	if c.cured {
		cure()
		c.spills(t, "it spills again")
		c.d.open()
		if err := c.f.m.Flush(within(t, patience)); err != nil {
			t.Fatal(err)
		}
		c.f.close()
		if held := c.f.m.Stats().Held; held > 0 {
			t.Errorf("%d events are held", held)
		}
		c.f.law()
		c.wantAll(t, c.d.all(), 0, c.f.m.Stats().Missed)
		return
	}
	err := c.f.m.Close(within(t, 100*time.Millisecond))
	stats := c.f.m.Stats()
	if left := (*UndeliveredError)(nil); errors.As(err, &left) && left.Events != stats.Held {
		t.Errorf("left %d, held %d", left.Events, stats.Held)
	}
	c.f.law()
	if !c.hangs { // on a busy machine it ends later than Close; where the disk hangs, when that is over
		<-c.f.m.ended
		<-c.f.m.disk.rest()
		stats = c.f.m.Stats()
	}
	cure() // as for a process that comes later
	<-c.f.m.ended
	<-c.f.m.disk.rest()
	d := &fake{}
	successor := open(t, d, conf)
	if err := successor.m.Flush(within(t, patience)); err != nil {
		t.Error(err)
	}
	successor.close()
	h := successor.m.Stats()
	for i, n := range h.Missed {
		stats.Missed[i] += n
	}
	c.wantAll(t, append(c.d.all(), d.all()...), h.Adopted.Events-stats.Held, stats.Missed)
	if names := entriesOf(t, mem); len(names) > 0 {
		t.Errorf("left %q", names)
	}
	if names := entriesOf(t, dir); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}

// wantAll asserts that each event that was accepted came, but as many as were dropped or are lost,
// and none twice but twice of them, under the same id.
func (c *badDisk) wantAll(t *testing.T, took []sent, twice uint64, missed Missed) {
	t.Helper()
	have, ids := map[uint32]bool{}, map[string]bool{}
	again, missing := uint64(0), uint64(0)
	for _, s := range took {
		for _, e := range s.events {
			if have[e.n] {
				again++
				if !ids[s.id] {
					t.Fatalf("event %d came again under another id", e.n)
				}
			}
			if have[e.n] = true; !c.count[e.n] {
				t.Errorf("event %d came and was refused", e.n)
			}
		}
		ids[s.id] = true
	}
	for n := range c.count {
		if !have[n] {
			missing++
		}
	}
	lost := missed[Lost]
	if missing != lost+missed[Oldest] || again != twice {
		t.Errorf("%d are missing; %d counted as lost, %d as dropped; %d came twice, want %d", missing, lost,
			missed[Oldest], again, twice)
	}
	c.f.mu.Lock()
	told := fmt.Sprint(c.f.told)
	c.f.mu.Unlock()
	may := c.gone && c.holding
	if n := strings.Count(told, "somebody removed"); lost > 0 && (n != 1 || !may) || lost == 0 && may && !c.healthy {
		t.Errorf("%d lost, told: %s", lost, told)
	}
	if c.hangs && c.healthy && c.holding && !strings.Contains(told, "hangs") {
		t.Errorf("told: %s", told)
	}
}

// TestBadDiskGetsWorse has a disk fail while chunks are flushed, so that it is unknown whether it
// has them, then hang when they are tried again, while the destination gets them from memory, and
// get well.
func TestBadDiskGetsWorse(t *testing.T) {
	t.Parallel()
	for _, ordered := range []bool{false, true} {
		c := badDisk{illness: illness{hangs: true}, holding: true, healthy: true, ordered: ordered}
		dir, s := t.TempDir(), &seam{}
		c.d, c.count = &fake{answer: later}, map[uint32]bool{}
		hang := make(chan struct{})
		var hangs atomic.Bool
		c.f = open(t, c.d, func(cfg *Config) {
			cfg.Dir, cfg.Shm, cfg.fs, cfg.Ordered, cfg.diskPatience = dir, shmDir(t), s, ordered, 20*time.Millisecond
			cfg.fault = func(step string) {
				if step == "spilling" && hangs.Load() {
					<-hang
				}
			}
		})
		c.spills(t, "it spills")
		s.set(nil, syscall.EIO)
		eventually(t, "chunks are appended, and not known to be stored", func() (are bool) {
			c.post(t, 10)
			stuck := false
			if err := c.f.m.mail.ask(t.Context(), func() {
				if stuck = len(c.f.m.loop.spiller.stuck) > 0; stuck {
					are = c.f.m.loop.spiller.stuck[0].inSpill != nil
				}
			}); err != nil {
				t.Fatal(err)
			}
			if stuck && !are { // the journal's own sync met the error first: once more
				s.set(nil, nil)
				c.spills(t, "it spills meanwhile")
				s.set(nil, syscall.EIO)
			}
			return are
		})
		hangs.Store(true)
		eventually(t, "the disk hangs", func() (hangs bool) {
			if err := c.f.m.mail.ask(t.Context(), func() {
				hangs = c.f.m.loop.spiller.underWay != nil && c.f.m.loop.spiller.underWay.late &&
					len(c.f.m.loop.spiller.underWay.flights) > 0
			}); err != nil {
				t.Fatal(err)
			}
			return hangs
		})
		c.d.open()
		eventually(t, "what comes now is delivered", func() bool {
			c.post(t, 1)
			<-time.After(time.Millisecond)
			return c.count[c.next-1] && came(c.d, c.next-1)
		})
		s.set(nil, nil)
		hangs.Store(false)
		close(hang)
		c.spills(t, "it spills again")
		c.d.open()
		c.f.close()
		c.wantAll(t, c.d.all(), 0, c.f.m.Stats().Missed)
		if names := entriesOf(t, dir); len(names) > 0 {
			t.Errorf("left %q", names)
		}
	}
}
