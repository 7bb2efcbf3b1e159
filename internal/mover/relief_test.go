// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/journal"
)

// aloft is a mover's parts with chunks of its ring that are with the destination.
func aloft(t *testing.T, n int) (*loop, []*job1) {
	t.Helper()
	d := &fake{answer: later}
	c, err := (&Config{
		Name: "test", Destination: d, Dir: t.TempDir(),
		Diagnostics: func(err error) { t.Error(err) },
	}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	g, err := newCore(&c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.rings.cur.Load().close(false) })
	l := newLoop(g, &states{core: g}, &dead{core: g})
	for range n {
		f := l.delivery.pool.take()
		forward.AppendID(f.ID[:0])
		f.feed, f.Chunk = g.rings.cur.Load(), forward.Chunk{Tag: "a", ID: f.ID[:], UniqueID: true}
		f.Chunk.Entries, f.Chunk.Events = []byte{0x92, 1, 0x80}, 1
		l.delivery.submit(f)
	}
	return l, d.pending
}

// TestAsideWhileItLands: the destination may answer, on a goroutine of its own, just when the
// mover's takes note that the chunk was put aside.
func TestAsideWhileItLands(t *testing.T) {
	l, jobs := aloft(t, 1)
	a, shelf := l.delivery, l.spiller.shelf
	b := newBacklog(a.core, shelf, a.pool, &spill.Spill{}, nil)
	var answered sync.WaitGroup
	answered.Go(func() { jobs[0].done(output.Result{Err: output.ErrClosed}) })
	b.putAside(a.out[0], 1)
	answered.Wait()
	a.collect()
	if b.entries.Len() != 1 || b.empty() || len(a.givenUp) != 0 {
		t.Error("what the destination gave up is not left in the spill")
	}
}

// TestAsideTooLate: a spill of chunks that are put aside is nothing when the mover's goroutine has
// ended before it was told: what of it is undone is in the ring's care.
func TestAsideTooLate(t *testing.T) {
	l, _ := aloft(t, 1)
	a, r := l.delivery, l.spiller.relief
	a.mail.close()
	r.begin(a.pinning())
	<-a.disk.rest()
	if left := entriesOf(t, a.cfg.Dir); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// TestAsideCounts: what chunks that are put aside take counts as DiskUsed, and towards MaxDisk.
func TestAsideCounts(t *testing.T) {
	l, _ := aloft(t, 3)
	a, r := l.delivery, l.spiller.relief
	for _, f := range a.out {
		f.Chunk.Entries = make([]byte, 200<<10)
	}
	l.spiller.shelf.folder = spill.New(&spill.Options{
		Name: a.cfg.Name, Identity: a.cfg.identity(), Dir: a.cfg.Dir, MaxDisk: 1 << 20,
		BootID: func() string { return "" },
		Report: a.report,
	})
	other := filepath.Join(a.cfg.Dir, "other.1.0123456789abcdef")
	if err := errors.Join(os.Mkdir(other, 0o700),
		os.WriteFile(filepath.Join(other, "seg-0"), make([]byte, 512<<10), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.begin(a.pinning())
	<-a.disk.rest()
	for _, fn := range a.mail.fetch() {
		fn()
	}
	l.note()
	if used := a.count.stats().DiskUsed; used <= 200<<10 || used > 512<<10 {
		t.Errorf("%d bytes are used of the 512 KiB that were left", used)
	}
	if why := a.why.Load(); why == nil || !errors.Is(*why, journal.ErrFull) || a.out[0].inSpill == nil ||
		a.out[2].inSpill != nil {
		t.Errorf("not the first chunks alone are put aside: %v", why)
	}
	r.leave()
	<-a.disk.rest()
}

// TestAsideInPart: what is done of the chunks that were put aside does not come again.
func TestAsideInPart(t *testing.T) {
	l, jobs := aloft(t, 3)
	a, r := l.delivery, l.spiller.relief
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
	left := newShelf(a.core).discover(nil)
	defer closeAll(left)
	if len(left) != 1 || len(left[0].Found) != 1 || !left[0].IDs[[idLen]byte([]byte(jobs[2].id))] {
		t.Errorf("left %d spills, %+v", len(left), left)
	}
}

// TestWhyLasts: a call that finds no room says why as long as the disk may still take nothing: also
// while it is tried again, and until it has been.
func TestWhyLasts(t *testing.T) {
	full := fmt.Errorf("no space: %w", journal.ErrFull)
	now := time.Now()
	for _, c := range []struct {
		name  string
		set   func(s *spiller)
		stays bool
	}{
		{"nothing", func(*spiller) {}, false},
		{"refused", func(s *spiller) { s.refused, s.againAt = true, now.Add(time.Hour) }, true},
		{"about to be tried", func(s *spiller) { s.refused, s.againAt = true, now }, true},
		{"writing", func(s *spiller) { s.writing = 1 }, true},
		{"putting aside", func(s *spiller) { s.relief.working = true }, true},
		{"refused, and another write done", func(s *spiller) {
			s.relief.failed(full)
			s.refuse(nil, nil, false)
			s.againAt = now.Add(time.Hour)
		}, true},
		{"refused at the end of a hang", func(s *spiller) {
			s.cfg.Diagnostics = func(error) {} // it tells that it no longer hangs
			s.hangs = true
			s.refuse(nil, full, false)
			s.againAt = now.Add(time.Hour)
		}, true},
		{"another write done", func(s *spiller) { s.refuse(nil, nil, false) }, false},
	} {
		l, _ := aloft(t, 1)
		s := l.spiller
		s.noRoom(full)
		c.set(s)
		s.again(now)
		if stays := s.why.Load() != nil; stays != c.stays {
			t.Errorf("%s: it is told: %t", c.name, stays)
		}
	}
}
