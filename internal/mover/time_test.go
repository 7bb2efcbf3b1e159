// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// An event waits for others as long as FlushInterval, not longer; a Flush does not wait for that.
func TestGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fake{}
		f := open(t, d, func(c *Config) { c.FlushInterval = time.Second })
		f.must("a", 1, 0, 1, 10)
		<-time.After(500 * time.Millisecond)
		f.must("a", 1, 1, 2, 10)
		synctest.Wait()
		if n := len(d.all()); n != 0 {
			t.Errorf("%d chunks before the interval has passed", n)
		}
		<-time.After(501 * time.Millisecond)
		synctest.Wait()
		if all := d.all(); len(all) != 1 || len(all[0].events) != 2 {
			t.Errorf("after it: %v", all)
		}
		f.must("a", 1, 2, 3, 10)
		begin := time.Now()
		if err := f.m.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("Flush took %v", d)
		}
		f.close()
		ordered(t, d.all(), map[uint32]uint32{1: 3})
	})
}

// Close returns when its context is done, and what it does then has an end.
func TestCloseReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, &fake{answer: later}, nil)
		f.must("a", 1, 0, 10, 10)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := f.m.Close(ctx); err == nil {
			t.Error("all was delivered")
		}
		if d := time.Since(begin); d < 3*time.Second || d > 3*time.Second+5*grace {
			t.Errorf("Close took %v", d)
		}
		if err := f.m.Close(t.Context()); err == nil {
			t.Error("the second Close says that all was delivered")
		}
		f.law()
	})
}

// Summaries come once a second at most, however often something is dropped.
func TestSummariesAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fake{}
		f := open(t, d, func(c *Config) { c.Summary = summaryEvent })
		for range 50 {
			f.m.Miss(Sampled, 1)
			<-time.After(100 * time.Millisecond)
		}
		f.close()
		if n := summaries(t, d, 50); n > 7 {
			t.Errorf("%d summary events in five seconds", n)
		}
	})
}

// A mover that has nothing to do does nothing: in the bubble, time would stand still.
func TestIdles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fake{}
		f := open(t, d, nil)
		<-time.After(time.Hour)
		f.must("a", 1, 0, 10, 10)
		<-time.After(time.Hour)
		f.m.Stats()
		<-time.After(time.Hour)
		d.mu.Lock()
		d.answer = later
		d.mu.Unlock()
		f.must("a", 1, 10, 20, 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := f.m.Flush(ctx); err == nil {
			t.Error("all was delivered")
		}
		<-time.After(time.Hour)
		d.open()
		f.close()
		ordered(t, d.all(), map[uint32]uint32{1: 20})
	})
}

// While the disk hangs and there is still room nothing is dropped, and waiting takes no processor.
func TestDropOldestAwaitsTheDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, s := &fake{answer: later}, &seam{}
		hang := make(chan struct{})
		s.set(hang, nil)
		f := open(t, d, func(c *Config) { c.Dir, c.fs, c.Overflow = dir, s, DropOldest })
		for n := uint32(0); n < 600; n += 25 { // to between three quarters and seven eighths of the ring
			f.must("a", 1, n, n+25, 1000)
			synctest.Wait()
		}
		if st := f.m.Stats(); st.RingUsed < st.RingSize/4*3 || st.RingUsed >= st.RingSize/8*7 || st.Missed[Oldest] > 0 {
			t.Errorf("%+v", st)
		}
		f.must("a", 1, 600, 3000, 1000)
		synctest.Wait()
		if st := f.m.Stats(); st.Missed[Oldest] == 0 || st.Missed[Waited] > 0 {
			t.Errorf("%+v", st)
		}
		s.set(nil, nil)
		close(hang)
		d.open()
		f.close()
	})
}

// That there was no room once, when what was in the ring could be shipped, is no reason to drop
// anything later.
func TestDropsForRoomOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fake{}
		f := open(t, d, func(c *Config) { c.Overflow = DropOldest })
		f.must("a", 1, 0, 5, 10)
		f.m.short.Store(true) // as an Append does that was refused
		f.m.mail.wake()
		synctest.Wait()
		if err := f.m.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		d.answer = later
		d.mu.Unlock()
		for n := uint32(5); n < 450; n += 25 {
			f.must("a", 1, n, n+25, 1000)
			synctest.Wait()
		}
		if st := f.m.Stats(); st.RingUsed > st.RingSize/3*2 || st.Missed[Oldest] > 0 {
			t.Errorf("%+v", st)
		}
		d.open()
		f.close()
	})
}

// What the destination gives up at the end is older than what a slow disk is still writing then, in
// whatever order it is given up.
func TestPoursInOrder(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, s := &fake{answer: later}, &seam{}
		hang := make(chan struct{})
		s.set(hang, nil)
		f := open(t, d, func(c *Config) { c.Dir, c.fs = dir, s })
		for n := uint32(0); n < 500; n += 25 {
			f.must("a", 1, n, n+25, 1000)
			synctest.Wait()
		}
		if st := f.m.Stats(); !st.Spilling || st.InFlight < 2 {
			t.Errorf("%+v", st)
		}
		d.mu.Lock()
		slices.Reverse(d.pending)
		d.mu.Unlock()
		time.AfterFunc(9900*time.Millisecond, func() {
			s.set(nil, nil)
			close(hang)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := f.m.Close(ctx); err == nil {
			t.Error("all was delivered")
		}
		f.law()
		<-f.m.disk.rest()
		e := &fake{}
		g := open(t, e, func(c *Config) { c.Dir, c.fs = dir, s })
		if err := g.m.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		g.close()
		ordered(t, e.all(), map[uint32]uint32{1: 500})
	})
}
