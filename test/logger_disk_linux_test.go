// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
)

// What can become of the disk that a logger spills to.

// A spiller posts into a logger whose server is down.
type spiller struct {
	t *testing.T
	h *home
	s *fakeServer
	l *spillway.Logger
	p poster
}

func newSpiller(t *testing.T, dir string) *spiller {
	h := newHome(t)
	if dir != "" {
		h.dir = dir
	}
	s := newFake(t)
	s.down()
	return &spiller{
		t: t, h: h, s: s, l: h.open(s.url(""), spillway.Options{Dir: h.dir, RingSize: 1 << 20}),
		p: poster{stream: "s.0"},
	}
}

// until posts, refused or not, until it is so.
func (s *spiller) until(what string, is func(err error) bool) {
	s.t.Helper()
	eventually(s.t, what, func() bool {
		for range 50 {
			err := s.p.post(s.l, strings.Repeat("p", 1000))
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
		eventually(t, "the folder is removed", func() bool { return os.RemoveAll(s.h.dir) == nil })
	}
	remove()
	s.until("the loss is counted", func(error) bool { return s.l.Stats().Lost > 0 })
	eventually(t, "a diagnosis tells of it", func() bool { return s.h.said("somebody removed", s.h.dir) })
	lost := s.l.Stats().Lost
	before := s.l.Stats().Spilled
	s.until("it spills again", func(error) bool { return s.l.Stats().Spilled > before+500 })
	s.s.up()
	eventually(t, "all is delivered", func() bool { return s.l.Stats().Held == 0 })
	remove()
	s.s.down()
	before = s.l.Stats().Spilled
	s.until("it spills once more", func(error) bool { return s.l.Stats().Spilled > before+500 })
	s.s.up()
	stats := closing(t, s.l)
	wantLaw(t, stats)
	s.s.ledger.check(t)
	if have := uint64(len(s.s.ledger.streams[s.p.stream])); have+stats.Lost < s.p.next || stats.Lost != lost {
		t.Errorf("%d of %d came: %+v", have, s.p.next, stats)
	}
	s.h.wantEmpty()
	s.h.tell()
}

// TestLoggerSpillFull has a spill's disk full, before there is a spill and while it holds events,
// and empties it again: who finds no room learns why, and what was accepted is delivered in order.
func TestLoggerSpillFull(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		d := newDisk(t, "24m")
		s := newSpiller(t, d.dir+"/spills")
		if !early {
			s.until("it spills", func(error) bool { return s.l.Stats().Spilled > 500 })
		}
		d.fill()
		s.until("who finds no room learns why",
			func(err error) bool { return err != nil && strings.Contains(err.Error(), "no space") })
		before := s.l.Stats().Spilled
		d.free()
		s.until("it spills", func(error) bool { return s.l.Stats().Spilled > before+500 })
		d.fill()
		s.s.up()
		stats := closing(t, s.l)
		wantLaw(t, stats)
		s.s.ledger.check(t)
		s.s.ledger.wantStream(t, s.p.stream, s.p.next, s.p.next)
		if stats.Lost > 0 {
			t.Errorf("%+v", stats)
		}
	}
}
