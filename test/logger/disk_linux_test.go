// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// What can become of the disk that a logger spills to.

// A spiller posts into a logger whose server is down.
type spiller struct {
	t *testing.T
	h *rig.Home
	s *rig.FakeServer
	l *spillway.Logger
	p rig.Poster
}

func newSpiller(t *testing.T, dir string) *spiller {
	h := rig.NewHome(t)
	if dir != "" {
		h.Dir = dir
	}
	s := rig.NewFake(t)
	s.Down()
	return &spiller{
		t: t, h: h, s: s, l: h.Open(s.URL(""), spillway.Options{Dir: h.Dir, RingSize: 1 << 20}),
		p: rig.Poster{Stream: "s.0"},
	}
}

// until posts, refused or not, until it is so.
func (s *spiller) until(what string, is func(err error) bool) {
	s.t.Helper()
	rig.Eventually(s.t, what, func() bool {
		for range 50 {
			err := s.p.Post(s.l, strings.Repeat("p", 1000))
			if err != nil && !errors.Is(err, spillway.ErrFull) {
				s.t.Fatal(err)
			}
			if is(err) {
				return true
			}
		}
		<-time.After(time.Millisecond)
		return false
	})
}

// TestLoggerSpillRemoved removes a logger's Dir while it holds events, and again while it does not.
// What was in it is counted, all else is delivered, and another spill is begun.
func TestLoggerSpillRemoved(t *testing.T) {
	t.Parallel()
	s := newSpiller(t, "")
	s.until("it spills", func(error) bool { return s.l.Stats().Spilled > 500 })
	remove := func() {
		rig.Eventually(t, "the folder is removed", func() bool { return os.RemoveAll(s.h.Dir) == nil })
	}
	remove()
	s.until("the loss is counted", func(error) bool { return s.l.Stats().Lost > 0 })
	rig.Eventually(t, "a diagnosis tells of it", func() bool { return s.h.Said("somebody removed", s.h.Dir) })
	lost := s.l.Stats().Lost
	before := s.l.Stats().Spilled
	s.until("it spills again", func(error) bool { return s.l.Stats().Spilled > before+500 })
	s.s.Up()
	rig.Eventually(t, "all is delivered", func() bool { return s.l.Stats().Held == 0 })
	remove()
	s.s.Down()
	before = s.l.Stats().Spilled
	s.until("it spills once more", func(error) bool { return s.l.Stats().Spilled > before+500 })
	s.s.Up()
	stats := rig.Closing(t, s.l)
	rig.WantLaw(t, stats)
	s.s.Ledger.Check(t)
	if have := uint64(len(s.s.Ledger.Streams[s.p.Stream])); have+stats.Lost < s.p.Next || stats.Lost != lost {
		t.Errorf("%d of %d came: %+v", have, s.p.Next, stats)
	}
	s.h.WantEmpty()
	s.h.Tell()
}

// TestLoggerSpillFull has a spill's disk full, before there is a spill and while it holds events,
// and empties it again: who finds no room learns why, and what was accepted is delivered in order.
func TestLoggerSpillFull(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		d := rig.NewDisk(t, "24m")
		s := newSpiller(t, d.Dir+"/spills")
		if !early {
			s.until("it spills", func(error) bool { return s.l.Stats().Spilled > 500 })
		}
		d.Fill()
		s.until("who finds no room learns why",
			func(err error) bool { return err != nil && strings.Contains(err.Error(), "no space") })
		before := s.l.Stats().Spilled
		d.Free()
		s.until("it spills", func(error) bool { return s.l.Stats().Spilled > before+500 })
		d.Fill()
		s.s.Up()
		stats := rig.Closing(t, s.l)
		rig.WantLaw(t, stats)
		s.s.Ledger.Check(t)
		s.s.Ledger.WantStream(t, s.p.Stream, s.p.Next, s.p.Next)
		if stats.Lost > 0 {
			t.Errorf("%+v", stats)
		}
	}
}
