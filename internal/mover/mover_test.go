// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/ring"
)

func TestDelivers(t *testing.T) {
	d := &fake{}
	f := open(t, d, nil)
	f.must("a", 1, 0, 1000, 100)
	if err := f.m.Flush(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	ordered(t, d.all(), map[uint32]uint32{1: 1000})
	f.must("a", 1, 1000, 3000, 100)
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 3000})
	if err := f.post("a", 1, 1, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if s := f.m.Stats(); s.Delivered != 3000 || s.Accepted != 3000 {
		t.Errorf("%+v", s)
	}
}

// TestRefusedEntries: what a destination refuses for good is lost, counted and told; the rest of
// its chunk is delivered.
func TestRefusedEntries(t *testing.T) {
	d := &fake{answer: func(*job1) string { return "refused" }}
	var told atomic.Int64
	f := open(t, d, func(c *Config) {
		c.Diagnostics = func(err error) {
			if strings.Contains(err.Error(), "not liked") {
				told.Add(1)
			}
		}
	})
	f.must("a", 1, 0, 10, 100)
	f.close()
	s := f.m.Stats()
	if lost := s.Missed[Lost]; lost == 0 || lost+s.Delivered != 10 || s.Held != 0 || told.Load() != int64(lost) {
		t.Errorf("%+v, told %d times", s, told.Load())
	}
}

func TestWithoutFlush(t *testing.T) {
	d := &fake{}
	f := open(t, d, func(c *Config) { c.FlushInterval = time.Millisecond })
	f.must("a", 1, 0, 10, 100)
	eventually(t, "10 events", func() bool { return f.m.Stats().Delivered == 10 })
	f.close()
}

func TestManyGoroutinesAndTags(t *testing.T) {
	d := &fake{}
	f := open(t, d, func(c *Config) { c.Overflow = Block; c.MaxWait = time.Minute })
	var wg sync.WaitGroup
	want := map[uint32]uint32{}
	tags := make([]string, 40)
	for i := range tags {
		tags[i] = string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	const each = 20000
	for g := range uint32(40) {
		want[g] = each
		wg.Go(func() {
			var h ring.Hint
			var b []byte
			for n := range uint32(each) {
				b = event{tags[g], g, n}.payload(b[:0], 50)
				if err := f.m.Append(context.Background(), &h, ring.Now, false, b); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	f.close()
	ordered(t, d.all(), want)
}

// A prompt Append returns when its event is delivered. Once one has waited in vain, others do not
// wait until the destination has caught up.
func TestPrompt(t *testing.T) {
	d := &fake{}
	f := open(t, d, func(c *Config) {
		c.Prompt, c.promptFor, c.MaxWait, c.FlushInterval = true, time.Hour, time.Hour, time.Hour
	})
	for n := range uint32(100) {
		f.must("a", 1, n, n+1, 10)
		if got := len(d.all()); got != int(n)+1 {
			t.Fatalf("%d chunks are delivered, want %d", got, n+1)
		}
	}
	f.close()

	d = &fake{answer: later}
	f = open(t, d, func(c *Config) { c.Prompt, c.promptFor, c.FlushInterval = true, time.Millisecond, time.Hour })
	f.must("a", 1, 0, 1, 10)
	if !f.m.slow.Load() {
		t.Error("a call that has waited in vain says nothing to the next")
	}
	f.must("a", 1, 1, 1000, 10)
	d.open()
	if err := f.m.Flush(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); f.m.slow.Load(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits again")
		}
	}
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 1000})
}

func TestWaitDelivered(t *testing.T) {
	d := &fake{}
	f := open(t, d, func(c *Config) { c.WaitDelivered, c.MaxWait, c.FlushInterval = true, time.Hour, time.Hour })
	var wg sync.WaitGroup
	want := map[uint32]uint32{}
	for g := range uint32(8) {
		want[g] = 2000
		wg.Go(func() { f.must("a", g, 0, 2000, 10) })
	}
	wg.Wait()
	ordered(t, d.all(), want)
	f.close()
}
