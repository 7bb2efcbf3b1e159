// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/ring"
)

func TestDropNewest(t *testing.T) {
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) { c.Summary = summaryEvent })
	var refused uint64
	kept := uint32(0)
	for refused < 100 {
		err := f.post("a", 1, kept, 1000)
		switch {
		case err == nil:
			kept++
		case errors.Is(err, ErrFull):
			refused++
		default:
			t.Fatal(err)
		}
	}
	d.open()
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: kept})
	s := f.m.Stats()
	if s.Missed[Full] != refused || s.Told != s.Missed || s.Accepted != uint64(kept)+summaries(t, d, uint32(refused)) {
		t.Errorf("refused %d: %+v", refused, s)
	}
}

// summaries counts summary events, whose numbers have to add up to total.
func summaries(t *testing.T, d *fake, total uint32) (n uint64) {
	t.Helper()
	var sum uint32
	for _, s := range d.all() {
		for _, e := range s.events {
			if e.g == 1<<32-1 {
				n++
				sum += e.n
			}
		}
	}
	if sum != total {
		t.Errorf("%d summary events tell of %d drops, not %d", n, sum, total)
	}
	return n
}

func TestTold(t *testing.T) {
	d := &fake{}
	f := open(t, d, func(c *Config) { c.Summary, c.MaxEvent = summaryEvent, 2000 })
	if err := f.post("a", 1, 0, 4000); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	f.m.Miss(Sampled, 41)
	eventually(t, "a summary", func() bool { return f.m.Stats().Told.Total() == 42 })
	f.close()
	summaries(t, d, 42)
}

func TestDropOldest(t *testing.T) {
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) {
		c.Overflow, c.Summary = DropOldest, summaryEvent
		c.MaxWait, c.makeRoom = patience, patience // a busy machine may take long to drop something
	})
	const n = 20000
	f.must("a", 1, 0, n, 1000)
	if s := f.m.Stats(); s.Missed[Oldest] == 0 || s.Missed[Full]+s.Missed[Waited] > 0 {
		t.Errorf("%+v", s)
	}
	f.law()
	d.open()
	f.close()
	// What came is in order and the last one is among it.
	var last uint32
	var got uint64
	for _, s := range d.all() {
		for _, e := range s.events {
			if e.g != 1 {
				continue
			}
			if got > 0 && e.n <= last {
				t.Fatalf("%d after %d", e.n, last)
			}
			last = e.n
			got++
		}
	}
	s := f.m.Stats()
	told := summaries(t, d, uint32(s.Missed[Oldest]))
	if last != n-1 || got+told+s.Missed[Oldest] != s.Accepted || s.Told != s.Missed {
		t.Errorf("%d came, the last one %d; %+v", got, last, s)
	}
}

func TestBlock(t *testing.T) {
	for _, keep := range []bool{false, true} {
		d := &fake{answer: later}
		f := open(t, d, func(c *Config) {
			c.MaxWait = 30 * time.Millisecond
			if !keep {
				c.Overflow = Block
			}
		})
		var h ring.Hint
		fill := func(ctx context.Context) (n uint32, err error) {
			for ; err == nil; n++ {
				err = f.m.Append(ctx, &h, ring.Now, keep, event{"a", 1, 0}.payload(nil, 1000))
			}
			return n - 1, err
		}
		kept, err := fill(context.Background())
		if !errors.Is(err, ErrFull) || errors.Is(err, context.Canceled) {
			t.Errorf("after MaxWait: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		more, err := fill(ctx)
		if !errors.Is(err, ErrFull) || !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that is done: %v", err)
		}
		if s := f.m.Stats(); s.Missed[Waited] != 2 || s.Accepted != uint64(kept+more) {
			t.Errorf("%+v", s)
		}
		d.open()
		f.close()
	}
}

// An appender that waits for room goes on as soon as there is some, over and over again.
func TestBlockNeverMissesRoom(t *testing.T) {
	d := &fake{}
	var n atomic.Int32
	d.answer = func(j *job1) string {
		if n.Add(1)%7 == 0 {
			go d.finish(j, "ok")
			return "later"
		}
		return "ok"
	}
	f := open(t, d, func(c *Config) { c.Overflow, c.MaxWait, c.RingSize = Block, time.Hour, 256<<10 })
	f.must("a", 1, 0, 30000, 1000)
	f.close()
	var got int
	for _, s := range d.all() {
		got += len(s.events)
	}
	if got != 30000 {
		t.Errorf("%d events came", got)
	}
}

func TestCloseEndsWaits(t *testing.T) {
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) { c.Overflow, c.MaxWait = Block, time.Hour })
	done := make(chan error)
	go func() {
		for n := uint32(0); ; n++ {
			if err := f.post("a", 1, n, 1000); err != nil {
				done <- err
				return
			}
		}
	}()
	eventually(t, "a full ring", func() bool { return f.m.Stats().RingUsed >= f.m.Stats().RingSize*9/10 })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := f.m.Close(ctx); err == nil {
		t.Error("Close said that all was delivered")
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("the appender: %v", err)
	}
	f.law()
}

func TestMaxDisk(t *testing.T) {
	for _, o := range []Overflow{DropNewest, DropOldest, Block} {
		dir := t.TempDir()
		d := &fake{answer: later}
		f := open(t, d, func(c *Config) {
			c.Dir, c.MaxDisk, c.Overflow, c.MaxWait = dir, 4<<20, o, time.Millisecond
		})
		want := map[uint32]uint32{}
		var kept uint32
		for refused := 0; refused < 200 && kept < 12000; {
			if err := f.post("a", 1, kept, 1000); err == nil {
				kept, refused = kept+1, 0
			} else if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			} else if refused++; o == DropNewest {
				<-time.After(time.Millisecond) // not to outrun the disk all the time
			}
		}
		want[1] = kept
		// A slow disk may not have got to it yet.
		eventually(t, "spilled", func() bool { return f.m.Stats().Spilled > 0 })
		if s := f.m.Stats(); s.DiskUsed > 4<<20 {
			t.Errorf("policy %d: %+v", o, s)
		}
		f.law()
		d.open()
		f.close()
		if o != DropOldest {
			ordered(t, d.all(), want)
		}
		if names := entriesOf(t, dir); len(names) > 0 {
			t.Errorf("left %q", names)
		}
	}
}

// A disk that is slow is no full one: what is refused meanwhile has a reason of its own.
func TestSlowSpill(t *testing.T) {
	d := &fake{answer: later}
	gate := make(chan struct{})
	f := open(t, d, func(c *Config) {
		c.Dir, c.MaxDisk, c.Summary = t.TempDir(), 4<<20, summaryEvent
		c.fault = func(step string) {
			if step == "appended" {
				<-gate
			}
		}
	})
	kept := uint32(0)
	refused := func() error {
		for {
			if err := f.post("a", 1, kept, 1000); err != nil {
				return err
			}
			kept++
		}
	}
	if err := refused(); !errors.Is(err, ErrSlow) || !errors.Is(err, ErrFull) {
		t.Errorf("while the disk hangs: %v", err)
	}
	if s := f.m.Stats(); s.Missed[Slow] != 1 || s.Missed[Full] != 0 {
		t.Errorf("%v", s.Missed)
	}
	close(gate)
	eventually(t, "a disk that is full", func() bool {
		err := refused()
		return errors.Is(err, ErrFull) && !errors.Is(err, ErrSlow)
	})
	f.law()
	d.open()
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: kept})
	if s := f.m.Stats(); s.Told != s.Missed || s.Missed[Full] != 1 {
		t.Errorf("%+v", s)
	}
}
